package flight_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
)

// BenchmarkBufferLife is a life of five transitions; transition-ns is one of them, which must stay below 100.
func BenchmarkBufferLife(b *testing.B) {
	r := newRecorder(b, flight.Config{})
	b.ReportAllocs()
	for b.Loop() {
		p := r.Allocate(ledger.ClassAssignment, 1<<28, flight.Shared, "job.0.1")
		p.Seal()
		p.HandOver()
		p.Release()
		p.Gone()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5, "transition-ns")
	if report := r.Report(); !report.Idle() || report.Class(ledger.ClassAssignment).GonePieces < int64(b.N) {
		b.Errorf("counts %+v", report)
	}
}
