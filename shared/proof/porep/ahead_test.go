package porep

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/poseidon8"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// onTheWay is a witness whose walk computes all hashes itself.
type onTheWay struct{ *Witness }

func (w onTheWay) Synthesize(section int, values r1cs.Values) {
	if section == 0 {
		w.Witness.Synthesize(section, values)
		return
	}
	h := walkHead(r1cs.NewSystem(r1cs.Start(), nil, nil), w.slice)
	s := r1cs.NewSystem(w.circuit.Sections()[section], nil, values)
	walkChallenge(s, &h, &w.slice.Challenges[section-1], &hashes{})
}

// scrambled fills a blank witness with numbers that satisfy nothing.
func scrambled(c *Circuit) *Witness {
	random := rand.New(rand.NewPCG(31, 32))
	element := func(e *fr.Element) {
		e.SetUint64(random.Uint64())
		e.Square(e).Square(e)
	}
	path := func(steps []sdr.Step) {
		for i := range steps {
			steps[i].Index = random.IntN(steps[i].Arity())
			for k := range steps[i].Siblings {
				element(&steps[i].Siblings[k])
			}
		}
	}
	w := c.Blank()
	element(&w.slice.ReplicaID)
	for i := range w.slice.Challenges {
		challenge := &w.slice.Challenges[i]
		challenge.Challenge = random.Uint64()
		element(&challenge.DataLeaf)
		path(challenge.DataPath)
		path(challenge.RLastPath)
		path(challenge.CPath)
		for k := range challenge.Parents {
			for layer := range challenge.Parents[k].Rows {
				element(&challenge.Parents[k].Rows[layer])
			}
			path(challenge.Parents[k].Path)
		}
	}
	return w
}

func synthesized(t *testing.T, c *Circuit, w circuit.Witness) []byte {
	t.Helper()
	layout, err := compact.LayoutOf(c)
	if err != nil {
		t.Fatal(err)
	}
	memory := layout.Memory()
	job := compact.Job{Circuit: c, Witness: w, Workers: 2}
	if _, err := job.Synthesize(context.Background(), memory); err != nil {
		t.Fatal(err)
	}
	return memory
}

// TestHashesAheadChangeNoByteOfTheSegment is the tie between a machine with vector instructions and one without.
func TestHashesAheadChangeNoByteOfTheSegment(t *testing.T) {
	t.Parallel()
	check := func(name string, c *Circuit, w *Witness) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !bytes.Equal(synthesized(t, c, w), synthesized(t, c, onTheWay{w})) {
				t.Error("segments with hashes ahead and with hashes on the way differ")
			}
		})
	}
	for _, layers := range []int{2, 11} {
		shape, err := NewShape(64, layers, 3, 8, 4, 2)
		if err != nil {
			t.Fatal(err)
		}
		c := OfShape(fmt.Sprintf("test-%d", layers), shape)
		check(fmt.Sprintf("8-4-2, %d layers", layers), c, scrambled(c))
	}
	c, w := decoded(t, readC1(t, "2KiB-v1_1"), 0)
	check("2KiB", c, w)
}

func TestTheWalkTakesAllHashesAhead(t *testing.T) {
	t.Parallel()
	if !poseidon8.CanTrace() {
		t.Skip("no hashes ahead on this processor")
	}
	c, w := decoded(t, readC1(t, "2KiB-v1_1"), 0)
	h := walkHead(r1cs.NewSystem(r1cs.Start(), nil, nil), w.slice)
	challenge := &w.slice.Challenges[0]
	ahead := hashAhead(new(gadget.Lookahead), w.slice, challenge)
	all := append([]gadget.Ahead{ahead.own, ahead.replica}, ahead.parents[:]...)
	for i := range all {
		want := len(challenge.CPath)
		if i != 1 {
			want++ // the column
		}
		if got := all[i].Left(); got != want {
			t.Errorf("climb %d: %d hashes ahead, want %d", i, got, want)
		}
	}
	walkChallenge(r1cs.NewSystem(c.Sections()[1], nil, nil), &h, challenge, ahead)
	all = append([]gadget.Ahead{ahead.own, ahead.replica}, ahead.parents[:]...)
	for i := range all {
		if left := all[i].Left(); left != 0 {
			t.Errorf("climb %d: %d hashes left behind the walk", i, left)
		}
	}
}
