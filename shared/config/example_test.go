package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/config/configtest"
)

func TestTheExampleIsAnnotatedAndLoadsToTheDefaults(t *testing.T) {
	t.Parallel()
	configtest.Example(t, "testdata/example_role.toml", "A role of the tests.", func() role { return *defaults() })
}

// record stands for a test that may fail.
type record struct {
	testing.TB
	failed bool
}

func (r *record) Helper()               {}
func (r *record) Errorf(string, ...any) { r.failed = true }
func (r *record) Fatal(...any)          { panic(r) }
func (r *record) Fatalf(string, ...any) { panic(r) }
func (r *record) TempDir() string       { return r.TB.TempDir() }

func TestTheExampleCheckBites(t *testing.T) {
	t.Setenv(configtest.RewriteVariable, "") // these files are wrong on purpose
	type bare struct{ Slots int }
	for name, check := range map[string]func(t testing.TB){
		"key without doc": func(t testing.TB) {
			configtest.Example(t, "testdata/example_bare.toml", "", func() bare { return bare{} })
		},
		"file out of date": func(t testing.TB) {
			configtest.Example(t, "testdata/example_role.toml", "A role of the tests.", func() role {
				c := *defaults()
				c.Slots++
				return c
			})
		},
		"no file": func(t testing.TB) {
			configtest.Example(t, "testdata/missing.toml", "", func() base { return base{} })
		},
		"defaults that are not valid": func(t testing.TB) {
			configtest.Example(t, "testdata/example_role.toml", "", func() role { return role{} })
		},
	} {
		r := &record{TB: t}
		func() {
			defer func() {
				if p := recover(); p != nil && p != any(r) {
					panic(p)
				} else if p != nil {
					r.failed = true
				}
			}()
			check(r)
		}()
		if !r.failed {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestUndocumentedNamesKeysAndTables(t *testing.T) {
	t.Parallel()
	got := config.Undocumented(&struct {
		A int
		B int `doc:"x"`
		C struct {
			SRSFile, SpillBytesMax, URLs, GPUID int
		}
		D struct{ E int } `doc:"y" toml:"other"`
	}{})
	want := []string{"a", "c", "c.srs_file", "c.spill_bytes_max", "c.urls", "c.gpuid", "other.e"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
