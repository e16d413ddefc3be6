package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/fault"
)

type natsConfig struct {
	URLs      []string `doc:"Servers."`
	CredsFile string   `doc:"Credentials."`
}

func (c *natsConfig) Validate() error {
	var p config.Problems
	p.Check(len(c.URLs) > 0, "urls", "must name a server")
	p.Check(!strings.HasSuffix(c.CredsFile, "/"), "creds_file", "is a folder: %s", c.CredsFile)
	return p.Err()
}

type base struct {
	Node string `doc:"Name."`
}

type limits struct {
	SpillBytesMax bytesize.Bytes            `doc:"Most bytes."`
	Budget        map[string]bytesize.Bytes `doc:"Of devices."`
	Ages          []time.Duration           `doc:"Steps."`
}

type role struct {
	base
	Slots  int           `doc:"How many."`
	Ratio  float64       `doc:"Part."`
	Debug  bool          `doc:"More."`
	Lease  time.Duration `doc:"How long."`
	Port   uint16        `doc:"Where."`
	NATS   natsConfig    `doc:"Where the bus is."`
	Limits limits        `doc:"Bounds."`
	Hidden func()        `toml:"-"`
	secret int
}

func (c *role) Validate() error {
	var errs []error
	if c.Slots < 0 {
		errs = append(errs, errors.New("slots are negative"))
	}
	if c.Lease > 24*time.Hour && c.Debug {
		errs = append(errs, fmt.Errorf("lease is too long to debug"))
	}
	// A parent that asks its child itself.
	if err := c.NATS.Validate(); err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			errs = append(errs, fmt.Errorf("nats.%s", line))
		}
	}
	return errors.Join(errs...)
}

