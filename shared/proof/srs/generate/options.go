package generate

import (
	"errors"
	"runtime"
	"sync"
)

// Options tune a generation. The zero value is ready to use.
type Options struct {
	// Workers is the number of goroutines that compute; 0 means GOMAXPROCS.
	Workers int
	// SectorSize goes into the manifest, in bytes; 0 where there is no sector.
	SectorSize uint64
	// Replace allows to overwrite files that the manifest beside them lists as development.
	Replace bool
	// Progress, when set, is told how far a stage is: rows for StageRows, points for the others. Stages follow each
	// other in the order of Stages; calls do not overlap.
	Progress func(stage Stage, done, total int64)

	lock *sync.Mutex
}

// Stage is a step of a generation.
type Stage string

// The stages. Those but the first are sections of the file.
const (
	StageRows Stage = "rows"
	StageH    Stage = "h"
	StageL    Stage = "l"
	StageA    Stage = "a"
	StageB1   Stage = "b_g1"
	StageB2   Stage = "b_g2"
)

// Stages are all stages in order.
func Stages() []Stage { return []Stage{StageRows, StageH, StageL, StageA, StageB1, StageB2} }

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// serialized makes progress calls wait for each other.
func (o Options) serialized() Options {
	o.lock = new(sync.Mutex)
	return o
}

func (o Options) progress(stage Stage, done, total int64) {
	if o.Progress == nil {
		return
	}
	o.lock.Lock()
	defer o.lock.Unlock()
	o.Progress(stage, min(done, total), total)
}

// What a generation fails for, beside errors of files and the context.
var (
	// ErrScalars: a scalar is 0 or makes a sum vanish that should not.
	ErrScalars = errors.New("scalars are unusable")
	// ErrUnconstrained: a variable occurs in no constraint.
	ErrUnconstrained = errors.New("circuit has an unconstrained variable")
	// ErrCircuit: the circuit's description contradicts itself.
	ErrCircuit = errors.New("circuit is inconsistent")
	// ErrExists: there are files of that name.
	ErrExists = errors.New("parameter files exist")
	// ErrSpace: the file system has less room than the files need.
	ErrSpace = errors.New("not enough disk space")
)
