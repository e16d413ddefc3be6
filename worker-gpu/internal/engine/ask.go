package engine

import (
	"context"
	"fmt"
	"os"

	"github.com/proofrack/proofrack/shared/fault"
)

// Proof is a prepared or started proof, named by its engine.
type Proof struct {
	engine *Engine
	id     uint64
}

// ask sends a request and waits for its answer. When the engine goes first the error is its Crash.
func (e *Engine) ask(ctx context.Context, r request, file *os.File) (answer, error) {
	id, to := e.enlist()
	return e.askAs(ctx, id, to, r, file, func() {})
}

func (e *Engine) enlist() (uint64, chan answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	to := make(chan answer, 1)
	e.waiting[e.next] = to
	return e.next, to
}

// askAs sends a request of a number that is enlisted, calls sent, and waits.
func (e *Engine) askAs(
	ctx context.Context, id uint64, to chan answer, r request, file *os.File, sent func(),
) (answer, error) {
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, id)
	}()
	r.ID = id
	failed := e.conn.send(r, file)
	sent()
	select {
	case a := <-to:
		return answered(a)
	case <-e.gone:
		select { // its last answer may have come before its end
		case a := <-to:
			return answered(a)
		default:
			return answer{}, e.crash
		}
	case <-ctx.Done():
		if failed != nil {
			return answer{}, failed
		}
		return answer{}, ctx.Err()
	}
}

func answered(a answer) (answer, error) {
	if a.Fault != nil {
		return a, a.Fault
	}
	return a, nil
}

// Load makes a circuit's parameters resident and tells what they are. With an image (see WriteImage), which is lent
// for the call, the engine uses that and no file. Errors: fault.NotFound (missing), fault.Corrupt (must not be used),
// fault.Conflict (in use, and not of this image), *Crash, the context's.
func (e *Engine) Load(ctx context.Context, circuit string, image *os.File) (Loaded, error) {
	a, err := e.ask(ctx, request{Do: verbLoad, Circuit: circuit}, image)
	if err != nil {
		return Loaded{}, err
	}
	if a.Loaded == nil {
		return Loaded{}, fault.New(fault.Device, "engine answered load of circuit %s with nothing", circuit)
	}
	return *a.Loaded, nil
}

// WriteImage has the engine decode a circuit's parameters into a file of Loaded.Image bytes, which is lent for the
// call. Errors are Load's.
func (e *Engine) WriteImage(ctx context.Context, circuit string, image *os.File) error {
	_, err := e.ask(ctx, request{Do: verbImage, Circuit: circuit}, image)
	return err
}

// Prepare has the engine map and check a sealed segment and load what its proof needs, so that its start has nothing
// to wait for. The file is lent for the call. A prepared proof must be finished or dropped.
func (e *Engine) Prepare(ctx context.Context, w Work, segment *os.File) (*Proof, error) {
	id, to := e.enlist()
	p := &Proof{engine: e, id: id}
	if _, err := e.askAs(ctx, id, to, request{Do: verbPrepare, Work: &w}, segment, func() {}); err != nil {
		if ctx.Err() != nil {
			p.Drop()
		}
		return nil, err
	}
	return p, nil
}

// Start starts the proof and returns when the device is free for the next one. After an error the proof is gone.
func (p *Proof) Start(ctx context.Context) error {
	if _, err := p.engine.ask(ctx, request{Do: verbStart, Proof: p.id}, nil); err != nil {
		if ctx.Err() != nil {
			p.Drop()
		}
		return err
	}
	return nil
}

// Finish gives the proof. It is called once. Asked is called when the engine was asked for it: what is started from
// then on comes after it on a device that does one thing at a time.
func (p *Proof) Finish(ctx context.Context, asked func()) (Proved, error) {
	id, to := p.engine.enlist()
	a, err := p.engine.askAs(ctx, id, to, request{Do: verbFinish, Proof: p.id}, nil, asked)
	if err != nil {
		if ctx.Err() != nil {
			p.Drop()
		}
		return Proved{}, err
	}
	if a.Proved == nil {
		return Proved{}, fault.New(fault.Device, "engine finished proof %d with nothing", p.id)
	}
	return *a.Proved, nil
}

// Drop gives a proof up and returns when the engine has unmapped its segment. An engine that does not do that within
// Config.StopMax is killed.
func (p *Proof) Drop() {
	e := p.engine
	ctx, cancel := context.WithTimeout(context.Background(), e.config.StopMax)
	defer cancel()
	if _, err := e.ask(ctx, request{Do: verbDrop, Proof: p.id}, nil); err != nil && ctx.Err() != nil {
		e.Kill(fmt.Sprintf("did not let go of a proof within %s", e.config.StopMax))
		<-e.gone
	}
}

// Evict gives back an idle circuit. Errors: fault.Conflict when it is in use.
func (e *Engine) Evict(ctx context.Context, circuit string) error {
	if _, err := e.ask(ctx, request{Do: verbEvict, Circuit: circuit}, nil); err != nil {
		return fmt.Errorf("evict circuit %s: %w", circuit, err)
	}
	return nil
}

// Canary has the engine prove a known answer.
func (e *Engine) Canary(ctx context.Context) error {
	_, err := e.ask(ctx, request{Do: verbCanary}, nil)
	return err
}
