package r1cs

// Position is a place in a circuit: how much of everything lies before it. At the end of a circuit it holds the
// circuit's totals. All of it is structural: it does not depend on any witness.
type Position struct {
	Rows   int // constraints, without the appended input rows
	Inputs int // inputs, ONE included
	Aux    int // auxiliary variables

	FullA   int // rows whose a evaluation is stored as a field element
	FullB   int // rows whose b evaluation is stored as a field element
	FullAux int // auxiliaries stored as field elements
}

// Start is the position of a fresh system that holds only ONE.
func Start() Position { return Position{Inputs: 1} }

// RowsTotal is the length n of the evaluation vectors: circuit rows plus one appended row per input (spec 1.3).
func (p Position) RowsTotal() int { return p.Rows + p.Inputs }

// DomainBits is the binary logarithm of the FFT domain: the smallest power of two ≥ RowsTotal.
func (p Position) DomainBits() int {
	bits := 0
	for 1<<bits < p.RowsTotal() {
		bits++
	}
	return bits
}

// Plus adds two positions field by field.
func (p Position) Plus(q Position) Position {
	return Position{
		Rows: p.Rows + q.Rows, Inputs: p.Inputs + q.Inputs, Aux: p.Aux + q.Aux,
		FullA: p.FullA + q.FullA, FullB: p.FullB + q.FullB, FullAux: p.FullAux + q.FullAux,
	}
}

// Minus subtracts q from p field by field.
func (p Position) Minus(q Position) Position {
	return Position{
		Rows: p.Rows - q.Rows, Inputs: p.Inputs - q.Inputs, Aux: p.Aux - q.Aux,
		FullA: p.FullA - q.FullA, FullB: p.FullB - q.FullB, FullAux: p.FullAux - q.FullAux,
	}
}
