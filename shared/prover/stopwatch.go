package prover

import (
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/proof/groth16"
)

// Stopwatch collects the times of one proof; they may be read while it is being made.
type Stopwatch struct {
	mu    sync.Mutex
	times Timings
}

// Timed starts a stage and gives the function that ends it. Of a stage that is not told apart part is nil.
func (w *Stopwatch) Timed(part func(*Timings) *time.Duration) (end func()) {
	began := time.Now()
	return func() {
		elapsed := time.Since(began)
		w.mu.Lock()
		defer w.mu.Unlock()
		if to := part(&w.times); to != nil {
			*to += elapsed
		}
	}
}

// Set takes times that somebody else measured, such as the device.
func (w *Stopwatch) Set(set func(*Timings)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set(&w.times)
}

// Read gives the times so far.
func (w *Stopwatch) Read() Timings {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.times
}

// of is where the time of a stage goes; nil for stages that are not told apart.
func (t *Timings) of(stage groth16.Stage) *time.Duration {
	switch stage {
	case groth16.StageQuotient:
		return &t.Quotient
	case groth16.StageH:
		return &t.H
	case groth16.StageL:
		return &t.L
	case groth16.StageA:
		return &t.A
	case groth16.StageB1:
		return &t.B1
	case groth16.StageB2:
		return &t.B2
	case groth16.StageAssemble:
		return &t.Assemble
	}
	return nil
}
