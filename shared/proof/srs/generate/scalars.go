package generate

import (
	"encoding/binary"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/crypto/blake2b"
)

// Scalars determine the parameters of a circuit (spec c2-formats.md 3.9). All must differ from 0, and Tau must not be a
// root of unity of the circuit's domain.
type Scalars struct {
	Alpha, Beta, Gamma, Delta, Tau fr.Element
}

// versionLabel goes into every seeded scalar; it changes when files of the same seed shall differ.
const versionLabel = "proofrack development parameters 1"

// FromSeed derives the scalars of a circuit from a seed text: each is BLAKE2b-512 of version label, seed, circuit id
// and its own name, each preceded by its length, as a big-endian number modulo r.
func FromSeed(seed, circuitID string) Scalars {
	scalar := func(name string) fr.Element {
		var text []byte
		for _, part := range []string{versionLabel, seed, circuitID, name} {
			text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
			text = append(text, part...)
		}
		sum := blake2b.Sum512(text)
		var e fr.Element
		e.SetBytes(sum[:])
		return e
	}
	return Scalars{
		Alpha: scalar("alpha"), Beta: scalar("beta"), Gamma: scalar("gamma"), Delta: scalar("delta"),
		Tau: scalar("tau"),
	}
}

// validate refuses what cannot make parameters.
func (s *Scalars) validate() error {
	for _, x := range []struct {
		name  string
		value *fr.Element
	}{{"alpha", &s.Alpha}, {"beta", &s.Beta}, {"gamma", &s.Gamma}, {"delta", &s.Delta}, {"tau", &s.Tau}} {
		if x.value.IsZero() {
			return fmt.Errorf("%s is 0: %w", x.name, ErrScalars)
		}
	}
	return nil
}
