package residency

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/artifact"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/prover"
)

// ErrMissing is wrapped when a circuit's parameter file is not there.
var ErrMissing = errors.New("parameter file is missing")

// Config says where things are.
type Config struct {
	// Params is the folder of parameter files; Cache is where artifacts are kept, "" for Params.
	Params, Cache string
	// Workers is how many goroutines build an artifact; less than 1 means 1.
	Workers int
	// Find gives a circuit by its id.
	Find func(id string) (circuit.Circuit, error)
	// Progress, when set, is told how many bytes of how many of a circuit's parameters are hashed or decoded. Calls may
	// overlap.
	Progress func(id string, done, total int64)
	// Flight counts what is resident; nil counts nothing.
	Flight *flight.Recorder
}

// Set is what is resident. All methods may be called from several goroutines.
type Set struct {
	config Config

	mu      sync.Mutex
	entries map[string]*entry
}

// entry is one circuit; its lock is the set's.
type entry struct {
	done   chan struct{} // closed when loading ended
	err    error
	res    Resident
	refs   int
	usedAt time.Time

	srs, artifact *flight.Buffer
}

// Resident is one loaded circuit.
type Resident struct {
	Circuit circuit.Circuit
	Params  prover.Params
	// LoadedIn is how long loading took.
	LoadedIn time.Duration
}

// SRSBytes is the size of the mapping.
func (r *Resident) SRSBytes() bytesize.Bytes {
	if r.Params.SRS.Decoded() {
		return bytesize.Bytes(r.Params.SRS.Counts.ImageBytes())
	}
	return bytesize.Bytes(r.Params.SRS.Counts.ParamsBytes())
}

// ArtifactBytes is about what the artifact takes.
func (r *Resident) ArtifactBytes() bytesize.Bytes {
	d := r.Params.Artifact.Density
	return bytesize.Bytes(8 * (len(d.AAux) + len(d.BAux) + len(d.BInputs)))
}

// New makes an empty set.
func New(config Config) *Set { return &Set{config: config, entries: map[string]*entry{}} }

// ParamsPath is where a circuit's parameters are looked for.
func ParamsPath(folder string, c circuit.Circuit) string {
	return filepath.Join(folder, c.ParamsName()+srs.ParamsExtension)
}

// Acquire gives a circuit's parameters, loading them first when they are not resident. They stay until release is
// called, once. Errors: fault.NotFound wrapping ErrMissing, fault.Corrupt for files that must not be used,
// fault.Invalid for an unknown circuit, the context's.
func (s *Set) Acquire(ctx context.Context, id string) (*Resident, func(), error) {
	s.mu.Lock()
	e, ok := s.entries[id]
	if !ok {
		e = &entry{done: make(chan struct{})}
		s.entries[id] = e
		go s.load(context.WithoutCancel(ctx), id, e, s.open)
	}
	e.refs++
	s.mu.Unlock()
	return s.wait(ctx, e)
}

// wait waits until an entry that was referenced is loaded.
func (s *Set) wait(ctx context.Context, e *entry) (*Resident, func(), error) {
	select {
	case <-e.done:
	case <-ctx.Done():
		s.release(e)
		return nil, nil, ctx.Err()
	}
	if e.err != nil {
		s.release(e)
		return nil, nil, e.err
	}
	return &e.res, sync.OnceFunc(func() { s.release(e) }), nil
}

func (s *Set) release(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.refs--
	e.usedAt = time.Now()
}

