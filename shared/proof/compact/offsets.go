package compact

// Offsets are where the parts of a segment begin, bytes from the segment's start (docs/formats.md "Segment"). Devices
// that read segments in their own way need them.
type Offsets struct {
	Inputs              int
	A0, A1, B0          int // planes of codes
	AFull, BFull        int // planes of marks
	X0, XFull           int // codes and marks of auxiliaries
	RankA, RankB, RankX int
	ListA, ListB, ListX int // full elements
}

// Offsets of the circuit's segments.
func (l *Layout) Offsets() Offsets {
	return Offsets{
		Inputs: l.inputs.offset,
		A0:     l.rows[planeA0].offset, A1: l.rows[planeA1].offset, B0: l.rows[planeB0].offset,
		AFull: l.rows[planeAFull].offset, BFull: l.rows[planeBFull].offset,
		X0: l.aux[planeX0].offset, XFull: l.aux[planeXFull].offset,
		RankA: l.rankA.offset, RankB: l.rankB.offset, RankX: l.rankX.offset,
		ListA: l.fullA.offset, ListB: l.fullB.offset, ListX: l.fullX.offset,
	}
}

// Data is the segment itself, Layout.Bytes of it. A sealed one is only read.
func (s *Segment) Data() []byte { return s.data }
