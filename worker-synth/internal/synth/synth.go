package synth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// Points of package hook that a synthesis comes by (H8).
const (
	PointAfterClaim   = "synth.after-claim"
	PointMidWrite     = "synth.mid-write" // the first section is written
	PointBeforeSeal   = "synth.before-seal"
	PointAfterSeal    = "synth.after-seal"
	PointAfterPublish = "synth.after-publish"
	PointBeforeAck    = "synth.before-ack"
)

// SliceBytesMax bounds a slice.
const SliceBytesMax = 64 << 20

// Config says how partitions are synthesized.
type Config struct {
	// Workers is how many cores one synthesis uses.
	Workers int
	// Find gives a circuit by its id.
	Find func(id string) (circuit.Circuit, error)
	// CPUsOf gives the processors next to a device; none binds to nothing.
	CPUsOf func(job.Device) []int
	// Check computes every constraint after synthesis by plain arithmetic (slow).
	Check bool
	// Pad is added to every segment, for tests with small circuits.
	Pad bytesize.Bytes
	// Markers has faults carried out that tasks ask for, for tests.
	Markers bool
	// Flight counts slices and scratch; ScratchBytes is what each synthesis counts as scratch, as it is booked.
	Flight       *flight.Recorder
	ScratchBytes bytesize.Bytes
	// Meter measures what syntheses take of this process; nil does not. BallastBytes are taken beside, for tests.
	Meter        *agent.Meter
	BallastBytes bytesize.Bytes
}

// Synth makes segments.
type Synth struct {
	config  Config
	slices  bus.Objects
	spill   *handoff.Spill
	book    *agent.Book
	points  *hook.Points
	log     zerolog.Logger
	mu      sync.Mutex
	layouts map[string]*compact.Layout
}

// New makes one. Slices are read from the bucket, segments made in the spill folders and booked in the book.
func New(
	c Config, slices bus.Objects, spill *handoff.Spill, book *agent.Book, points *hook.Points, log zerolog.Logger,
) *Synth {
	return &Synth{
		config: c, slices: slices, spill: spill, book: book, points: points, log: log,
		layouts: map[string]*compact.Layout{},
	}
}

// Layout is where everything is in a circuit's segments; it is computed once.
func (s *Synth) Layout(c circuit.Circuit) (*compact.Layout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.layouts[c.ID()]; l != nil {
		return l, nil
	}
	l, err := compact.LayoutOf(c)
	if err == nil {
		s.layouts[c.ID()] = l
	}
	return l, err
}

// BodyBytes is the size of a segment's body.
func (s *Synth) BodyBytes(l *compact.Layout) bytesize.Bytes {
	return bytesize.Bytes(l.Bytes()) + s.config.Pad
}

// task is one message.
type task struct {
	wire.SynthTask

	synth *Synth
}

// Decode reads a message of the queue.
func (s *Synth) Decode(data []byte) (attempt.Task, error) {
	t := &task{synth: s}
	if err := wire.Decode(data, &t.SynthTask); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *task) Attempt() job.Attempt           { return t.SynthTask.Attempt }
func (t *task) Target() (job.Node, job.Device) { return t.Node, t.Device }
func (t *task) Stage() job.Stage               { return job.Reserved }
func (t *task) TraceParent() string            { return t.SynthTask.TraceParent }

// making is one attempt on its way.
type making struct {
	*Synth

	task    *task
	run     *attempt.Run
	circuit circuit.Circuit
	layout  *compact.Layout
	held    *agent.Held
	draft   *handoff.Draft
	kind    handoff.Kind
	why     string // the segment lies on disk
	slice   []byte
	input   *flight.Buffer // of the slice
	seconds map[string]float64
	peaks   wire.Peaks
}

