package reconcile_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/coordinator/internal/reconcile"
	"github.com/proofrack/proofrack/shared/job"
)

func TestTheTableOfTruths(t *testing.T) {
	t.Parallel()
	type facts = reconcile.Facts
	const (
		reserved, synthesizing, sealed = job.Reserved, job.Synthesizing, job.Sealed
		proving, proved                = job.Proving, job.Proved
		none, publish                  = reconcile.None, reconcile.Publish
	)
	open := func(f facts) facts {
		f.BookOpen, f.Complete = true, true
		return f
	}
	for name, c := range map[string]struct {
		facts facts
		want  reconcile.Repair
	}{
		"all agree":                         {open(facts{Owner: true, Stage: proving, Granted: true, Held: true}), none},
		"B48 reserved and claimed, not out": {open(facts{Owner: true, Stage: reserved, Granted: true}), publish},
		"reserved and started":              {open(facts{Owner: true, Stage: reserved, Granted: true, Live: true}), none},
		"claimed, reservation gone":         {open(facts{Owner: true, Stage: reserved}), reconcile.HandBack},
		"worker gone, lease runs":           {open(facts{Owner: true, Stage: synthesizing, Granted: true}), none},
		"ledger forgot what runs":           {open(facts{Owner: true, Stage: sealed, Held: true}), reconcile.Declare},
		"nobody has it":                     {open(facts{Owner: true, Stage: proving}), reconcile.Lose},
		"nobody has it, but a worker":       {open(facts{Owner: true, Stage: proving, Live: true}), none},
		"nobody has it, book unreadable": {
			facts{Owner: true, Stage: proving, BookOpen: true}, none,
		},
		"result on its way, bytes back": {open(facts{Owner: true, Stage: proved, Granted: true}), reconcile.Release},
		"result on its way":             {open(facts{Owner: true, Stage: proved}), none},
		"result overdue, bytes back":    {open(facts{Owner: true, Stage: proved, Overdue: true}), reconcile.Lose},
		"result overdue, lease runs": {
			open(facts{Owner: true, Stage: proved, Overdue: true, Granted: true, Held: true}), none,
		},
		"result overdue, but held":     {open(facts{Owner: true, Stage: proved, Overdue: true, Held: true}), none},
		"node gone, lease runs":        {facts{Owner: true, Stage: proving, Granted: true, NodeGone: true}, none},
		"node gone, ledger forgot":     {facts{Owner: true, Stage: proving, NodeGone: true}, reconcile.Lose},
		"ledger not declared yet":      {facts{Owner: true, Stage: reserved, Complete: true}, none},
		"B48 reserved without record":  {open(facts{Granted: true}), reconcile.Release},
		"B34 stale attempt runs":       {open(facts{Granted: true, Live: true}), reconcile.Cancel},
		"stale attempt holds bytes":    {open(facts{Granted: true, Held: true}), reconcile.Cancel},
		"stale, book unreadable":       {facts{Granted: true, BookOpen: true}, none},
		"stale on a node that is gone": {facts{Granted: true, Held: true, NodeGone: true}, none},
		"nothing anywhere":             {open(facts{}), none},
		"under way":                    {open(facts{Granted: true, UnderWay: true}), none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reconcile.Judge(c.facts); got != c.want {
				t.Errorf("Judge(%+v) = %s, want %s", c.facts, got, c.want)
			}
		})
	}
}

// Invariants 1 and 2: bytes go back on the node's evidence alone.
func TestNothingIsReleasedWhileTheNodeMayHoldIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		f := reconcile.Facts{
			Owner: flag("owner"), Granted: flag("granted"), BookOpen: flag("open"), NodeGone: flag("gone"),
			Held: flag("held"), Complete: flag("complete"), Live: flag("live"), UnderWay: flag("underway"),
			Overdue: flag("overdue"),
			Stage: rapid.SampledFrom([]job.Stage{
				job.Reserved, job.Synthesizing, job.Sealed, job.Proving, job.Proved,
			}).Draw(t, "stage"),
		}
		r := reconcile.Judge(f)
		if r == reconcile.Release && (f.Held || !f.Complete || f.NodeGone || !f.Granted) {
			t.Fatalf("released without evidence: %+v", f)
		}
		if (r == reconcile.Lose || r == reconcile.HandBack || r == reconcile.Publish) && (!f.Owner || f.Held && !f.NodeGone) {
			t.Fatalf("%s of what a node holds or the record does not name: %+v", r, f)
		}
	})
}
