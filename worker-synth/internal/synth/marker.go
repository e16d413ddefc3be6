package synth

import (
	"fmt"
	"os"
	"syscall"

	"github.com/proofrack/proofrack/shared/fault"
)

// Markers of tasks.
const (
	markerKill    = "kill"    // the worker ends by signal 9 in synthesis, at every attempt (F17)
	markerError   = "error"   // every attempt fails
	markerInvalid = "invalid" // the input counts as bad
)

// obeyMarker carries out the fault that a task asks for, if the worker is told to.
func (m *making) obeyMarker() error {
	if !m.config.Markers || m.task.Marker() == "" {
		return nil
	}
	a := m.run.Attempt()
	switch m.task.Marker() {
	case markerKill:
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill at the marker of attempt %s: %w", a, err)
		}
		select {} // the signal is on its way
	case markerError:
		return fault.New(fault.Internal, "attempt %s fails at its marker", a)
	case markerInvalid:
		return fault.New(fault.Invalid, "bad input: attempt %s has the marker %q", a, markerInvalid)
	}
	return fault.New(fault.Internal, "attempt %s has the unknown marker %q", a, m.task.Marker())
}
