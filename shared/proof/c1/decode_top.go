package c1

import (
	"strconv"
	"strings"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// The keys of the top level: those of L1, then those of the envelope.
const (
	keyRegisteredProof = iota
	keyVanillaProofs
	keyCommR
	keyCommD
	keyReplicaID
	keySeed
	keyTicket
	keySectorNum
	keyPhase1Out
	keySectorSize

	outputKeyCount = keySectorNum
)

func topKeys() []string {
	return []string{
		"registered_proof", "vanilla_proofs", "comm_r", "comm_d", "replica_id", "seed", "ticket",
		"SectorNum", "Phase1Out", "SectorSize",
	}
}

// top reads the outermost object. Whether it is an L1 output or an envelope is decided by the first known key; keys of
// the other form are unknown from then on. The text inside an envelope can only be L1.
func (d *decoder) top() {
	names := topKeys()
	const undecided = -1
	envelope := undecided
	if d.inPhase1Out {
		envelope = 0
	}
	seen := d.members("a C1 output (an object)", names, func(i int) bool {
		isEnvelopeKey := 0
		if i >= outputKeyCount {
			isEnvelopeKey = 1
		}
		if envelope == undecided {
			envelope = isEnvelopeKey
		}
		if envelope != isEnvelopeKey {
			return false
		}
		if envelope == 1 {
			d.envelopeValue(i)
		} else {
			d.outputValue(i)
		}
		return true
	})
	switch {
	case envelope == undecided:
		d.fail("no C1 output: neither registered_proof nor Phase1Out is there")
	case envelope == 1:
		d.demand(names[outputKeyCount:], seen>>outputKeyCount)
		d.compareEnvelope()
	default:
		d.demand(names[:outputKeyCount], seen)
		d.comparePartitions()
	}
}

// outputValue reads the value of an L1 key.
func (d *decoder) outputValue(key int) {
	out := d.input.Output
	switch key {
	case keyRegisteredProof:
		d.registeredProof()
	case keyVanillaProofs:
		d.vanillaProofs()
	case keyCommR:
		d.hash(&out.CommR)
	case keyCommD:
		d.hash(&out.CommD)
	case keyReplicaID:
		d.hash(&out.ReplicaID)
	case keySeed:
		d.hash(&out.Seed)
	case keyTicket:
		d.hash(&out.Ticket)
	}
}

func (d *decoder) registeredProof() {
	got := d.peek()
	start := d.offset()
	if got >= '0' && got <= '9' { // some callers write the number that the chain has for it
		number := d.integer(sdr.RegisteredProofCount - 1)
		d.setRegisteredProof(sdr.RegisteredProof(number), start)
		return
	}
	name := d.text("the name of a registered proof")
	if d.err != nil {
		return
	}
	proof, err := sdr.ParseRegisteredProof(string(name))
	if err != nil {
		d.failAt(start, "unknown registered proof %s, want StackedDrg<size>V1, …V1_1, …V1_1_Feat_SyntheticPoRep or "+
			"…V1_2_Feat_NonInteractivePoRep with <size> one of %s", quoted(string(name)), sizeNames())
		return
	}
	d.setRegisteredProof(proof, start)
}

func (d *decoder) setRegisteredProof(proof sdr.RegisteredProof, start int64) {
	if d.err != nil {
		return
	}
	d.input.Output.RegisteredProof = proof
	d.proofKnown = true
	d.compareTag(start)
}

func sizeNames() string {
	names := make([]string, 0, 5)
	for _, size := range sdr.PublishedSizes() {
		names = append(names, size.String())
	}
	return strings.Join(names, ", ")
}

// compareTag fails when both the registered proof and the tag of the proofs are known and differ in size.
func (d *decoder) compareTag(offset int64) {
	if proof := d.input.Output.RegisteredProof; d.proofKnown && d.tagSize != 0 && d.tagSize != proof.Size() {
		d.failAt(offset, "vanilla_proofs is tagged %s, of another size than registered_proof %s (its tag is %s)",
			tagOf(d.tagSize), proof, proof.Tag())
	}
}

// comparePartitions fails when the number of partitions is not that of the registered proof.
func (d *decoder) comparePartitions() {
	if d.err != nil {
		return
	}
	proof := d.input.Output.RegisteredProof
	got, want := len(d.input.Output.VanillaProofs), proof.Config().PartitionCount()
	if got != want {
		d.path = append(d.path, step{key: topKeys()[keyVanillaProofs]})
		d.failAt(d.tagOffset, "%d partitions, want %d for %s", got, want, proof)
	}
}

// envelopeValue reads the value of an envelope key.
func (d *decoder) envelopeValue(key int) {
	if d.input.Envelope == nil {
		d.input.Envelope = &Envelope{}
	}
	switch key {
	case keySectorNum:
		d.input.Envelope.SectorNumber = d.integer(sectorNumberMax)
	case keyPhase1Out:
		d.phase1Out()
	case keySectorSize:
		d.sectorSize()
	}
}

func (d *decoder) sectorSize() {
	got := d.peek()
	d.sizeOffset = d.offset()
	text := d.describe(got)
	size, err := strconv.ParseUint(strings.TrimPrefix(text, "the number "), 10, 64)
	if err != nil || !sdr.SectorSize(size).Published() || !strings.HasSuffix(text, " "+strconv.FormatUint(size, 10)) {
		d.fail("unsupported sector size: %s; supported are %s", text, supportedSizes())
		return
	}
	d.integer(size)
	d.input.Envelope.SectorSize = sdr.SectorSize(size)
}

// phase1Out reads the L1 text that the envelope carries, through a second window; the decoded text is never held as a
// whole either.
func (d *decoder) phase1Out() {
	if got := d.peek(); got != '"' {
		d.unexpected(got, "a text (L1 JSON as base64)")
		return
	}
	d.pos++
	outer, outerPath := d.scanner, len(d.path)
	outer.where = func() InputError {
		return InputError{Partition: -1, Challenge: -1, Field: topKeys()[keyPhase1Out]}
	}
	d.scanner = newScanner(&base64Reader{outer: outer}, outer.bytesMax, d.where)
	d.inPhase1Out, d.fieldStart = true, outerPath
	d.begin()
	d.top()
	d.finish()
	outer.where = d.where
	if d.err != nil {
		outer.stop(d.err)
	}
	d.scanner = outer
	d.inPhase1Out, d.fieldStart = false, 0
}

// compareEnvelope fails when the envelope's sector size is not that of the registered proof.
func (d *decoder) compareEnvelope() {
	if d.err != nil {
		return
	}
	proof, size := d.input.Output.RegisteredProof, d.input.Envelope.SectorSize
	if proof.Size() != size {
		d.path = append(d.path, step{key: topKeys()[keySectorSize]})
		d.failAt(d.sizeOffset, "sector size %d is not that of registered_proof %s (%d)", uint64(size), proof,
			uint64(proof.Size()))
	}
}

// vanillaProofs reads the tagged lists of proofs.
func (d *decoder) vanillaProofs() {
	if got := d.peek(); got != '{' {
		d.unexpected(got, "an object with one key, the size's tag")
		return
	}
	d.pos++
	d.tagOffset = d.offset()
	if !d.next('}', true, "vanilla_proofs") {
		d.fail("no key, want the size's tag such as StackedDrg32GiBV1")
		return
	}
	tag := string(d.text("a key"))
	size, known := parseTag(tag)
	if d.err == nil && !known {
		d.failAt(d.tagOffset, "unknown tag %s, want StackedDrg<size>V1 with <size> one of %s", quoted(tag), sizeNames())
	}
	if d.err != nil {
		return
	}
	d.tagSize, d.shape = size, shapeOf(size)
	d.compareTag(d.tagOffset)
	d.expect(':', "after a key")
	d.path = append(d.path, step{key: tagOf(size)})
	d.partitions()
	d.path = d.path[:len(d.path)-1]
	if d.next('}', false, "vanilla_proofs") {
		d.fail("a second key, want one tag only")
	}
}

// partitions reads the list of partitions, as many as the registered proof has if it is known, else as the largest
// family has.
func (d *decoder) partitions() {
	limit := d.shape.partitionsMax
	if d.proofKnown {
		limit = d.input.Output.RegisteredProof.Config().PartitionCount()
	}
	out := d.input.Output
	d.openList("a list of partitions")
	for i := 0; d.next(']', i == 0, "the list of partitions"); i++ {
		if i == limit {
			d.fail("more than %d partitions", limit)
			return
		}
		d.partition = i
		out.VanillaProofs = append(out.VanillaProofs, d.challenges())
		d.partition = -1
	}
	if d.err == nil && len(out.VanillaProofs) == 0 {
		d.fail("no partitions")
	}
}

// challenges reads one partition. From here on errors name the field by its path inside the challenge's proof.
func (d *decoder) challenges() []Proof {
	start := d.offset()
	d.openList("a list of challenges")
	want := d.shape.challenges
	outerStart := d.fieldStart
	var proofs []Proof
	for i := 0; d.next(']', i == 0, "the list of challenges"); i++ {
		if i == want {
			d.fail("more than %d challenges", want)
			return nil
		}
		if i == 0 {
			proofs = make([]Proof, 0, want)
		}
		d.challenge, d.fieldStart = i, len(d.path)
		proofs = proofs[:i+1]
		if d.proof(&proofs[i]); d.err != nil {
			return nil
		}
		d.challenge, d.fieldStart = -1, outerStart
	}
	switch {
	case len(proofs) == 0:
		d.failAt(start, "partition without challenges, want %d", want)
	case len(proofs) < want:
		d.failAt(start, "%d challenges, want %d", len(proofs), want)
	}
	return proofs
}

// openList takes the opening byte of a list.
func (d *decoder) openList(what string) {
	if got := d.peek(); got != '[' {
		d.unexpected(got, what)
		return
	}
	d.pos++
}