// load fills an entry; one that could not be filled is forgotten, so that the next Acquire tries again.
func (s *Set) load(
	ctx context.Context, id string, e *entry, open func(ctx context.Context, id string) (Resident, error),
) {
	began := time.Now()
	res, err := open(ctx, id)
	res.LoadedIn = time.Since(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.res, e.err = res, err
	if err != nil {
		delete(s.entries, id)
	} else {
		e.count(s.config.Flight, id)
	}
	close(e.done)
}

// count has what was loaded counted from now to the entry's end.
func (e *entry) count(r *flight.Recorder, id string) {
	where := flight.File
	if e.res.Params.SRS.Decoded() {
		where = flight.Shared
	}
	e.srs = r.Map(ledger.ClassSRS, e.res.SRSBytes(), where, id).Keep()
	e.artifact = r.Allocate(ledger.ClassArtifact, e.res.ArtifactBytes(), flight.Anonymous, id).Keep()
	flight.OnHeap(e.artifact, e.res.Params.Artifact)
}

// end gives back what was loaded. Nobody may be able to get at it any more.
func (e *entry) end() error {
	e.srs.Release()
	e.artifact.Release()
	err := e.res.Params.SRS.Close()
	if err == nil {
		e.srs.Gone()
	}
	e.res = Resident{}
	return err
}

func (s *Set) open(ctx context.Context, id string) (Resident, error) {
	c, err := s.find(id)
	if err != nil {
		return Resident{}, err
	}
	path := ParamsPath(s.config.Params, c)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Resident{}, Missing(path, id)
	}
	cache := s.cache()
	known, err := s.artifact(ctx, c)
	if err != nil {
		return Resident{}, err
	}
	opened, err := srs.Open(ctx, path, srs.CountsOf(known.Totals, known.Density),
		srs.Options{DigestCache: filepath.Join(cache, "parameter-digests.json"), Progress: s.progress(id)})
	switch refusal := (*srs.Refusal)(nil); {
	case errors.As(err, &refusal):
		return Resident{}, fault.WithHint(fault.As(fault.Corrupt, err), refusal.Advice)
	case errors.Is(err, fs.ErrNotExist):
		return Resident{}, Missing(path, id)
	case err != nil:
		return Resident{}, fault.As(fault.Transient, fmt.Errorf("load circuit %s: %w", id, err))
	}
	return Resident{Circuit: c, Params: prover.Params{SRS: opened, Artifact: known}}, nil
}

func (s *Set) find(id string) (circuit.Circuit, error) {
	c, err := s.config.Find(id)
	if err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("load circuit %s: %w", id, err))
	}
	return c, nil
}

// cache is the folder for what is derived from parameters.
func (s *Set) cache() string {
	if s.config.Cache == "" {
		return s.config.Params
	}
	return s.config.Cache
}

// artifact gives a circuit's artifact. One that could not be stored serves all the same; it is built again next time.
func (s *Set) artifact(ctx context.Context, c circuit.Circuit) (*artifact.Artifact, error) {
	known, _, err := artifact.Load(ctx, s.cache(), c, max(1, s.config.Workers))
	if known == nil {
		return nil, fault.As(fault.Internal, fmt.Errorf("load circuit %s: %w", c.ID(), err))
	}
	return known, nil
}

func (s *Set) progress(id string) func(done, total int64) {
	if s.config.Progress == nil {
		return nil
	}
	return func(done, total int64) { s.config.Progress(id, done, total) }
}

// Missing is the error for a parameter file that is not there.
func Missing(path, id string) error {
	return fault.WithHint(fault.As(fault.NotFound, fmt.Errorf("circuit %s: %w: %s", id, ErrMissing, path)),
		"put the file there (proofrack params): it is used as soon as it has come")
}

// Evict gives back an idle circuit and tells whether it was resident. In use, or being loaded, it is refused with
// fault.Conflict. before is called first, for whoever must let go of the parameters.
func (s *Set) Evict(id string, before func() error) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[id]
	if !ok {
		return false, nil
	}
	select {
	case <-e.done:
	default:
		return false, fault.New(fault.Conflict, "evict circuit %s: it is being loaded", id)
	}
	if e.refs > 0 {
		return false, fault.New(fault.Conflict, "evict circuit %s: %d proofs use it", id, e.refs)
	}
	if err := before(); err != nil {
		return false, err
	}
	delete(s.entries, id)
	if err := e.end(); err != nil {
		return true, fmt.Errorf("unmap parameters of circuit %s: %w", id, err)
	}
	return true, nil
}

// Idle is since when a resident circuit has not been used; false while it is used or absent.
func (s *Set) Idle(id string) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[id]
	if !ok || e.refs > 0 {
		return time.Time{}, false
	}
	return e.usedAt, true
}
