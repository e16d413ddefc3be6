package host

import (
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
)

// FlightPoint is the point of package hook that every buffer of a class comes by; leak@<point> leaks one.
func FlightPoint(class ledger.Class) string { return "flight." + string(class) }

// Recorder makes the flight recorder of this process, under a name.
func Recorder(process string) (*flight.Recorder, error) {
	return flight.New(flight.Config{Process: process, Resident: flight.Self})
}
