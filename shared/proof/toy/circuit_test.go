package toy

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

func TestToyIsFixtureF11(t *testing.T) {
	t.Parallel()
	c := Circuit()
	totals := circuit.Totals(c)
	if totals.Rows != 1063 || totals.Aux != 1076 || totals.Inputs != 3 {
		t.Fatalf("totals %+v", totals)
	}
	digest := r1cs.NewDigest(totals)
	circuit.Describe(c, digest)
	const want = "3bd8cb4719e1ce8b020c078159a77bd5cf9d8eca04ed094eaca290c621f10a20"
	if got := digest.Hex(); got != want {
		t.Fatalf("hash: got %s, want %s", got, want)
	}
	if got := c.ParamsName(); got != "proofrack-toy-"+want {
		t.Fatalf("parameter name: got %s", got)
	}
}

func TestToyIsSatisfiedForAnySeed(t *testing.T) {
	t.Parallel()
	c := Circuit()
	layout, err := compact.LayoutOf(c)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(70) {
		w, err := c.Decode(Slice(seed))
		if err != nil {
			t.Fatal(err)
		}
		job := compact.Job{Circuit: c, Witness: w}
		s, err := job.Synthesize(context.Background(), layout.Memory())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(c, 1); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(w.PublicInputs(), s.Inputs()[1:]); diff != "" {
			t.Fatalf("seed %d: public inputs differ:\n%s", seed, diff)
		}
	}
}

func TestBadSlicesAreRefused(t *testing.T) {
	t.Parallel()
	good := Slice(5)
	for name, mutate := range map[string]func([]byte) []byte{
		"empty":         func([]byte) []byte { return nil },
		"one byte more": func(b []byte) []byte { return append(b, 0) },
		"not canonical": func(b []byte) []byte { b[0] = 0xff; return b },
		"index 64":      func(b []byte) []byte { b[32] = 64; return b },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Circuit().Decode(mutate(append([]byte(nil), good...))); !errors.Is(err, ErrSlice) {
				t.Fatalf("got %v, want ErrSlice", err)
			}
		})
	}
}
