package generate

import (
	"bytes"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// row is one constraint.
type row struct{ a, b, c r1cs.LC }

// listed is a circuit given by its rows, cut into sections.
type listed struct {
	name     string
	sections [][]row
	starts   []r1cs.Position
	shared   int
}

func (c *listed) ID() string                { return c.name }
func (c *listed) ParamsName() string        { return c.name }
func (c *listed) Sections() []r1cs.Position { return c.starts }
func (c *listed) SharedAux() int            { return c.shared }
func (c *listed) Describe(section int, rows r1cs.RowSink) {
	for _, r := range c.sections[section] {
		rows.Row(r.a, r.b, r.c)
	}
}

func term(v r1cs.Var, k int64) r1cs.Term {
	t := r1cs.Term{Var: v}
	t.Coeff.SetInt64(k)
	return t
}

// knownAnswer is the circuit of spec c2-formats.md 3.9: out = x³ + x + 5.
func knownAnswer() *listed {
	out, x, y, z := r1cs.InputVar(1), r1cs.AuxVar(0), r1cs.AuxVar(1), r1cs.AuxVar(2)
	return &listed{
		name: "known-answer", shared: 3,
		sections: [][]row{{
			{r1cs.LC{term(x, 1)}, r1cs.LC{term(x, 1)}, r1cs.LC{term(y, 1)}},
			{r1cs.LC{term(y, 1)}, r1cs.LC{term(x, 1)}, r1cs.LC{term(z, 1)}},
			{r1cs.LC{term(r1cs.One, 5), term(x, 1)}, r1cs.LC{term(r1cs.One, 1)}, r1cs.LC{term(out, 1), term(z, -1)}},
		}},
		starts: []r1cs.Position{{Inputs: 1}, {Rows: 3, Inputs: 2, Aux: 3}},
	}
}

// cut gives the same circuit in two sections, the second with the last row and z as its own auxiliary where that is
// possible: z is moved to the second section with both its rows.
func (c *listed) cut() *listed {
	all := c.sections[0]
	return &listed{
		name: c.name, shared: 2,
		sections: [][]row{all[:1], all[1:]},
		starts:   []r1cs.Position{{Inputs: 1}, {Rows: 1, Inputs: 1, Aux: 2}, {Rows: 3, Inputs: 2, Aux: 3}},
	}
}

// exact are the scalars of the known-answer vector and of the exact parameter files.
func exact() Scalars {
	var s Scalars
	s.Alpha.SetUint64(11)
	s.Beta.SetUint64(13)
	s.Gamma.SetUint64(17)
	s.Delta.SetUint64(19)
	s.Tau.SetUint64(23)
	return s
}

func element(t *testing.T, hex string) fr.Element {
	t.Helper()
	var e fr.Element
	if _, err := e.SetString("0x" + hex); err != nil {
		t.Fatal(err)
	}
	return e
}

func elements(t *testing.T, hex ...string) []fr.Element {
	t.Helper()
	var all []fr.Element
	for _, h := range hex {
		all = append(all, element(t, h))
	}
	return all
}

func TestKnownAnswerExponents(t *testing.T) {
	t.Parallel()
	e, err := evaluate(t.Context(), knownAnswer(), exact(), Options{}.serialized())
	if err != nil {
		t.Fatal(err)
	}
	defer e.free()
	got := map[string][]fr.Element{
		"omega": {e.domain.omega}, "u": e.heads[0], "v": e.heads[1], "ic": e.ic, "l": e.headL,
	}
	want := map[string][]fr.Element{
		"omega": elements(t, "345766f603fa66e78c0625cd70d77ce2b38b21c28713b7007228fd3397743f7a"),
		"u": elements(t,
			"14a732fa82911fe5358a2f7975e94a0b8d839b2fdab3124a29adffa79b057f16",
			"73eda753299d7d483339d80809a1d80553bda402fffe5bfefffffffee7b066ee",
			"000000000dfa382772e73069a87cf399dd23ef9fb6d41951ef9c0000196b8e68",
			"5af38e097d331d287a2c60c18c369255f79cd06e11d1669d5545c1d682b98d48"),
		"v": elements(t,
			"000000000dfa382772e73069a87cf399dd23ef9fb6d41951ef9bfffffee62d3c",
			"5af38e097d331d287a2c60c18c369255f79cd06e11d1669d5545c1d69d3eee74"),
		"ic": elements(t,
			"38b59e465d75a52d946e0858ca96b913ebafc41486f37b1306354b0757b74238",
			"6d1be8c6be93e2a0a0622886402733ff01785d2a560aeea98690b4b3b11bf705"),
		"l": elements(t,
			"5329dc94add74acc299133acfce30bd257a547c8bd4d49feace3f6f5517b7fb3",
			"62d6be7198b3059e48d25086f73006a84a99b4edf13de9ff8b2fba84fc85f9fe",
			"541b3697b689b29d3e611d179950156bdc5fb1f1f74f93dadcedfcb9c391dca3"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKnownAnswerFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*listed{"one section": knownAnswer(), "two sections": knownAnswer().cut()} {
		for _, workers := range []int{1, 3} {
			var file bytes.Buffer
			r, err := Write(t.Context(), &file, c, exact(), Options{Workers: workers})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := srs.Counts{IC: 2, H: 7, L: 3, A: 4, B: 2}
			if diff := cmp.Diff(want, r.Counts); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if file.Len() != 3000 || r.Digest != "4a917438cfcb64fd9ca342c9838a6b16" {
				t.Errorf("%s: parameters of %d bytes with digest %s", name, file.Len(), r.Digest)
			}
			key := srs.NewDigest()
			n, err := r.Key.WriteTo(key)
			if err != nil || n != 1060 || key.Hex() != "732ed02c1dad7745a5f844bd631898a9" {
				t.Errorf("%s: key of %d bytes with digest %s, %v", name, n, key.Hex(), err)
			}
		}
	}
}