func defaults() *role {
	return &role{
		base: base{Node: "n1"}, Slots: 2, Ratio: 0.5, Lease: 15 * time.Second, Port: 4222,
		NATS:   natsConfig{URLs: []string{"nats://127.0.0.1:4222"}},
		Limits: limits{SpillBytesMax: 64 * bytesize.GiB, Ages: []time.Duration{time.Minute}}, secret: 7,
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "role.toml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestLaterSourcesWin(t *testing.T) {
	t.Parallel()
	c := defaults()
	file := write(t, `
node = "file"
slots = 3
lease = "1h30m"
[nats]
urls = ["nats://a:1", "nats://b:2"]
creds_file = "/etc/file.creds"
[limits]
spill_bytes_max = "1.5GiB"
[limits.budget]
gpu0 = "20GiB"
gpu1 = 4096
`)
	table, err := config.Load(c, config.Sources{
		File: file,
		Environ: []string{
			"HOME=/root", "PROOFRACK_SLOTS=4", "PROOFRACK_NATS_CREDS_FILE=/etc/env.creds", "PROOFRACK_PORT=",
			"PROOFRACK_LIMITS_AGES=1s, 2m,7d",
		},
		Set: []string{"slots=5", "nats.urls=nats://c:3", "slots=6", "debug=true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Node, want.Slots, want.Lease, want.Debug = "file", 6, 90*time.Minute, true
	want.NATS = natsConfig{URLs: []string{"nats://c:3"}, CredsFile: "/etc/env.creds"}
	want.Limits = limits{
		SpillBytesMax: 3 << 29, Budget: map[string]bytesize.Bytes{"gpu0": 20 << 30, "gpu1": 4096},
		Ages: []time.Duration{time.Second, 2 * time.Minute, 7 * 24 * time.Hour},
	}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(role{}, base{})); diff != "" {
		t.Error(diff)
	}
	wantRows := []config.Row{
		{"node", `"file"`, "file " + file},
		{"slots", "6", "flag --set slots"},
		{"ratio", "0.5", "default"},
		{"debug", "true", "flag --set debug"},
		{"lease", `"1h30m"`, "file " + file},
		{"port", "4222", "default"},
		{"nats.urls", `["nats://c:3"]`, "flag --set nats.urls"},
		{"nats.creds_file", `"/etc/env.creds"`, "environment PROOFRACK_NATS_CREDS_FILE"},
		{"limits.spill_bytes_max", `"1536MiB"`, "file " + file},
		{"limits.budget", `{ "gpu0" = "20GiB", "gpu1" = "4KiB" }`, "file " + file},
		{"limits.ages", `["1s", "2m", "7d"]`, "environment PROOFRACK_LIMITS_AGES"},
	}
	if diff := cmp.Diff(wantRows, table.Rows()); diff != "" {
		t.Error(diff)
	}
	var text strings.Builder
	if err := table.Print(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\nslots                   6 ") || strings.Count(text.String(), "\n") != 12 {
		t.Errorf("printed:\n%s", text.String())
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	file := write(t, `
slot = 3
ratio = "half"
lease = 30
nats = { urls = [], creds_file = "x/", urll = "y" }
slots = -1
"limits.ages" = ["1s"]
[limits]
spill_bytes_max = "64 parsec"
budget = { gpu0 = true }
ages = ["1s", 5]
[nodes]
x = 1
`)
	_, err := config.Load(defaults(), config.Sources{
		File:    file,
		Environ: []string{"PROOFRACK_NATS_CRED_FILE=a", "PROOFRACK_PORT=70000", "PROOFRACK_SERVER=s", "PROOFRACK_DEBUG=yes"},
		Foreign: []string{"PROOFRACK_SERVER"},
		Set:     []string{"urls=x", "slots", "lease=5 minutes"},
	})
	var report *config.Error
	if !errors.As(err, &report) || fault.KindOf(err) != fault.Invalid {
		t.Fatalf("%v (%T)", err, err)
	}
	var got []string
	for _, p := range report.Problems {
		p.Source = strings.Replace(p.Source, file, "FILE", 1)
		got = append(got, p.Error())
	}
	want := []string{
		`"slots" is not section.key=value (flag --set)`,
		`slots are negative`,
		`unknown variable: did you mean PROOFRACK_NATS_CREDS_FILE? (environment PROOFRACK_NATS_CRED_FILE)`,
		`ratio: is a string, but a number is wanted (file FILE)`,
		`debug: "yes" is neither true nor false (environment PROOFRACK_DEBUG)`,
		`lease: "30" is not a time span with a unit like 30s, 5m, 1h30m or 7d (file FILE)`,
		`lease: "5 minutes" is not a time span with a unit like 30s, 5m, 1h30m or 7d (flag --set lease)`,
		`port: "70000" is not a whole number in range (environment PROOFRACK_PORT)`,
		`nats.urls: must name a server`,
		`nats.creds_file: is a folder: x/`,
		`limits.spill_bytes_max: amount of bytes "64 parsec" is not a number with a unit like 512MiB (file FILE)`,
		`limits.budget: "gpu0": is a boolean, but a text or a number with a unit is wanted (file FILE)`,
		`limits.ages: element 1: "5" is not a time span with a unit like 30s, 5m, 1h30m or 7d (file FILE)`,
		`limits.ages: unknown key (file FILE)`,
		`nats.urll: unknown key: did you mean nats.urls? (file FILE)`,
		`nodes: unknown key: did you mean node? (file FILE)`,
		`slot: unknown key: did you mean slots? (file FILE)`,
		`urls: unknown key: did you mean nats.urls? (flag --set urls)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%v", diff, err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "configuration has 18 problems:\n  ") {
		t.Errorf("text: %s", text)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.toml")
	for name, c := range map[string]struct {
		from config.Sources
		kind fault.Kind
		text string
	}{
		"missing":  {config.Sources{File: missing}, fault.NotFound, missing},
		"optional": {config.Sources{File: missing, FileOptional: true}, "", ""},
		"folder":   {config.Sources{File: t.TempDir()}, fault.Invalid, "is a directory"},
		"syntax":   {config.Sources{File: write(t, "slots = 3\nlease = = 3\n")}, fault.Invalid, "role.toml:2:9: "},
		"twice":    {config.Sources{File: write(t, "slots = 3\nslots = 4\n")}, fault.Invalid, "slots"},
		"long": {config.Sources{File: write(t, strings.Repeat("#"+strings.Repeat("x", 1022)+"\n", 1025))},
			fault.Invalid, "longer than 1 MiB"},
		"value for a table": {config.Sources{File: write(t, "nats = 3")}, fault.Invalid,
			"nats: is a whole number, but a table is wanted"},
		"table for a value": {config.Sources{File: write(t, "[slots]\nx = 3")}, fault.Invalid,
			"slots: is a table, but a whole number in range is wanted"},
	} {
		_, err := config.Load(defaults(), c.from)
		if fault.KindOf(err) != c.kind || c.kind != "" && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v (%s), want %s, %q", name, err, fault.KindOf(err), c.kind, c.text)
		}
	}
}

func TestListsAndMapsOutsideOfTheFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nats.urls=a, b,,c":                    `["a", "b", "c"]`,
		`nats.urls=["a,b", "c"]`:               `["a,b", "c"]`,
		"limits.budget=gpu0=1GiB,gpu1=512MiB":  `{ "gpu0" = "1GiB", "gpu1" = "512MiB" }`,
		`limits.budget={ gpu0 = "1GiB" }`:      `{ "gpu0" = "1GiB" }`,
		`limits.budget=gpu0`:                   `error: "gpu0" is not name=value`,
		"nats.urls=[\"a\"]\nslots = 9":         "error: is not a TOML list or table in one line",
		`limits.ages=1s,x`:                     `error: element 1: "x" is not a time span`,
		`node=nats://u:p@h:1`:                  `"nats://***@h:1"`,
		"nats.urls=redis://:p/x@h:1,nats://t@": `["redis://***@h:1", "nats://***@"]`,
		"node=a\x1b[31m\n\"\u202e":             `"a\u001B[31m\u000A\"\u202E"`,
		"lease=1d12h":                          `"36h"`,
		"lease=-5s":                            `"-5s"`,
		"lease=0":                              `"0s"`,
		"lease=1d-5s":                          "error: ",
		"lease=999999d":                        "error: ",
		"ratio=NaN":                            "error: ",
		"ratio=1e3":                            "1000.0",
		"slots=0x10":                           "error: ",
		"port=-1":                              "error: ",
	} {
		table, err := config.Load(defaults(), config.Sources{Set: []string{text}})
		if wantErr, fails := strings.CutPrefix(want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), wantErr) {
				t.Errorf("%s: %v, want %q", text, err, wantErr)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		key, _, _ := strings.Cut(text, "=")
		for _, row := range table.Rows() {
			if row.Key == key && row.Value != want {
				t.Errorf("%s: %s, want %s", text, row.Value, want)
			}
		}
	}
}

func TestAPasswordIsNotPrintedInAnError(t *testing.T) {
	t.Parallel()
	_, err := config.Load(defaults(), config.Sources{Set: []string{"lease=redis://:hunter2@host"}})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestDurationsAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(0, int64(90*24*time.Hour)).Draw(t, "d"))
		switch rapid.IntRange(0, 3).Draw(t, "whole") {
		case 1:
			want = want.Truncate(time.Minute)
		case 2:
			want = want.Truncate(time.Hour)
		case 3:
			want = want.Truncate(24 * time.Hour)
		}
		c := defaults()
		c.Lease = want
		table, err := config.Load(c, config.Sources{})
		if err != nil {
			t.Fatal(err)
		}
		back := defaults()
		text := strings.Trim(table.Rows()[4].Value, `"`)
		if _, err := config.Load(back, config.Sources{Set: []string{"lease=" + text}}); err != nil || back.Lease != want {
			t.Fatalf("%s -> %s -> %s, %v", want, text, back.Lease, err)
		}
	})
}

func TestProgramMistakesPanic(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]any{
		"no pointer": role{},
		"no struct":  new(int),
		"channel":    &struct{ C chan int }{},
		"pointer":    &struct{ P *int }{},
		"same variable": &struct {
			A  struct{ BC int } `toml:"a"`
			AB struct{ C int }  `toml:"a_bc"`
			X  int              `toml:"a_bc_c"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			_, _ = config.Load(cfg, config.Sources{})
		}()
	}
}

// flags stands for pflag.FlagSet.
type flags struct {
	texts map[string]*string
	lists map[string]*[]string
}

func (f flags) StringVar(p *string, name, value, _ string) { *p, f.texts[name] = value, p }
func (f flags) StringArrayVar(p *[]string, name string, value []string, _ string) {
	*p, f.lists[name] = value, p
}

func TestBindFillsSources(t *testing.T) {
	t.Parallel()
	f := flags{map[string]*string{}, map[string]*[]string{}}
	from := config.Sources{File: "/etc/proofrack/role.toml", FileOptional: true}
	from.Bind(f)
	if from.File != "/etc/proofrack/role.toml" {
		t.Errorf("default file %q", from.File)
	}
	*f.lists["set"] = append(*f.lists["set"], "slots=9")
	*f.texts["config"] = ""
	c := defaults()
	if _, err := config.Load(c, from); err != nil || c.Slots != 9 {
		t.Errorf("slots %d, %v", c.Slots, err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("slots = 3\n[nats]\nurls = ['a']\n", "limits.budget=gpu0=1GiB")
	f.Add("[limits.budget]\nx = 1\n", `nats.urls=["a"]`)
	f.Add("\"limits.ages\" = []\n", "lease=1d")
	f.Add("nats = 3", "=")
	f.Fuzz(func(t *testing.T, file, set string) {
		c := defaults()
		table, err := config.Load(c, config.Sources{File: write(t, file), Set: []string{set}})
		if (err == nil) != (table != nil) {
			t.Fatalf("%v with table %v", err, table)
		}
		if err != nil && fault.KindOf(err) != fault.Invalid {
			t.Fatalf("kind %s: %v", fault.KindOf(err), err)
		}
		if err != nil {
			return
		}
		// What was loaded is said in a form that loads to the same.
		again := defaults()
		second, err := config.Load(again, config.Sources{File: write(t, config.Uncommented(config.Example("", c)))})
		if err != nil {
			t.Fatalf("%v\n%s", err, config.Example("", c))
		}
		for i, row := range second.Rows() {
			if row.Value != table.Rows()[i].Value {
				t.Fatalf("%s: %s, then %s", row.Key, table.Rows()[i].Value, row.Value)
			}
		}
	})
}
