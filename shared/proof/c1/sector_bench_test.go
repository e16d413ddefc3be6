package c1_test

import (
	"bytes"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// BenchmarkSectorAccept is what happens to a submitted C1 output: decoding, checking, slicing and hashing; each apart,
// and decoding with checking together.
func BenchmarkSectorAccept(b *testing.B) {
	for _, number := range []sdr.RegisteredProof{5, 8, 9} {
		text, claim := sparseText(b, number)
		input, err := c1.Decode(bytes.NewReader(text), 0)
		if err != nil {
			b.Fatal(err)
		}
		decode := func() error {
			_, err := c1.Decode(bytes.NewReader(text), 0)
			return err
		}
		check := func() error { return c1.Check(input.Output, claim) }
		for _, stage := range []struct {
			name string
			run  func() error
		}{
			{"decode", decode},
			{"check", check},
			{"decode+check", func() error {
				if err := decode(); err != nil {
					return err
				}
				return check()
			}},
			{"slices", func() error {
				for partition := range input.Output.VanillaProofs {
					if _, err := c1.EncodeSlice(input.Output, partition); err != nil {
						return err
					}
				}
				return nil
			}},
			{"hash", func() error {
				c1.InputHash(input.Output, claim)
				return nil
			}},
		} {
			b.Run("size="+number.Size().String()+"/stage="+stage.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := stage.run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
