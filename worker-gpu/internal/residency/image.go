package residency

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/prover"
)

// WriteImage decodes a circuit's parameters into a file of the image's size, for other processes to adopt. Errors are
// Acquire's; kind Conflict when an image is all that is resident.
func (s *Set) WriteImage(ctx context.Context, id string, f *os.File) error {
	res, release, err := s.Acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	if res.Params.SRS.Decoded() {
		return fault.New(fault.Conflict, "decode circuit %s: it is decoded already", id)
	}
	if err := res.Params.SRS.WriteImage(ctx, f, max(1, s.config.Workers), s.progress(id)); err != nil {
		if errors.Is(err, srs.ErrEncoding) {
			return fault.As(fault.Corrupt, err)
		}
		return fault.As(fault.Transient, err)
	}
	return nil
}

// Adopt makes a sealed image a circuit's resident parameters, in place of the file's if those are idle, and reads no
// parameter file. What it gives is Acquire's. Errors: kind Corrupt for an image that is none of the circuit, Conflict
// while something else of the circuit is loaded or in use, and Acquire's.
func (s *Set) Adopt(ctx context.Context, id string, image *os.File) (*Resident, func(), error) {
	s.mu.Lock()
	e := &entry{done: make(chan struct{}), refs: 1}
	old, ok := s.entries[id]
	if ok {
		if err := old.replaceable(id); err != nil {
			s.mu.Unlock()
			return nil, nil, err
		}
	}
	s.entries[id] = e
	s.mu.Unlock()
	if ok { // nobody can get at it any more
		if err := old.end(); err != nil {
			panic(fmt.Sprintf("residency: unmap parameters of circuit %s: %v", id, err))
		}
	}
	s.load(context.WithoutCancel(ctx), id, e, func(ctx context.Context, id string) (Resident, error) {
		return s.openImage(ctx, id, image)
	})
	return s.wait(ctx, e)
}

// replaceable tells why an entry cannot be replaced; it must run under the set's lock.
func (e *entry) replaceable(id string) error {
	select {
	case <-e.done:
	default:
		return fault.New(fault.Conflict, "adopt image of circuit %s: it is being loaded", id)
	}
	if e.refs > 0 {
		return fault.New(fault.Conflict, "adopt image of circuit %s: %d proofs use it", id, e.refs)
	}
	return nil
}

func (s *Set) openImage(ctx context.Context, id string, image *os.File) (Resident, error) {
	c, err := s.find(id)
	if err != nil {
		return Resident{}, err
	}
	known, err := s.artifact(ctx, c)
	if err != nil {
		return Resident{}, err
	}
	opened, err := srs.OpenImage(image, srs.CountsOf(known.Totals, known.Density))
	if err != nil {
		return Resident{}, fault.As(fault.Corrupt, fmt.Errorf("load circuit %s: %w", id, err))
	}
	return Resident{Circuit: c, Params: prover.Params{SRS: opened, Artifact: known}}, nil
}

// Images are the decoded parameters that this process keeps for its engines: in memory that has no name, sealed, so
// that an engine can map and not change it, and gone with the process at the latest. A circuit has one image, however
// many devices prove it.
//
//	absent ─Hold─► making (others wait) ─► sealed, held by n devices ─last release─► absent
//	                 └─ error: absent; whoever waits gets the error
type Images struct {
	flight *flight.Recorder

	mu   sync.Mutex
	made map[string]*image
}

type image struct {
	digest string        // of the parameters
	done   chan struct{} // closed when making ended
	err    error
	file   *os.File
	holds  int
	srs    *flight.Buffer
}

// NewImages has none. The recorder, which may be nil, counts them: this process holds their memory and does not map it.
func NewImages(r *flight.Recorder) *Images { return &Images{flight: r, made: map[string]*image{}} }

// Hold gives the image of a circuit's parameters of a digest, and makes one of size bytes with fill when there is none.
// It stays until release is called, once. Errors are fill's, or kind Exhausted when there is no memory or an image of
// other parameters of the circuit is still held; the context's while another makes it.
func (s *Images) Hold(
	ctx context.Context, id, digest string, size int64, fill func(*os.File) error,
) (file *os.File, release func() error, err error) {
	s.mu.Lock()
	i, ok := s.made[id]
	if !ok {
		i = &image{digest: digest, done: make(chan struct{})}
		s.made[id] = i
	}
	if i.digest != digest {
		s.mu.Unlock()
		return nil, nil, fault.New(fault.Exhausted, "an image of other parameters of circuit %s is still in use", id)
	}
	i.holds++
	s.mu.Unlock()
	if !ok {
		i.srs = s.flight.Allocate(ledger.ClassSRS, bytesize.Bytes(size), flight.Declared, "image of "+id).Keep()
		i.file, i.err = makeImage(id, size, fill)
		if i.err == nil {
			i.srs.Seal()
		} else {
			i.srs.Release()
			i.srs.Gone()
			s.mu.Lock()
			delete(s.made, id)
			s.mu.Unlock()
		}
		close(i.done)
	}
	release = sync.OnceValue(func() error { return s.release(id, i) })
	select {
	case <-i.done:
		if i.err != nil {
			return nil, nil, errors.Join(i.err, release())
		}
		return i.file, release, nil
	case <-ctx.Done():
		go func() { // it is nobody's before it is made
			<-i.done
			_ = release()
		}()
		return nil, nil, ctx.Err()
	}
}

func (s *Images) release(id string, i *image) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.holds--; i.holds > 0 || i.file == nil {
		return nil
	}
	delete(s.made, id)
	i.srs.Release()
	if err := i.file.Close(); err != nil {
		return fmt.Errorf("close image of circuit %s: %w", id, err)
	}
	i.srs.Gone()
	return nil
}
