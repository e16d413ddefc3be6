package groth16

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/google/go-cmp/cmp"
)

// sampleProof is well formed and proves nothing.
func sampleProof() *Proof {
	_, _, g1, g2 := bls12381.Generators()
	p := &Proof{B: g2}
	p.A.Double(&g1)
	p.C.Neg(&g1)
	return p
}

// first puts a compressed G1 encoding in front of a good proof.
func first(encoding ...byte) []byte {
	b := sampleProof().Bytes()
	copy(b[:48], make([]byte, 48))
	copy(b[:], encoding[:1])
	copy(b[48-len(encoding)+1:48], encoding[1:])
	return b[:]
}

// The files F08 to F11 of field report B05, and the same for the other points.
func badProofs() map[string]struct {
	data []byte
	want error
} {
	good := sampleProof().Bytes()
	with := func(at int, encoding ...byte) []byte {
		b := bytes.Clone(good[:])
		copy(b[at:], encoding)
		return b
	}
	zeros := func(lead byte, n int) []byte { return append([]byte{lead}, make([]byte, n-1)...) }
	one := func(lead byte, n int) []byte { b := zeros(lead, n); b[n-1] = 1; return b }
	over := bytes.Repeat([]byte{0xff}, 48)
	over[0] = 0x9f
	return map[string]struct {
		data []byte
		want error
	}{
		"F08a order 3":                {first(0x80, 0), ErrSubgroup},
		"F08b outside the subgroup":   {first(0x80, 4), ErrSubgroup},
		"F08c not on the curve":       {first(0x80, 1), ErrEncoding},
		"F08d above the modulus":      {with(0, over...), ErrEncoding},
		"F09 191 bytes":               {good[:191], ErrLength},
		"F09 193 bytes":               {append(good[:], 0), ErrLength},
		"F09 two proofs":              {append(good[:], good[:]...), ErrLength},
		"F09 empty":                   {nil, ErrLength},
		"F10 zeros":                   {make([]byte, ProofBytes), ErrEncoding},
		"F11 infinity with a rest":    {with(0, one(0xc0, 48)...), ErrInfinity},
		"F11 infinity with a sign":    {with(0, zeros(0xe0, 48)...), ErrInfinity},
		"F11 infinity":                {with(0, zeros(0xc0, 48)...), ErrInfinity},
		"B infinity":                  {with(48, zeros(0xc0, 96)...), ErrInfinity},
		"B infinity with a rest":      {with(48, one(0xc0, 96)...), ErrInfinity},
		"B uncompressed":              {with(48, good[48]&^0x80), ErrEncoding},
		"B above the modulus":         {with(48, over...), ErrEncoding},
		"B second half above modulus": {with(96, append([]byte{0xff}, over[1:]...)...), ErrEncoding},
		"C order 3":                   {with(144, zeros(0x80, 48)...), ErrSubgroup},
		"C infinity":                  {with(144, zeros(0xc0, 48)...), ErrInfinity},
		"C uncompressed infinity":     {with(144, zeros(0x40, 48)...), ErrEncoding},
	}
}

func TestB05BadProofBytesHaveFourDifferentErrors(t *testing.T) {
	t.Parallel()
	all := []error{ErrLength, ErrEncoding, ErrSubgroup, ErrInfinity}
	for name, c := range badProofs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proof, err := ParseProof(c.data)
			if proof != nil {
				t.Error("a proof came back")
			}
			for _, kind := range all {
				if errors.Is(err, kind) != errors.Is(c.want, kind) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			}
		})
	}
}

func TestB05ErrorsNameTheProofAndThePoint(t *testing.T) {
	t.Parallel()
	good := sampleProof().Bytes()
	bad := good
	copy(bad[144:], append([]byte{0x80}, make([]byte, 47)...))
	_, err := ParseProofs(append(good[:], bad[:]...), 2)
	if !errors.Is(err, ErrSubgroup) || !strings.Contains(err.Error(), "proof 1 of 2: point C") {
		t.Errorf("got %v", err)
	}
	for name, c := range map[string]struct{ bytes, count int }{
		"one short": {191, 1}, "negative": {0, -1}, "one of two": {192, 2}, "three of two": {576, 2},
	} {
		if _, err := ParseProofs(make([]byte, c.bytes), c.count); !errors.Is(err, ErrLength) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A point of G2's curve that is outside the subgroup is found by trying x until one has no root of unity cofactor.
func TestProofPointsOfG2OutsideTheSubgroupAreRefused(t *testing.T) {
	t.Parallel()
	good := sampleProof().Bytes()
	found := 0
	for x := byte(1); x < 40; x++ {
		data := good
		copy(data[48:144], append([]byte{0x80}, make([]byte, 95)...))
		data[143] = x
		_, err := ParseProof(data[:])
		switch {
		case errors.Is(err, ErrSubgroup):
			found++
		case !errors.Is(err, ErrEncoding):
			t.Errorf("x = %d: %v", x, err)
		}
	}
	if found < 10 {
		t.Errorf("%d points on the curve among 39", found)
	}
}

func TestProofsComeBackFromTheirBytes(t *testing.T) {
	t.Parallel()
	want := []Proof{*sampleProof(), *sampleProof()}
	want[1].A.Neg(&want[1].A)
	var data []byte
	for i := range want {
		data = want[i].Append(data)
	}
	got, err := ParseProofs(data, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSealRecordsAllDecode(t *testing.T) {
	t.Parallel()
	records, proofs := readSealRecords(t), 0
	for i := range records {
		r := &records[i]
		count := r.sector(t).Config.PartitionCount()
		if count != r.Config.Partitions {
			t.Errorf("record %d: %d partitions, want %d", i+1, r.Config.Partitions, count)
		}
		got, err := ParseProofs(r.proofBytes(), count)
		if err != nil {
			t.Errorf("record %d: %v", i+1, err)
			continue
		}
		var data []byte
		for k := range got {
			data = got[k].Append(data)
		}
		if !bytes.Equal(data, r.proofBytes()) {
			t.Errorf("record %d: other bytes come back", i+1)
		}
		proofs += count
	}
	if len(records) != 448 || proofs != 502 {
		t.Errorf("%d records with %d proofs, want 448 with 502", len(records), proofs)
	}
}
