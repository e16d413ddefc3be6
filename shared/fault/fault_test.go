package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/fault"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	plain := errors.New("disk on fire")
	for name, c := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"nil":               {nil, ""},
		"unclassified":      {plain, fault.Internal},
		"new":               {fault.New(fault.Exhausted, "shm is full"), fault.Exhausted},
		"wrapped":           {fmt.Errorf("map: %w", fault.As(fault.Corrupt, plain)), fault.Corrupt},
		"outermost decides": {fault.As(fault.Device, fault.As(fault.Corrupt, plain)), fault.Device},
		"hint keeps kind":   {fault.WithHint(fault.New(fault.Invalid, "no"), "do"), fault.Invalid},
		"cancelled":         {fmt.Errorf("prove: %w", context.Canceled), fault.Cancelled},
		"deadline":          {context.DeadlineExceeded, fault.Transient},
		"report":            {&fault.Report{Kind: fault.Lost}, fault.Lost},
		"unknown kind":      {&fault.Report{Kind: "weird"}, fault.Internal},
	} {
		if got := fault.KindOf(c.err); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if !errors.Is(fault.As(fault.Device, plain), plain) {
		t.Error("As hides the error it wraps")
	}
}

func TestReportKeepsTheFaultAndNothingHarmful(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("open x: %w", fault.WithHint(fault.New(fault.Invalid, "bad \x1b[31m name\xff"), "rename it"))
	got := fault.ReportOf("intake", err)
	want := &fault.Report{
		Kind: fault.Invalid, Stage: "intake", Message: "open x: bad \uFFFD[31m name\uFFFD", Hint: "rename it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	text, _ := json.Marshal(got)
	var back fault.Report
	if err := json.Unmarshal(text, &back); err != nil || back != *want {
		t.Errorf("%s -> %+v, %v", text, back, err)
	}
	if long := fault.ReportOf("", errors.New(strings.Repeat("x", 1<<20))); len(long.Message) > fault.MessageBytesMax+8 {
		t.Errorf("message of %d bytes", len(long.Message))
	}
	if fault.ReportOf("x", nil) != nil {
		t.Error("a report of no error")
	}
	again := fault.ReportOf("elsewhere", fmt.Errorf("proving: %w", got))
	if again.Stage != "intake" || again.Kind != fault.Invalid || again.Hint != "rename it" {
		t.Errorf("passing a report on changes it: %+v", again)
	}
}
