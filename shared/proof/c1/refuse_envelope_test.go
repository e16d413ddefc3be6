package c1

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// textRefusal is a text with the place of its refusal and words of the reason.
type textRefusal struct {
	text  []byte
	want  place
	words string
}

// envelopeText writes an envelope from the JSON of its values.
func envelopeText(number, phase1, size string) []byte {
	return fmt.Appendf(nil, `{"SectorNum":%s,"Phase1Out":%s,"SectorSize":%s}`, number, phase1, size)
}

// phase1Out is the small sample as an envelope carries it, with its quotes.
func phase1Out(t testing.TB) string {
	t.Helper()
	return `"` + base64.StdEncoding.EncodeToString(bytes.TrimSpace(small(t).text)) + `"`
}

// F04 and F21: the values of the envelope.
func TestB03Envelope(t *testing.T) {
	t.Parallel()
	quotedCode := phase1Out(t)
	cases := map[string]textRefusal{
		"SectorNum -1": {envelopeText("-1", quotedCode, "2048"), top("SectorNum"), "found the number -1"},
		"SectorNum 2^63": {
			envelopeText("9223372036854775808", quotedCode, "2048"), top("SectorNum"), "found the number",
		},
		"another size": {
			envelopeText("7", quotedCode, "34359738368"), top("SectorSize"), "is not that of registered_proof",
		},
		"Phase1Out null": {envelopeText("7", "null", "2048"), top("Phase1Out"), "found null"},
		"Phase1Out list": {envelopeText("7", "[1]", "2048"), top("Phase1Out"), "found a list"},
		"SectorNum missing": {
			[]byte(`{"Phase1Out":` + quotedCode + `,"SectorSize":2048}`), top("SectorNum"), "missing key",
		},
		"SectorSize twice": {
			[]byte(`{"SectorNum":7,"SectorSize":2048,"SectorSize":34359738368}`), nowhere, "duplicate key SectorSize",
		},
	}
	for _, size := range []string{
		"0", "-1", "-2147483648", "2147483648", "9223372036854775808", "18446744073709551616", "3.4e10", "2048.0", "02048",
		"4096", `"34359738368"`, "null", "[]",
	} {
		const words = "unsupported sector size"
		cases["SectorSize "+size] = textRefusal{envelopeText("7", quotedCode, size), top("SectorSize"), words}
	}
	for name, c := range cases {
		expectRefusal(t, name, c.text, Claim{}, c.want, c.words)
	}
	got := refusalOf(t, envelopeText("7", quotedCode, "0"), Claim{})
	if !strings.Contains(got.Error(), "34359738368 (32GiB)") {
		t.Errorf("error %q does not list the supported sizes", got)
	}
}

// F23: the base64 inside.
func TestB01Base64(t *testing.T) {
	t.Parallel()
	quotedCode := phase1Out(t)
	for name, c := range map[string]textRefusal{
		"padding left out": {envelopeText("7", `"e30"`, "2048"), top("Phase1Out"), "not standard base64"},
		"nothing":          {envelopeText("7", `""`, "2048"), nowhere, "empty input"},
		"other alphabet": {
			envelopeText("7", `"`+strings.Repeat("e30-", 100)+`"`, "2048"), top("Phase1Out"), "not standard base64",
		},
		"raw line feeds": {
			envelopeText("7", quotedCode[:77]+"\n"+quotedCode[77:], "2048"), top("Phase1Out"), "control character",
		},
		"line feeds": {
			envelopeText("7", quotedCode[:77]+`\n`+quotedCode[77:], "2048"), top("Phase1Out"), "not standard base64",
		},
		"letter removed": {envelopeText("7", quotedCode[:4001]+quotedCode[4002:], "2048"), place{0, 0, ""}, ""},
		"text behind padding": {
			envelopeText("7", `"e30=e30="`, "2048"), top("Phase1Out"), "not standard base64",
		},
		"text behind padding, escaped": {
			envelopeText("7", `"\u0065\u00330=e"`, "2048"), top("Phase1Out"), "not standard base64",
		},
		"bits behind the end": {envelopeText("7", `"e31="`, "2048"), top("Phase1Out"), "not standard base64"},
		"cut text": {
			envelopeText("7", `"`+base64.StdEncoding.EncodeToString(small(t).text[:4491])+`"`, "2048"), place{0, 0, ""},
			"byte 4491 of the decoded Phase1Out",
		},
		"gzip": {envelopeText("7", `"H4sIAAAA"`, "2048"), nowhere, "gzip"},
		"envelope in envelope": {
			envelopeText("7", `"`+base64.StdEncoding.EncodeToString(envelopeText("7", quotedCode, "2048"))+`"`, "2048"),
			top("registered_proof"), "missing key registered_proof",
		},
		"string without end": {[]byte(`{"Phase1Out":"e30`), top("Phase1Out"), "input ends inside a text"},
	} {
		got := refusalOf(t, c.text, Claim{})
		// Where a damaged text breaks is the luck of the damage: these rows state only that it does.
		if c.want == (place{0, 0, ""}) && got != nil {
			c.want = place{got.Partition, got.Challenge, got.Field}
		}
		expectRefusal(t, name, c.text, Claim{}, c.want, c.words)
	}
}

func TestEnvelopeIsReadInAnyOrderAndSpelling(t *testing.T) {
	t.Parallel()
	s := small(t)
	// Two spaces in front make groups of four characters with every kind of end.
	want := mustDecode(t, s.text)
	for pad := range 3 {
		code := base64.StdEncoding.EncodeToString(append(bytes.Repeat([]byte(" "), pad), s.text...))
		escaped := strings.NewReplacer("/", `\/`, "+", `\u002b`).Replace(code)
		for name, text := range map[string]string{
			"declared order": `{"SectorNum":4243,"Phase1Out":"` + code + `","SectorSize":2048}`,
			"reverse order":  `{"SectorSize":2048,"Phase1Out":"` + code + `","SectorNum":4243}` + "\n",
			"escaped":        `{"SectorNum":4243,"Phase1Out":"` + escaped + `","SectorSize":2048}`,
			"all escaped":    `{"SectorNum":4243,"SectorSize":2048,"Phase1Out":"\u0020\u0020"}`,
			"extra keys":     `{"extra":0,"SectorNum":4243,"sectorsize":5,"Phase1Out":"` + code + `","SectorSize":2048}`,
		} {
			if name == "all escaped" {
				var b strings.Builder
				for _, c := range []byte(code[:4000]) {
					fmt.Fprintf(&b, `\u%04X`, c)
				}
				text = strings.Replace(text, `\u0020\u0020`, b.String()+code[4000:], 1)
			}
			input, err := Decode(strings.NewReader(text), 0)
			if err != nil {
				t.Errorf("%s, pad %d: %v", name, pad, err)
				continue
			}
			if diff := diffOutputs(want, input.Output); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff(&Envelope{SectorNumber: 4243, SectorSize: sdr.Size2KiB}, input.Envelope); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if warnings := len(input.Warnings); (warnings == 2) != (name == "extra keys") {
				t.Errorf("%s: warnings %q", name, input.Warnings)
			}
		}
	}
}