// Work synthesizes one partition and announces it.
func (t *task) Work(ctx context.Context, r *attempt.Run) error {
	s := t.synth
	s.points.Hit(ctx, PointAfterClaim)
	c, err := s.config.Find(t.Circuit)
	if err != nil {
		return fault.As(fault.Transient, fmt.Errorf("synthesize attempt %s: %w", r.Attempt(), err))
	}
	m := &making{Synth: s, task: t, run: r, circuit: c, seconds: map[string]float64{}}
	if m.layout, err = s.Layout(c); err != nil {
		return fault.As(fault.Internal, err)
	}
	defer m.dropSlice()
	r.Trace().About(telemetry.String(telemetry.KeyCircuit, t.Circuit))
	r.Trace().Enter(telemetry.SpanFetch)
	witness, err := m.witness(ctx)
	if err != nil {
		return err
	}
	r.Trace().Enter(telemetry.SpanBook)
	err = m.admit(ctx)
	switch {
	case errors.Is(err, agent.ErrHandedOver): // this message came again after the hand-over
		if m.kind, err = s.sealedKind(r.Attempt()); err != nil {
			return err
		}
		return m.announce(ctx)
	case errors.Is(err, agent.ErrBooked): // another process of this node is at it
		return fault.As(fault.Lost, err)
	case err != nil:
		return err
	}
	if err := m.make(ctx, witness); err != nil {
		m.giveBack(ctx)
		return err
	}
	if err := m.announce(ctx); err != nil {
		m.takeBack(ctx)
		return err
	}
	s.points.Hit(ctx, PointBeforeAck)
	return nil
}

// admit books the attempt.
func (m *making) admit(ctx context.Context) error {
	var err error
	m.held, err = m.book.Admit(ctx, agent.Request{
		Attempt: m.run.Attempt(), Circuit: m.circuit.ID(), Device: m.task.Device, Amounts: m.task.Amounts,
		SegmentBytes: m.BodyBytes(m.layout), SegmentKind: m.kinds()[0], TraceParent: m.task.TraceParent(),
	})
	return err
}

// kinds are where the segment may lie, the preferred one first: on disk if that is booked and memory is not.
func (m *making) kinds() []handoff.Kind {
	all := m.spill.Kinds()
	booked := m.task.Amounts
	if booked[ledger.PoolDisk] > 0 && booked[ledger.PoolSHM] == 0 && slices.Contains(all, handoff.Disk) {
		return []handoff.Kind{handoff.Disk}
	}
	return all
}

// make creates the segment, synthesizes into it, seals it and hands it over.
func (m *making) make(ctx context.Context, w circuit.Witness) error {
	began := time.Now()
	m.run.Trace().Enter(telemetry.SpanSegment)
	if err := m.create(ctx); err != nil {
		return err
	}
	m.seconds["segment"] = time.Since(began).Seconds()
	m.run.SetHandoff(string(m.kind), m.why)
	m.run.Trace().About(handoffFacts(string(m.kind), m.why)...)
	if err := m.held.SetStage(ctx, job.Synthesizing); err != nil {
		return err
	}
	m.run.Enter(ctx, job.Synthesizing)
	if err := m.obeyMarker(); err != nil {
		return err
	}
	began = time.Now()
	m.run.Trace().Enter(telemetry.SpanSynthesize, m.shares()...)
	if err := m.synthesize(ctx, w); err != nil {
		return err
	}
	m.seconds["synthesis"] = time.Since(began).Seconds()
	if err := m.run.CheckFence(ctx); err != nil {
		return err
	}
	m.points.Hit(ctx, PointBeforeSeal)
	m.run.Trace().Enter(telemetry.SpanSeal)
	if err := m.draft.Seal(ctx); err != nil {
		return err
	}
	m.points.Hit(ctx, PointAfterSeal)
	m.run.Trace().Enter(telemetry.SpanHandOver)
	if err := m.held.HandOver(ctx); err != nil {
		return err
	}
	m.run.Enter(ctx, job.Sealed)
	return m.draft.HandOver()
}

