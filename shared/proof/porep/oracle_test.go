package porep

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/compact"
)

// segmentOf synthesizes one partition of a C1 output.
func segmentOf(t testing.TB, out *c1.Output, partition int) (*Circuit, *compact.Segment, []byte) {
	t.Helper()
	c, witness := decoded(t, out, partition)
	layout, err := compact.LayoutOf(c)
	if err != nil {
		t.Fatal(err)
	}
	job := compact.Job{Circuit: c, Witness: witness, Partition: partition, Workers: 2}
	memory := layout.Memory()
	for i := range memory {
		memory[i] = 0xa5 // what a reused segment holds must not matter
	}
	segment, err := job.Synthesize(context.Background(), memory)
	if err != nil {
		t.Fatal(err)
	}
	if err := segment.Verify(2); err != nil {
		t.Fatal(err)
	}
	return c, segment, memory
}

func readC1(t testing.TB, name string) *c1.Output {
	t.Helper()
	f, err := os.Open("../c1/testdata/" + name + ".c1.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	input, err := c1.Decode(f, 0)
	if err != nil {
		t.Fatal(err)
	}
	return input.Output
}

// summary is a vector as the oracle describes it: its digest and how many values are of each kind.
func summary(name string, n int, expand func(from int, dst []fr.Element)) string {
	h := sha256.New()
	var zero, one, small, full int
	block := make([]fr.Element, 1<<12)
	for from := 0; from < n; from += len(block) {
		b := block[:min(len(block), n-from)]
		expand(from, b)
		for i := range b {
			words := b[i].Bits()
			var le [32]byte
			for k, w := range words {
				binary.LittleEndian.PutUint64(le[8*k:], w)
			}
			h.Write(le[:])
			switch {
			case words[1]|words[2]|words[3] != 0:
				full++
			case words[0] == 0:
				zero++
			case words[0] == 1:
				one++
			default:
				small++
			}
		}
	}
	digest := hex.EncodeToString(h.Sum(nil))
	if name == "input" {
		return fmt.Sprintf("input sha256 %s", digest)
	}
	return fmt.Sprintf("%s sha256 %s zero %d one %d below-2^64 %d full %d", name, digest, zero, one, small, full)
}

func densitySummary(name string, words []uint64, n int) string {
	le := make([]byte, 8*len(words))
	count := 0
	for i, w := range words {
		binary.LittleEndian.PutUint64(le[8*i:], w)
		for ; w != 0; w &= w - 1 {
			count++
		}
	}
	digest := sha256.Sum256(le[:(n+7)/8])
	return fmt.Sprintf("density %s %d of %d sha256 %x", name, count, n, digest)
}

// witnessLines are the oracle's lines for one partition.
func witnessLines(t *testing.T, name string, partition int) []string {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".witness.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	mine := false
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		line := scanner.Text()
		if strings.HasPrefix(line, "partition ") {
			mine = strings.HasPrefix(line, fmt.Sprintf("partition %d ", partition))
		}
		if mine && !strings.HasPrefix(line, "first ") {
			lines = append(lines, strings.TrimSuffix(line, " unsatisfied 0")) // other tests evaluate the rows
		}
	}
	if len(lines) == 0 {
		t.Fatalf("oracle %s has nothing about partition %d", name, partition)
	}
	return lines
}

func TestSynthesisEqualsTheOracle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		partition int
		survey    func() *survey
	}{
		{"2KiB-v1", 0, survey2KiB}, {"2KiB-v1_1", 0, survey2KiB}, {"2KiB-synthetic", 0, survey2KiB},
		{"2KiB-non-interactive", 0, survey2KiB}, {"2KiB-non-interactive", 12, survey2KiB}, {"8MiB-v1_1", 0, survey8MiB},
	} {
		t.Run(fmt.Sprintf("%s/%d", c.name, c.partition), func(t *testing.T) {
			t.Parallel()
			_, s, _ := segmentOf(t, readC1(t, c.name), c.partition)
			n := s.Counts()
			inputs := s.Inputs()
			density := c.survey().density
			got := []string{
				fmt.Sprintf("partition %d rows %d inputs %d aux %d", c.partition, n.RowsTotal(), n.Inputs, n.Aux),
				summary("input", n.Inputs, func(from int, dst []fr.Element) { copy(dst, inputs[from:]) }),
				summary("aux", n.Aux, s.ExpandAux), summary("a", n.RowsTotal(), s.ExpandA),
				summary("b", n.RowsTotal(), s.ExpandB), summary("c", n.RowsTotal(), s.ExpandC),
				densitySummary("a_aux", density.AAux, n.Aux), densitySummary("b_input", density.BInputs, n.Inputs),
				densitySummary("b_aux", density.BAux, n.Aux),
			}
			if diff := cmp.Diff(witnessLines(t, c.name, c.partition), got); diff != "" {
				t.Errorf("oracle (-) and ours (+) differ:\n%s", diff)
			}
		})
	}
}
