package support_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/support"
)

func TestScrubTakesSecretsOut(t *testing.T) {
	t.Parallel()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, secret, kept string }{
		"seed": {"seed=" + string(seed) + " end", string(seed), " end"},
		"key file": {
			"a\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\nabc\n-----END EC PRIVATE KEY-----\nb", "MHcCAQEE", "\nb",
		},
		"creds file": {"-----BEGIN USER NKEY SEED-----\nxyzzy\n------END USER NKEY SEED------\nb", "xyzzy", "\nb"},
		"cut off":    {"-----BEGIN PRIVATE KEY-----\nMHcCAQEE", "MHcCAQEE", "PRIVATE KEY"},
		"token":      {`jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIz x`, "c2lnbmF0dXJlMTIz", " x"},
		"URL":        {`dial nats://ann:hunter2@host:4222 failed`, "hunter2", "host:4222 failed"},
		"JSON":       {`{"password":"hunter2","node":"n1"}`, "hunter2", `"node":"n1"`},
		"setting":    {"ledger.password = hunter2\nx = 1", "hunter2", "x = 1"},
		"variable":   {"WEB_TOKEN=hunter2 go", "hunter2", " go"},
		"header":     {"Authorization: Bearer hunter2.abc\nx", "hunter2", "\nx"},
	} {
		got := support.Scrub(c.text)
		if strings.Contains(got, c.secret) || !strings.Contains(got, c.kept) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, harmless := range []string{
		`{"job":"01890a5d-ac96-774b-bcce-b302099a8057","c2.node.id":"n1"}`,
		"ledger.password_file  /etc/proofrack/redis.password",
		"nats://host:4222", "SUBJECT", `c2_jobs{state="active"} 1`,
	} {
		if got := support.Scrub(harmless); got != harmless {
			t.Errorf("%q became %q", harmless, got)
		}
	}
}

func TestARecordKeepsTheLastLines(t *testing.T) {
	t.Parallel()
	r := support.New("program", "build")
	r.SetSettings("a = 1")
	for i := range 50_000 {
		fmt.Fprintf(r, `{"n":%d,"text":"%x"}`+"\n", i, rand.Uint64())
	}
	p := r.Report("metrics")
	if len(p.Log) > support.LogBytesMax || !strings.HasPrefix(p.Log, `{"n":`) || !strings.Contains(p.Log, `{"n":49999,`) {
		t.Errorf("%d bytes of log, beginning with %.40q", len(p.Log), p.Log)
	}
	data, err := p.Pack()
	if err != nil || len(data) > support.PackedBytesMax {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	got, err := support.Unpack(data)
	if err != nil || got.Program != "program" || got.Build != "build" || got.Settings != "a = 1" ||
		got.Metrics != "metrics" ||
		!strings.Contains(got.Log, `{"n":49999,`) {
		t.Errorf("%v, %+.200v", err, got)
	}
}

func TestUnpackRefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "large": make([]byte, support.PackedBytesMax+1),
	} {
		if _, err := support.Unpack(data); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
	var none *support.Record
	none.SetSettings("x")
	if n, err := none.Write([]byte("line")); n != 4 || err != nil || none.Report("").Log != "" {
		t.Error("a record that is none keeps something")
	}
}

func FuzzUnpack(f *testing.F) {
	data, err := support.New("p", "b").Report("m").Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(_ *testing.T, data []byte) {
		if p, err := support.Unpack(data); err == nil {
			support.Scrub(p.Log)
		}
	})
}
