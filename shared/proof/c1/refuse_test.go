package c1

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// place is the part of a refusal that a table states.
type place struct {
	Partition, Challenge int
	Field                string
}

var nowhere = place{-1, -1, ""}

func top(field string) place { return place{-1, -1, field} }

// refusalOf decodes and checks a text as the prover does and gives the refusal.
func refusalOf(t testing.TB, text []byte, claim Claim) *InputError {
	t.Helper()
	input, err := Decode(bytes.NewReader(text), 0)
	if err == nil {
		err = Check(input.Output, claim)
	}
	var refusal *InputError
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("error %v is no InputError", err)
	}
	return refusal
}

// expectRefusal demands that a text is refused at that place with a reason that contains the given words.
func expectRefusal(t *testing.T, name string, text []byte, claim Claim, want place, words string) {
	t.Helper()
	got := refusalOf(t, text, claim)
	if got == nil {
		t.Errorf("%s: accepted", name)
		return
	}
	if diff := cmp.Diff(want, place{got.Partition, got.Challenge, got.Field}); diff != "" {
		t.Errorf("%s: %v (-want +got):\n%s", name, got, diff)
	}
	if !strings.Contains(got.Error(), words) || strings.ContainsAny(got.Error(), "\n\x1b\x00") {
		t.Errorf("%s: error %q, want one line with %q", name, got.Error(), words)
	}
}

// swap exchanges the first occurrence of a text; the test fails if there is none.
func swap(t testing.TB, text []byte, from, to string) []byte {
	t.Helper()
	if !bytes.Contains(text, []byte(from)) {
		t.Fatalf("sample has no %q", from)
	}
	return bytes.Replace(text, []byte(from), []byte(to), 1)
}

// cut replaces what stands between two texts, the second one after the first.
func cut(t testing.TB, text []byte, from, until, replacement string) []byte {
	t.Helper()
	head, tail, found := bytes.Cut(text, []byte(from))
	_, rest, closed := bytes.Cut(tail, []byte(until))
	if !found || !closed {
		t.Fatalf("sample has no %q followed by %q", from, until)
	}
	return fmt.Appendf(nil, "%s%s%s%s%s", head, from, replacement, until, rest)
}

// listOf is a JSON list of n times one number.
func listOf(n int, number string) string {
	return strings.TrimSuffix(strings.Repeat(number+",", n), ",")
}

// B01: bytes around the JSON, and texts that are no C1 output (F01, F02, F03, F24).
func TestB01TextAround(t *testing.T) {
	t.Parallel()
	s := small(t)
	good := bytes.TrimSpace(s.text)
	for _, accepted := range []string{"\n", " \r\n\t"} {
		if refusal := refusalOf(t, append(bytes.Clone(good), accepted...), s.claim); refusal != nil {
			t.Errorf("followed by %q: %v, want accepted", accepted, refusal)
		}
	}
	var wide []byte
	for _, unit := range utf16.Encode([]rune(string(good))) {
		wide = append(wide, byte(unit), byte(unit>>8))
	}
	behind := fmt.Sprintf("byte %d", len(good))
	for name, c := range map[string]struct {
		text  []byte
		words string
	}{
		"a letter behind":       {append(bytes.Clone(good), 'x'), behind + ": trailing bytes"},
		"a NUL behind":          {append(bytes.Clone(good), 0), behind + ": unexpected NUL"},
		"a brace behind":        {append(bytes.Clone(good), "   }"...), "trailing bytes"},
		"twice":                 {append(bytes.Clone(good), good...), behind + ": trailing bytes"},
		"twice with line feed":  {append(append(bytes.Clone(good), '\n'), good...), "trailing bytes"},
		"empty":                 {nil, "empty input"},
		"empty object":          {[]byte("{}"), "no C1 output"},
		"null":                  {[]byte("null"), "found null"},
		"list":                  {[]byte("[]"), "found a list"},
		"byte order mark":       {append([]byte("\xef\xbb\xbf"), good...), "byte order mark"},
		"UTF-16":                {wide, "UTF-16"},
		"UTF-16 with mark":      {append([]byte("\xff\xfe"), wide...), "UTF-16"},
		"gzip":                  {[]byte("\x1f\x8b\x08\x00rest"), "gzip"},
		"20000 opening braces":  {bytes.Repeat([]byte("["), 20_000), "found a list"},
		"20000 opening objects": {bytes.Repeat([]byte("{"), 20_000), "want a key"},
	} {
		expectRefusal(t, name, c.text, s.claim, nowhere, c.words)
	}
}

func TestTruncatedTextIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	s := small(t)
	good := bytes.TrimSpace(s.text)
	for length := 1; length < len(good); length += 1 + length%97 {
		if _, err := Decode(bytes.NewReader(good[:length]), 0); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("byte %d", length)) {
			t.Fatalf("cut to %d of %d bytes: %v, want a refusal at that byte", length, len(good), err)
		}
	}
}

