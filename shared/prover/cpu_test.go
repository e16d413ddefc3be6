package prover_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/groth16/groth16test"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/prover"
	"github.com/proofrack/proofrack/shared/prover/provertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCPUConforms(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int{"all cores": 0, "one core": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provertest.Run(t, func(_ testing.TB, options ...groth16.Option) prover.Device {
				return prover.NewCPU(prover.CPUConfig{Workers: workers, Options: options})
			})
		})
	}
}

// A context that ends while the device is busy ends the wait, and a busy device is closed when it is free.
func TestCPUWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	c := groth16test.Random(1, 60)
	var params prover.Params
	params.SRS, params.Artifact = groth16test.Params(t, c)
	source := prover.Source{Segment: groth16test.Segment(t, c, groth16test.Slice(1))}
	inside, goOn := make(chan struct{}), make(chan struct{})
	device := prover.NewCPU(prover.CPUConfig{Observe: func(stage groth16.Stage) func() {
		if stage == groth16.StageL {
			close(inside)
			<-goOn
		}
		return func() {}
	}})
	started := make(chan prover.Pending, 1)
	go func() {
		pending, err := device.Start(context.Background(), source, params)
		if err != nil {
			t.Errorf("start: %v", err)
		}
		started <- pending
	}()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := device.Start(ctx, source, params); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("start beside another: %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- device.Close() }()
	close(goOn)
	pending := <-started
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := pending.Finish(t.Context()); !errors.Is(err, prover.ErrClosed) {
		t.Errorf("finish after close: %v", err)
	}
}

// An error in any stage names its partition, and once.
func TestCPUErrorsNameThePartitionOnce(t *testing.T) {
	t.Parallel()
	c := groth16test.Random(1, 60)
	var params prover.Params
	params.SRS, params.Artifact = groth16test.Params(t, c)
	source := prover.Source{Segment: groth16test.Segment(t, c, groth16test.Slice(1))}
	for _, at := range []groth16.Stage{groth16.StageH, groth16.StageA, groth16.StageB2} {
		ctx, cancel := context.WithCancel(t.Context())
		device := prover.NewCPU(prover.CPUConfig{Observe: func(stage groth16.Stage) func() {
			if stage == at {
				cancel()
			}
			return func() {}
		}})
		pending, err := device.Start(ctx, source, params)
		if err == nil {
			_, err = pending.Finish(ctx)
		}
		if !errors.Is(err, context.Canceled) || strings.Count(err.Error(), "partition") != 1 {
			t.Errorf("stopped at %s: %v", at, err)
		}
		if err := device.Close(); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

func TestCPUReportsEveryStageOnce(t *testing.T) {
	t.Parallel()
	c := groth16test.Random(1, 60)
	var params prover.Params
	params.SRS, params.Artifact = groth16test.Params(t, c)
	count := map[groth16.Stage]int{}
	device := prover.NewCPU(prover.CPUConfig{Observe: func(stage groth16.Stage) func() {
		return func() { count[stage]++ }
	}})
	defer device.Close()
	pending, err := device.Start(t.Context(),
		prover.Source{Segment: groth16test.Segment(t, c, groth16test.Slice(1))}, params)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []groth16.Stage{
		groth16.StageQuotient, groth16.StageH, groth16.StageL, groth16.StageA, groth16.StageB1, groth16.StageB2,
		groth16.StageAssemble,
	} {
		if count[stage] != 1 {
			t.Errorf("stage %s was reported %d times", stage, count[stage])
		}
	}
	times := pending.Timings()
	if times.L <= 0 || times.A <= 0 || times.B1 <= 0 || times.Assemble <= 0 {
		t.Errorf("timings %+v", times)
	}
}

func TestCPUMemoryAt32GiB(t *testing.T) {
	t.Parallel()
	m := prover.NewCPU(prover.CPUConfig{Workers: 2}).Memory(r1cs.Position{Rows: 130278541, Inputs: 328})
	if m.SharedBytes != 2*32<<27 || m.HostPeakBytes(1) > 16<<30 || m.DeviceBytes != 0 {
		t.Errorf("profile %+v", m)
	}
}
