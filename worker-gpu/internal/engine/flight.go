package engine

import (
	"fmt"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
)

// record starts the engine's flight recorder.
func (s *server) record() error {
	var err error
	s.flight, err = flight.New(flight.Config{
		Process: FlightProcess(s.setup.Name), Resident: flight.Self, Proofs: s.count,
	})
	if err != nil {
		return err
	}
	s.sums = &sums{flight: s.flight}
	s.flight.Plant(func(class ledger.Class) bool { return s.points.Leak("flight." + string(class)) })
	return nil
}

// FlightProcess is a device's engine as flight reports name it.
func FlightProcess(device string) string {
	const prefix = "engine "
	return prefix + device[:min(len(device), flight.ProcessBytesMax-len(prefix))]
}

// count gives the proofs that are started and not finished, and those that wait to be started.
func (s *server) count() (pending, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.proofs {
		if p.pending != nil {
			pending++
		} else {
			waiting++
		}
	}
	return pending, waiting
}

// track counts a vector that the device keeps between proofs. Each has a name of its own.
func (s *server) track(bytes int64) (released, gone func()) {
	label := fmt.Sprintf("vector %d", s.vectors.Add(1))
	b := s.flight.Allocate(ledger.ClassEvals, bytesize.Bytes(bytes), flight.Anonymous, label).Keep()
	return b.Release, b.Gone
}