// F22: the lists of 32 numbers.
func TestB01Lists(t *testing.T) {
	t.Parallel()
	s := small(t)
	for field, next := range map[string]string{"comm_r": "comm_d", "replica_id": "seed"} {
		for name, c := range map[string]struct{ value, words string }{
			"31 integers":  {"[" + listOf(31, "7") + "]", "list of 31 integers, want 32"},
			"33 integers":  {"[" + listOf(33, "7") + "]", "more than 32 integers"},
			"40 integers":  {"[" + listOf(40, "7") + "]", "more than 32 integers"},
			"none":         {"[]", "list of 0 integers"},
			"a 256":        {"[" + listOf(31, "7") + ",256]", "want an integer from 0 to 255, found the number 256"},
			"a 1000":       {"[1000," + listOf(31, "7") + "]", "found the number 1000"},
			"a -1":         {"[-1," + listOf(31, "7") + "]", "found the number -1"},
			"a -0":         {"[-0," + listOf(31, "7") + "]", "found the number -0"},
			"a 1.5":        {"[1.5," + listOf(31, "7") + "]", "found the number 1.5"},
			"a 1e1":        {"[1e1," + listOf(31, "7") + "]", "found the number 1e1"},
			"a 1.0":        {"[" + listOf(31, "7") + ",1.0]", "found the number 1.0"},
			"a 007":        {"[007," + listOf(31, "7") + "]", "found the number 007"},
			"a 00":         {"[" + listOf(31, "7") + ",00]", "found the number 00"},
			"a null":       {"[null," + listOf(31, "7") + "]", "found null"},
			"a text":       {"[\"7\"," + listOf(31, "7") + "]", "found a text"},
			"hex":          {`"` + strings.Repeat("07", 32) + `"`, "found a text"},
			"null":         {"null", "found null"},
			"list in list": {"[[" + listOf(32, "7") + "]]", "found a list"},
			"two commas":   {"[7,," + listOf(31, "7") + "]", "found byte"},
			"comma at end": {"[" + listOf(32, "7") + ",]", "comma before"},
			"all 255":      {"[" + listOf(32, "255") + "]", "not a canonical field element"},
			"open at end":  {"[" + listOf(32, "7") + "}", "found byte"},
		} {
			text := cut(t, s.text, `"`+field+`":`, `,"`+next+`"`,
				c.value)
			expectRefusal(t, field+" "+name, text, s.claim, top(field), c.words)
		}
	}
}

