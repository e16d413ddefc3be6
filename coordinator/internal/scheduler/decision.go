package scheduler

import (
	"fmt"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/shared/job"
)

// Decision is something to do; see the types that implement it. Decisions are carried out in their order.
type Decision interface {
	fmt.Stringer
	decision()
}

// Decisions.
type (
	// Admit asks for an attempt to be reserved, claimed and published. Its outcome comes back as Granted or Refused.
	Admit struct {
		// Attempt's fence is the one that the claim will give.
		Attempt job.Attempt
		Place   Place
		Circuit string
		Needs   Needs
		// From is an ended attempt whose reservation is handed over (Transfer); nil asks for a new one (Reserve). When the
		// Transfer is refused a Release of From follows.
		From *job.Attempt
		// Waited is how long the partition could have gone, Held what held it last ("" when nothing did).
		Waited time.Duration
		Held   Hold
		// Turns are what held it one after another, Held the last of them; nil when that was one thing all the time. At most
		// eight are kept, the latest.
		Turns []HeldSince
	}
	// Release asks to give back the reservation of an attempt whose bytes are gone. It has no outcome; releasing twice
	// must be harmless.
	Release struct {
		Attempt job.Attempt
		Node    job.Node
	}
	// Evict asks for an idle asset to be unloaded. Its outcome comes back as Evicted.
	Evict struct {
		Node  job.Node
		Asset string
		// For is the waiter that needs the bytes.
		For job.Attempt
	}
	// Refresh asks for the ledger's book of a node, as NodeSeen: a refusal showed that what is known is wrong.
	Refresh struct{ Node job.Node }
	// Quarantine takes a device out until Readmitted.
	Quarantine struct {
		Place  Place
		Reason string
	}
	// Halt says that nothing is admitted until Resumed, since most devices fail.
	Halt struct{ Reason string }
	// Unhalt says that a Halt is over: the devices work again.
	Unhalt struct{}
	// Drifted says that measured peaks are off from what workers compute by more than the configured share, or, when
	// neither Over nor Under is set, not any more.
	Drifted struct{ sizes.Size }
)

func (*Admit) decision()      {}
func (*Release) decision()    {}
func (*Evict) decision()      {}
func (*Refresh) decision()    {}
func (*Quarantine) decision() {}
func (*Halt) decision()       {}
func (*Unhalt) decision()     {}
func (*Drifted) decision()    {}

// String is one line for scripts and debug logs.
func (d *Admit) String() string {
	from := ""
	if d.From != nil {
		from = " from " + d.From.String()
	}
	return fmt.Sprintf("admit %s to %s%s", d.Attempt, d.Place, from)
}

// String is one line for scripts and debug logs.
func (d *Release) String() string { return fmt.Sprintf("release %s on %s", d.Attempt, d.Node) }

// String is one line for scripts and debug logs.
func (d *Evict) String() string { return fmt.Sprintf("evict %s on %s for %s", d.Asset, d.Node, d.For) }

// String is one line for scripts and debug logs.
func (d *Refresh) String() string { return fmt.Sprintf("refresh %s", d.Node) }

// String is one line for scripts and debug logs.
func (d *Quarantine) String() string { return fmt.Sprintf("quarantine %s: %s", d.Place, d.Reason) }

// String is one line for scripts and debug logs.
func (d *Halt) String() string { return "halt: " + d.Reason }

// String is one line for scripts and debug logs.
func (d *Drifted) String() string {
	what := "as computed"
	switch {
	case d.Over:
		what = "more than computed"
	case d.Under:
		what = "less than computed"
	}
	return fmt.Sprintf("drift: %s of %s of %s on %q is %s: %s of %s, %s are booked", d.Stage, d.Pool, d.Circuit, d.Kind,
		what, d.P99, d.Computed, d.Booked)
}

// String is one line for scripts and debug logs.
func (d *Unhalt) String() string { return "unhalt" }
