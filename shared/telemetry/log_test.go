package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
)

func noon() time.Time {
	return time.Date(2026, 12, 2, 13, 0, 0, 7_000_000, time.FixedZone("CET", 3600))
}

func TestJSONLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.NewLogger(telemetry.DefaultLogConfig(), &out, noon)
	log.Debug().Msg("not wanted")
	a := job.Attempt{Job: "0190b0e3-0000-7000-8000-000000000001", Partition: 3, Fence: 7}
	err := fmt.Errorf("prove: %w", fault.New(fault.Device, "out of memory"))
	log.Warn().EmbedObject(telemetry.Attempt(a)).EmbedObject(telemetry.Fault{Err: err}).Msg("attempt failed")
	log.Info().EmbedObject(telemetry.Fault{}).Msg("nothing wrong")
	want := `{"level":"warn","c2.job.id":"0190b0e3-0000-7000-8000-000000000001","c2.partition.index":3,"c2.fence":7,` +
		`"c2.fault.kind":"device","error":"prove: out of memory","time":"2026-12-02T12:00:00.007Z",` +
		`"message":"attempt failed"}` + "\n" +
		`{"level":"info","time":"2026-12-02T12:00:00.007Z","message":"nothing wrong"}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestConsoleLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.NewLogger(telemetry.LogConfig{Level: "debug", Format: "console"}, &out, noon)
	log.Info().Str("name", "a b").Int("n", 3).Msg("started")
	if want := "2026-12-02T12:00:00.007Z INF started n=3 name=\"a b\"\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// hostile draws texts that are full of what a terminal obeys.
func hostile(t *rapid.T, label string) string {
	const evil = "\x1b\x00\x07\b\r\n\t\x7f\u0080\u009b\u061c\u200e\u2028\u202e\u2066\ufeff\xff\xc3\"\\ ä日\U0001f600"
	return rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune(evil)), rapid.Rune())).Draw(t, label)
}

// No line of a log can be forged and no terminal driven by how somebody else named something.
func TestForeignTextsStayTexts(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "console"} {
		rapid.Check(t, func(t *rapid.T) {
			var out bytes.Buffer
			log := telemetry.NewLogger(telemetry.LogConfig{Level: "info", Format: format}, &out, noon)
			value, message := hostile(t, "value"), hostile(t, "message")
			log.Error().Str("name", value).Strs("list", []string{value}).Interface("map", map[string]string{value: value}).
				Err(errors.New(value)).Msg(message)
			text := out.String()
			line, ended := strings.CutSuffix(text, "\n")
			if !ended || strings.Contains(line, "\n") {
				t.Fatalf("not one line: %q", text)
			}
			for _, c := range line {
				if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == unicode.ReplacementChar {
					t.Fatalf("%q in %q", c, line)
				}
			}
			if format != "json" {
				return
			}
			var back map[string]any
			if err := json.Unmarshal([]byte(line), &back); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if want := strings.ToValidUTF8(value, "\ufffd"); strings.ToValidUTF8(back["name"].(string), "\ufffd") != want &&
				len([]rune(value)) == len([]rune(want)) {
				t.Fatalf("name %q came back as %q", value, back["name"])
			}
		})
	}
}

func TestLogConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := telemetry.DefaultLogConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []telemetry.LogConfig{{Level: "loud", Format: "json"}, {Level: "info", Format: "xml"}, {}} {
		if err := c.Validate(); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestASecretShowsItselfToNobody(t *testing.T) {
	t.Parallel()
	secret := telemetry.NewSecret("hunter2")
	pair := struct {
		User   string
		Pass   telemetry.Secret
		hidden telemetry.Secret
	}{"me", secret, secret}
	var out bytes.Buffer
	log := telemetry.NewLogger(telemetry.DefaultLogConfig(), &out, noon)
	log.Info().Stringer("a", secret).Interface("b", pair).
		Interface("c", map[telemetry.Secret]telemetry.Secret{secret: secret}).
		Str("d", fmt.Sprintf("%s %v %q %x %d %+v %#v %T", secret, secret, secret, secret, secret, pair, pair, secret)).
		Err(fmt.Errorf("login with %s", secret)).Msg("shown")
	slog.New(slog.NewTextHandler(&out, nil)).Info("shown", "e", secret, "f", &pair, "g", secret.LogValue())
	text, err := json.Marshal(pair)
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{"hunter2", fmt.Sprintf("%x", "hunter2")} {
		if all := out.String() + string(text); strings.Contains(all, leak) {
			t.Errorf("shown:\n%s", all)
		}
	}
	if secret.Reveal() != "hunter2" || (telemetry.Secret{}).Reveal() != "" {
		t.Error("the secret is lost")
	}
}
