package blinding

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Source says where r and s come from. The zero value is the operating system's generator.
type Source struct {
	fixed bool
	r, s  fr.Element
}

// Fixed is a source that always gives the same scalars.
func Fixed(r, s fr.Element) Source { return Source{fixed: true, r: r, s: s} }

// Draw gives r and s, uniform and independent unless fixed.
func (src Source) Draw() (r, s fr.Element, err error) {
	if src.fixed {
		return src.r, src.s, nil
	}
	for _, e := range []*fr.Element{&r, &s} {
		if _, err := e.SetRandom(); err != nil {
			return r, s, fmt.Errorf("draw blinding scalars: %w", err)
		}
	}
	return r, s, nil
}