// F21: names; and the same inside a challenge's proof.
func TestB01Names(t *testing.T) {
	t.Parallel()
	s := small(t)
	first := place{0, 0, ""}
	column := "replica_column_proofs.c_x.column"
	for name, c := range map[string]struct {
		text  []byte
		want  place
		words string
	}{
		"duplicate at the top": {swap(t, s.text, `"comm_d":[`, `"seed":[`), nowhere, "duplicate key seed"},
		"missing at the top":   {swap(t, s.text, `"ticket"`, `"Ticket"`), top("ticket"), "missing key ticket"},
		"null at the top": {
			swap(t, s.text, `"StackedDrg2KiBV1_1"`, `null`), top("registered_proof"), "found null",
		},
		"duplicate inside": {
			swap(t, s.text, `"comm_r_last_proof"`, `"comm_d_proofs"`), first, "duplicate key comm_d_proofs",
		},
		"missing inside": {
			swap(t, s.text, `"encoding_proof"`, `"encoding_prooF"`), place{0, 0, "encoding_proof"},
			"missing key encoding_proof",
		},
		"missing _h": {swap(t, s.text, `,"_h":null`, ``), place{0, 0, column + "._h"}, "missing key _h"},
		"duplicate _h": {
			swap(t, s.text, `"_h":null`, `"_h":null,"_h":null`), place{0, 0, column}, "duplicate key _h",
		},
		"key with a NUL":  {swap(t, s.text, `"seed"`, "\"se\x00ed\""), nowhere, "control character 0x00"},
		"key not UTF-8":   {swap(t, s.text, `"seed"`, "\"se\xffed\""), nowhere, "UTF-8"},
		"half surrogate":  {swap(t, s.text, `"seed"`, `"\ud800"`), nowhere, "surrogate"},
		"unknown escape":  {swap(t, s.text, `"seed"`, `"\x"`), nowhere, "unknown escape"},
		"key of 100 kB":   {swap(t, s.text, `"seed"`, `"`+strings.Repeat("k", 100_000)+`"`), nowhere, "longer than"},
		"key without end": {swap(t, s.text, `"seed":`, `"`+strings.Repeat("k", 100)), nowhere, ""},
		"proof name of 1 MB": {
			swap(t, s.text, `StackedDrg2KiBV1_1`, strings.Repeat("S", 1<<20)), top("registered_proof"), "longer than",
		},
		"proof name with escape codes": {
			swap(t, s.text, `StackedDrg2KiBV1_1`, `\u001b[31m<script>\n`), top("registered_proof"),
			"unknown registered proof",
		},
		"unknown proof": {
			swap(t, s.text, `StackedDrg2KiBV1_1`, `StackedDrg2KiBV2`), top("registered_proof"),
			"unknown registered proof",
		},
		"size without registered proof": {
			swap(t, s.text, `StackedDrg2KiBV1_1`, `StackedDrg4KiBV1_1`), top("registered_proof"), "2KiB, 8MiB, 512MiB",
		},
		"number of no proof": {
			swap(t, s.text, `"StackedDrg2KiBV1_1"`, `20`), top("registered_proof"), "an integer from 0 to 19",
		},
		"broken number as proof": {
			swap(t, s.text, `"StackedDrg2KiBV1_1"`, `5.0`), top("registered_proof"), "an integer from 0 to 19",
		},
		"number of a proof of another size": {
			swap(t, s.text, `"StackedDrg2KiBV1_1"`, `8`), top("vanilla_proofs"), "another size",
		},
		"tag of another size": {
			swap(t, s.text, `"StackedDrg2KiBV1"`, `"StackedDrg8MiBV1"`), top("vanilla_proofs"), "another size",
		},
		"tag of another size, read first": {
			swap(t, reordered(t, s.text), `"StackedDrg2KiBV1_1"`, `"StackedDrg8MiBV1_1"`), top("registered_proof"),
			"another size",
		},
		"tag with version": {
			swap(t, s.text, `"StackedDrg2KiBV1"`, `"StackedDrg2KiBV1_1"`), top("vanilla_proofs"), "unknown tag",
		},
		"no tag": {cut(t, s.text, `"vanilla_proofs":{`, `},"comm_r":`, ``), top("vanilla_proofs"), "no key"},
		"two tags": {
			swap(t, s.text, `]},"comm_r":`, `],"StackedDrg2KiBV1":[]},"comm_r":`), top("vanilla_proofs"), "one tag",
		},
	} {
		expectRefusal(t, name, c.text, s.claim, c.want, c.words)
	}
}

func TestUnknownKeysAreIgnoredWithAWarning(t *testing.T) {
	t.Parallel()
	s := small(t)
	extra := `"extra\n\u001b":{"a":[1,-2.5e+7,true,false,null,"\ud83d\ude00\"é",{}],"":[]},`
	text := swap(t, s.text, `"seed":`, extra+`"SEED":1,"SectorSize":-1,"seed":`)
	text = swap(t, text, `"index"`, `"Index":[],"index"`)
	input, err := Decode(bytes.NewReader(text), 0)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if diff := diffOutputs(mustDecode(t, s.text), input.Output); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	var got []string
	for _, warning := range input.Warnings {
		_, reason, _ := strings.Cut(warning, ": unknown")
		got = append(got, reason)
	}
	want := []string{
		` key "Index" ignored, it differs from index only in case`, ` key "extra\n\x1b" ignored`,
		` key "SEED" ignored, it differs from seed only in case`, ` key "SectorSize" ignored`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings %q (-want +got):\n%s", input.Warnings, diff)
	}
	const where = "partition 0, challenge 0, field comm_d_proofs.data.Single.path.path[0], byte"
	if !strings.Contains(input.Warnings[0], where) {
		t.Errorf("warning %q does not say where", input.Warnings[0])
	}
}

func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	s := small(t)
	input, err := Decode(bytes.NewReader(swap(t, s.text, `"seed":`, strings.Repeat(`"x":0,`, 1000)+`"seed":`)), 0)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if got := [2]int{len(input.Warnings), input.WarningsDropped}; got != [2]int{16, 984} {
		t.Errorf("kept and dropped warnings: %v, want 16 and 984", got)
	}
}

func TestMalformedUnknownValuesAreRefused(t *testing.T) {
	t.Parallel()
	s := small(t)
	for value, words := range map[string]string{
		"nul":                                    "malformed word",
		"truE":                                   "malformed word",
		"01":                                     "malformed number",
		"-":                                      "number without digits",
		"1.":                                     "number without digits",
		"1e":                                     "number without digits",
		"1e5.5":                                  "malformed number",
		"+1":                                     "want a value",
		"'a'":                                    "want a value",
		"[1 2]":                                  "want ','",
		"{1:2}":                                  "want a key",
		`{"a" 2}`:                                "after a key",
		`{"a":2,}`:                               "comma before",
		"[}":                                     "want a value",
		"\"\n\"":                                 "control character",
		strings.Repeat("[", 33):                  "nested more than 32 deep",
		strings.Repeat(`{"a":`, 33) + `1`:        "nested more than 32 deep",
		strings.Repeat("[", 32) + "1" + "]]]]]}": "want ','",
	} {
		text := swap(t, s.text, `"seed":`, `"extra":`+value+`,"seed":`)
		expectRefusal(t, value, text, s.claim, nowhere, words)
	}
	nested := strings.Repeat("[", 32) + strings.Repeat("]", 32)
	if refusal := refusalOf(t, swap(t, s.text, `"seed":`, `"extra":`+nested+`,"seed":`), s.claim); refusal != nil {
		t.Errorf("nested 32 deep: %v, want accepted", refusal)
	}
}

