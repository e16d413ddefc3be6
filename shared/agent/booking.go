package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// bookVersion is the version of the files that this build writes and reads.
const bookVersion = 1

// Owner is the worker that holds a booking.
type Owner struct {
	// Instance names one start of one worker; Role is "synth" or "gpu".
	Instance string          `json:"instance"`
	Role     string          `json:"role"`
	Process  handoff.Process `json:"process"`
}

// Booking is what one attempt holds on this node.
type Booking struct {
	Version int         `json:"v"`
	Attempt job.Attempt `json:"attempt"`
	Circuit string      `json:"circuit,omitempty"`
	Device  job.Device  `json:"device,omitempty"`
	Stage   job.Stage   `json:"stage"`
	// Amounts are what it holds now; Shrunk is what it gave back already.
	Amounts ledger.Amounts `json:"amounts"`
	Shrunk  ledger.Amounts `json:"shrunk,omitempty"`
	Owner   Owner          `json:"owner"`
	// Handed tells that the owner has passed it on and nobody has taken it yet: the sealed segment holds it.
	Handed bool      `json:"handed,omitempty"`
	At     time.Time `json:"at"`
	// TraceParent is the trace that the attempt belongs to, for whoever goes on with it.
	TraceParent string `json:"trace,omitempty"`
}

// entryBytesMax bounds a file of the book.
const entryBytesMax = 16 << 10

func decodeBooking(name string, content []byte) (*Booking, error) {
	b := new(Booking)
	if err := json.Unmarshal(content, b); err != nil {
		return nil, fault.As(fault.Corrupt, fmt.Errorf("booking %s: %w", name, err))
	}
	if err := b.Amounts.Check(); err != nil {
		return nil, fault.As(fault.Corrupt, fmt.Errorf("booking %s: %w", name, err))
	}
	if b.Version != bookVersion || b.Attempt.String() != name || !instanceForm.MatchString(b.Owner.Instance) {
		return nil, fault.New(fault.Corrupt, "booking %s: version %d of attempt %s by %q", name, b.Version, b.Attempt,
			b.Owner.Instance)
	}
	return b, nil
}

// instanceForm is what may be part of a file name here.
var instanceForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,63}$`)

const assetPrefix = "asset~"

func assetFile(a ledger.Asset) string { return assetPrefix + string(a.Pool) + "~" + a.Name }

func decodeAsset(name string, content []byte) (ledger.Asset, error) {
	var a ledger.Asset
	if err := json.Unmarshal(content, &a); err != nil {
		return a, fault.As(fault.Corrupt, fmt.Errorf("asset %s: %w", name, err))
	}
	if err := a.Check(); err != nil || assetFile(a) != name {
		return a, fault.New(fault.Corrupt, "asset %s: entry of %s in %s: %v", name, a.Name, a.Pool, err)
	}
	return a, nil
}

// Request asks to book an attempt.
type Request struct {
	Attempt job.Attempt
	Circuit string
	Device  job.Device
	// TraceParent is the trace that it belongs to, "" for none.
	TraceParent string
	// Amounts are its whole path's bytes, as the ledger granted them.
	Amounts ledger.Amounts
	// SegmentBytes is the body of its segment, SegmentKind where it is going to lie: a free segment is lent to it at once.
	// 0 for none.
	SegmentBytes bytesize.Bytes
	SegmentKind  handoff.Kind
}

func (r *Request) check() error {
	if _, err := job.ParseAttempt(r.Attempt.String()); err != nil {
		return fault.As(fault.Invalid, err)
	}
	return r.Amounts.Check()
}

// Veto says that a pool of the node has no room, by the node's own book. Its kind is Exhausted.
type Veto struct {
	Pool          ledger.Pool
	NeedBytes     bytesize.Bytes
	FreeBytes     bytesize.Bytes
	CapacityBytes bytesize.Bytes
	// Holders are the largest bookings and assets of that pool, "name amount" each.
	Holders []string
}

// Error implements error.
func (v *Veto) Error() string {
	text := fmt.Sprintf("node's book: %s needs %s, has %s free of %s", v.Pool, v.NeedBytes, v.FreeBytes, v.CapacityBytes)
	if len(v.Holders) > 0 {
		text += "; held by " + strings.Join(v.Holders, ", ")
	}
	return text
}

// FaultKind implements fault.Classified.
func (*Veto) FaultKind() fault.Kind { return fault.Exhausted }
