package bus_test

import (
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, subject string
		want             bool
	}{
		{"a.b", "a.b", true}, {"a.b", "a.c", false}, {"a.b", "a", false}, {"a", "a.b", false},
		{"a.*", "a.b", true}, {"a.*", "a.b.c", false}, {"*.b", "a.b", true}, {"a.*.c", "a.b.c", true},
		{"a.>", "a.b.c", true}, {"a.>", "a", false}, {">", "a.b", true}, {">", "", false},
	} {
		if got := bus.Match(c.pattern, c.subject); got != c.want {
			t.Errorf("Match(%q, %q) = %v", c.pattern, c.subject, got)
		}
	}
}

func TestNamesFromOutsideAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what  string
		check func(string) error
		good  []string
		bad   []string
	}{
		{"subject", func(s string) error { return bus.CheckSubject(s, false) },
			[]string{"a", "c2.synth.n-1", "$KV.x"},
			[]string{"", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "a\n", "é", strings.Repeat("a", 600)}},
		{"pattern", func(s string) error { return bus.CheckSubject(s, true) },
			[]string{"a.*", "a.>", ">", "*", "*.a.>"}, []string{"a*", ">.a", "a.>.b", "a>", ""}},
		{"key", bus.CheckKey, []string{"job.1", "a/b=c"}, []string{"", "a.", ".a", "a..b", "a*", "a.>", "a b", "ü"}},
		{"prefix", bus.CheckPrefix, []string{"", "job.", "a.b."}, []string{"job", ".", "a..", "*."}},
		{"name", func(s string) error { return bus.CheckName("stream", s) },
			[]string{"C2_SYNTH", "c2-in-main"}, []string{"", "a.b", "a b", "../x", strings.Repeat("a", 129)}},
		{"object", bus.CheckObjectName, []string{"a b/ü", "x.0"}, []string{"", "a\x00", "\xff", strings.Repeat("a", 513)}},
	} {
		for _, s := range c.good {
			if err := c.check(s); err != nil {
				t.Errorf("%s %q: %v", c.what, s, err)
			}
		}
		for _, s := range c.bad {
			if err := c.check(s); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s %q: %v", c.what, s, err)
			}
		}
	}
}

func TestTopologyTellsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	bad := bus.Topology{
		Replicas: 2,
		Streams: []bus.Stream{
			{Name: "a b", Retention: "odd", BytesMax: -1},
			{Name: "Q", Subjects: []string{"q.*"}, Retention: bus.WorkQueue, DropOldest: true, MessagesMax: -1},
		},
		Buckets: []bus.Bucket{{Name: "x.y"}},
		Objects: []bus.ObjectBucket{{Name: "o", BytesMax: -5}},
	}
	err := bad.Validate()
	if fault.KindOf(err) != fault.Invalid {
		t.Fatal(err)
	}
	for _, want := range []string{
		"replicas", `"a b"`, "no subjects", "odd", "must not drop", "Q: a limit", `"x.y"`, "o: a limit",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	good := bus.Topology{Streams: []bus.Stream{{Name: "Q", Subjects: []string{"q.*"}, Retention: bus.WorkQueue}}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	c := bus.Consumer{Stream: "Q", Name: "w/1", Subject: "q..", AckWait: 1, HeldMax: -1}
	if err := c.Validate(); fault.KindOf(err) != fault.Invalid || strings.Count(err.Error(), "\n") != 3 {
		t.Error(err)
	}
}
