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
	open := func(f facts) facts {
		f.BookOpen, f.Complete = true, true
		return f
	}
	for name, c := range map[string]struct {
		facts facts
		want  reconcile.Repair
	}{
		"all agree":                         {open(facts{Owner: true, Stage: job.Proving, Granted: true, Held: true}), reconcile.None},
		"B48 reserved and claimed, not out": {open(facts{Owner: true, Stage: job.Reserved, Granted: true}), reconcile.Publish},
		"reserved and started":              {open(facts{Owner: true, Stage: job.Reserved, Granted: true, Live: true}), reconcile.None},
		"claimed, reservation gone":         {open(facts{Owner: true, Stage: job.Reserved}), reconcile.HandBack},
		"worker gone, lease runs":           {open(facts{Owner: true, Stage: job.Synthesizing, Granted: true}), reconcile.None},
		"ledger forgot what runs":           {open(facts{Owner: true, Stage: job.Sealed, Held: true}), reconcile.Declare},
		"nobody has it":                     {open(facts{Owner: true, Stage: job.Proving}), reconcile.Lose},
		"nobody has it, but a worker":       {open(facts{Owner: true, Stage: job.Proving, Live: true}), reconcile.None},
		"nobody has it, book unreadable": {
			facts{Owner: true, Stage: job.Proving, BookOpen: true}, reconcile.None,
		},
		"result on its way, bytes back": {open(facts{Owner: true, Stage: job.Proved, Granted: true}), reconcile.Release},
		"result on its way":             {open(facts{Owner: true, Stage: job.Proved}), reconcile.None},
		"node gone, lease runs":         {facts{Owner: true, Stage: job.Proving, Granted: true, NodeGone: true}, reconcile.None},
		"node gone, ledger forgot":      {facts{Owner: true, Stage: job.Proving, NodeGone: true}, reconcile.Lose},
		"ledger not declared yet":       {facts{Owner: true, Stage: job.Reserved, Complete: true}, reconcile.None},
		"B48 reserved without record":   {open(facts{Granted: true}), reconcile.Release},
		"B34 stale attempt runs":        {open(facts{Granted: true, Live: true}), reconcile.Cancel},
		"stale attempt holds bytes":     {open(facts{Granted: true, Held: true}), reconcile.Cancel},
		"stale, book unreadable":        {facts{Granted: true, BookOpen: true}, reconcile.None},
		"stale on a node that is gone":  {facts{Granted: true, Held: true, NodeGone: true}, reconcile.None},
		"nothing anywhere":              {open(facts{}), reconcile.None},
		"under way":                     {open(facts{Granted: true, UnderWay: true}), reconcile.None},
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