func (m *making) synthesize(ctx context.Context, w circuit.Witness) error {
	walk := newWatched(w, m.config.CPUsOf(m.task.Device), func() { m.points.Hit(ctx, PointMidWrite) })
	m.run.Follow(walk.progress)
	defer m.run.Follow(nil)
	work := compact.Job{
		Circuit: m.circuit, Witness: walk, Partition: m.run.Attempt().Partition, Workers: m.config.Workers,
	}
	scratch := m.config.Flight.Allocate(
		ledger.ClassScratch, m.config.ScratchBytes, flight.Declared, m.run.Attempt().String())
	defer func() { scratch.Release(); scratch.Gone() }()
	span := m.config.Meter.Begin()
	drop, err := ballast(m.config.BallastBytes)
	if err != nil {
		span.End()
		return fault.As(fault.Exhausted, fmt.Errorf("take ballast: %w", err))
	}
	segment, err := work.Synthesize(ctx, m.draft.Memory()[:m.layout.Bytes()])
	m.measured(span.End())
	drop()
	if err != nil {
		return err
	}
	if !m.config.Check {
		return nil
	}
	if err := segment.Check(m.circuit, m.config.Workers); err != nil {
		return fault.As(fault.Internal, fmt.Errorf("check of attempt %s: synthesis is wrong: %w", m.run.Attempt(), err))
	}
	return nil
}

// measured keeps the peak of a synthesis, as its share of what the process had.
func (m *making) measured(peak agent.Peak) {
	if peak.Bytes > 0 {
		m.peaks = wire.Peaks{job.Synthesizing: {ledger.PoolRAM: peak.Bytes / bytesize.Bytes(peak.Attempts)}}
	}
}

// ballast takes so much memory until it is dropped.
func ballast(bytes bytesize.Bytes) (drop func(), err error) {
	if bytes == 0 {
		return func() {}, nil
	}
	load, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	return func() {
		if err := unix.Munmap(load); err != nil {
			panic(fmt.Sprintf("synth: unmap ballast: %v", err))
		}
	}, err
}

// whyDisk is why a segment lies on disk that was to from the start; "" for one in memory.
func (m *making) whyDisk(kind handoff.Kind) string {
	switch {
	case kind != handoff.Disk:
		return ""
	case !slices.Contains(m.spill.Kinds(), handoff.SHM):
		return "the node has no spill folder in memory"
	}
	return "booked on disk: no room in memory when it was admitted"
}

// create makes the segment in memory, or on disk when memory has no room.
func (m *making) create(ctx context.Context) error {
	spec := handoff.Spec{Attempt: m.run.Attempt(), Circuit: m.circuit.ID(), Bytes: m.BodyBytes(m.layout)}
	var err error
	for i, kind := range m.kinds() {
		spec.Kind, m.why = kind, m.whyDisk(kind)
		if i > 0 {
			var short *handoff.Shortage
			if !errors.As(err, &short) {
				return err
			}
			m.why = "no room in memory: " + short.Error()
			m.log.Warn().Err(err).Stringer("attempt", spec.Attempt).EmbedObject(telemetry.InTrace(m.task.TraceParent())).
				Msg("no room in memory, segment goes to disk")
			if err := m.rebook(ctx, kind); err != nil {
				return err
			}
		}
		near(m.config.CPUsOf(m.task.Device), func() { m.draft, err = m.spill.Create(ctx, spec) })
		if err == nil {
			m.kind = kind
			return nil
		}
	}
	if errors.Is(err, handoff.ErrBusy) { // another process of this node is at it
		return fault.As(fault.Lost, err)
	}
	return err
}

// announce publishes the prove task.
func (m *making) announce(ctx context.Context) error {
	if err := m.run.CheckFence(ctx); err != nil {
		return err
	}
	t := m.task
	body := wire.ProveTask{
		Attempt: m.run.Attempt(), Node: t.Node, Device: t.Device, Circuit: t.Circuit, Segment: handoff.Name(m.run.Attempt()),
		Handoff: string(m.kind), HandoffReason: m.why, Amounts: m.amounts(), Deadline: t.Deadline,
		TraceParent: t.TraceParent(), ProveTaskSince2: wire.Took(m.seconds), Peaks: m.peaks,
	}
	data, err := wire.Encode(&body)
	if err != nil {
		return fault.As(fault.Internal, err)
	}
	if err := m.run.Publish(ctx, bus.Message{
		Subject: wire.ProveSubject(t.Node, t.Device), ID: m.run.Attempt().String(), Data: data,
	}); err != nil {
		return err
	}
	m.points.Hit(ctx, PointAfterPublish)
	return nil
}

func (m *making) amounts() ledger.Amounts {
	if m.held == nil {
		return m.task.Amounts
	}
	return m.held.Booking().Amounts
}
