package sdr

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The data commitment of a 32 GiB sector of zeros is one that the chain is full of.
func TestCommitmentOfZerosHasTheKnownCID(t *testing.T) {
	t.Parallel()
	const text = "077e5fde35c50a9303a55009e3498a4ebedff39c42b710b730d8ec7ac7afa63e"
	const cid = "baga6ea4seaqao7s73y24kcutaosvacpdjgfe5pw76ooefnyqw4ynr3d2y6x2mpq"
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := DataCommitment.CID([32]byte(raw)); got != cid {
		t.Errorf("got %s, want %s", got, cid)
	}
	for _, form := range []string{text, strings.ToUpper(text), cid} {
		if got, err := DataCommitment.Parse(form); err != nil || got != [32]byte(raw) {
			t.Errorf("%s: %x, %v", form, got, err)
		}
	}
	if got := ReplicaCommitment.CID([32]byte(raw)); !strings.HasPrefix(got, "bagboea4b5abc") {
		t.Errorf("comm_r is %s", got)
	}
}

func TestCommitmentsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "value"))
		for _, c := range []Commitment{DataCommitment, ReplicaCommitment} {
			if got, err := c.Parse(c.CID(value)); err != nil || got != value {
				t.Fatalf("%s %x: %x, %v", c, value, got, err)
			}
			if _, err := (1 - c).Parse(c.CID(value)); !errors.Is(err, ErrCommitment) {
				t.Fatalf("%s is taken for the other one: %v", c, err)
			}
		}
	})
}

func TestOtherTextsAreNoCommitments(t *testing.T) {
	t.Parallel()
	good := DataCommitment.CID([32]byte{1})
	last := good[len(good)-1:]
	for name, text := range map[string]string{
		"empty": "", "short hex": "00", "no hex": strings.Repeat("x", 64), "cut": good[:len(good)-2],
		"longer": good + "aa", "upper case": strings.ToUpper(good), "another base": "z" + good[1:], "only b": "b",
		"version 0": "QmY7Yh4UquoXHLPFo2XbhXkhBvFoPwmQUSa92pxnxjQuPU", "very long": "bag" + strings.Repeat("b", 1<<20),
		"of a file":           "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
		"bits behind the end": strings.TrimSuffix(good, last) + string(last[0]+1),
	} {
		if value, err := DataCommitment.Parse(text); !errors.Is(err, ErrCommitment) || len(err.Error()) > 300 {
			t.Errorf("%s: %x, %v", name, value, err)
		}
	}
}

func TestRegisteredProofsAreReadByNumberToo(t *testing.T) {
	t.Parallel()
	for number := range RegisteredProof(RegisteredProofCount) {
		for _, text := range []string{number.String(), strconv.Itoa(int(number))} {
			if got, err := ParseRegisteredProof(text); err != nil || got != number {
				t.Errorf("%q: %v, %v", text, got, err)
			}
		}
	}
	for _, text := range []string{"", "20", "-1", "+5", "05", "5 ", "1e1", "StackedDrg32GiB", "4294967301"} {
		if got, err := ParseRegisteredProof(text); !errors.Is(err, ErrRegisteredProof) {
			t.Errorf("%q is %v", text, got)
		}
	}
}