// Counts and ranges inside the proofs.
func TestWrongLengthsAreRefused(t *testing.T) {
	t.Parallel()
	s := small(t)
	single := "comm_d_proofs.data.Single.path"
	for name, c := range map[string]struct {
		text  []byte
		want  place
		words string
	}{
		"no partition": {
			cut(t, s.text, `"StackedDrg2KiBV1":`, `},"comm_r":`, `[]`), top("vanilla_proofs.StackedDrg2KiBV1"),
			"no partitions",
		},
		"empty partition": {
			cut(t, s.text, `"StackedDrg2KiBV1":`, `},"comm_r":`, `[[]]`),
			place{0, -1, "vanilla_proofs.StackedDrg2KiBV1"},
			"partition without challenges",
		},
		"null partition": {
			cut(t, s.text, `"StackedDrg2KiBV1":`, `},"comm_r":`, `[null]`),
			place{0, -1, "vanilla_proofs.StackedDrg2KiBV1"},
			"found null",
		},
		"second partition": {
			swap(t, s.text, `]]},"comm_r":`, `],[]]},"comm_r":`), top("vanilla_proofs.StackedDrg2KiBV1"),
			"more than 1 partitions",
		},
		"third challenge": {
			swap(t, s.text, `]]},"comm_r":`, `,{}]]},"comm_r":`), place{0, -1, "vanilla_proofs.StackedDrg2KiBV1"},
			"more than 2 challenges",
		},
		"path of another variant": {
			swap(t, s.text, `"Single"`, `"Sub"`), place{0, 0, "comm_d_proofs.data.Single"}, "missing key Single",
		},
		"index beyond the arity": {
			swap(t, s.text, `"index":1`, `"index":2`), place{0, 0, single + ".path[0].index"}, "integer from 0 to 1",
		},
		"index of 2^64": {
			swap(t, s.text, `"index":1`, `"index":18446744073709551616`), place{0, 0, single + ".path[0].index"},
			"found the number",
		},
		"node of 2^64": {
			cut(t, s.text, `"node":`, `}`, `18446744073709551616`), place{0, 0, "labeling_proofs[0].node"},
			"found the number",
		},
		"path without elements": {
			cut(t, s.text, `"path":{"path":`, `}}}}`, `[]`), place{0, 0, single + ".path"}, "0 path elements, want 6",
		},
		"two hashes in a binary tree": {
			swap(t, s.text, `]],"index"`, `],[`+listOf(32, "1")+`]],"index"`), place{0, 0, single + ".path[0].hashes"},
			"more than 1 32-byte values",
		},
		"one parent's label too few": {
			cut(t, s.text, `"labeling_proofs":[{"parents":[[`, `],`, listOf(32, "1")+`]]},{"parents":[[1`),
			place{0, 0, "labeling_proofs[0].parents"}, "1 32-byte values, want 37",
		},
		"rows missing": {
			cut(t, s.text, `"rows":[`, `],"_h"`, ``), place{0, 0, "replica_column_proofs.c_x.column.rows"},
			"0 32-byte values, want 2",
		},
		"no parents": {
			cut(t, s.text, `"drg_parents":`, `,"exp_parents"`, `[]`), place{0, 0, "replica_column_proofs.drg_parents"},
			"0 columns, want 6",
		},
	} {
		expectRefusal(t, name, c.text, s.claim, c.want, c.words)
	}
}

func TestWrongCountsAreRefused(t *testing.T) {
	t.Parallel()
	s := small(t)
	oneChallenge := mustDecode(t, s.text)
	oneChallenge.VanillaProofs[0] = oneChallenge.VanillaProofs[0][:1]
	expectRefusal(t, "one challenge too few", jsonOf(t, oneChallenge), s.claim,
		place{0, -1, "vanilla_proofs.StackedDrg2KiBV1"}, "1 challenges, want 2")
	interactive := swap(t, reordered(t, foreignSamples(t)[1].text), "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep",
		"StackedDrg2KiBV1_1")
	expectRefusal(t, "partitions of another family", interactive, s.claim, top("vanilla_proofs"),
		"13 partitions, want 1")
}
