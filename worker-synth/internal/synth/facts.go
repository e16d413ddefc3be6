package synth

import (
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// shares are which part of a circuit's rows carry field elements, as those of Poseidon hashes do (with what packs
// bits), and which bits and small numbers, as those of SHA-256 do.
func (m *making) shares() []telemetry.Fact {
	totals := circuit.Totals(m.circuit)
	if totals.Rows == 0 {
		return nil
	}
	share := float64(totals.FullA) / float64(totals.Rows)
	return []telemetry.Fact{
		telemetry.Float(telemetry.KeyFieldShare, share), telemetry.Float(telemetry.KeyBitShare, 1-share),
	}
}

// handoffFacts tell where a segment lies, and why when that is not the preferred place (B90).
func handoffFacts(kind, why string) []telemetry.Fact {
	facts := []telemetry.Fact{telemetry.String(telemetry.KeyHandoff, kind)}
	if why != "" {
		facts = append(facts, telemetry.String(telemetry.KeyHandoffReason, why))
	}
	return facts
}
