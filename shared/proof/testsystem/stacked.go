package testsystem

import (
	"fmt"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// described is a system that is a circuit.
type described struct{ circuit.Circuit }

func (d described) totals() r1cs.Position      { return circuit.Totals(d.Circuit) }
func (d described) describe(rows r1cs.RowSink) { circuit.Describe(d.Circuit, rows) }

// Circuit is the system as a circuit; nil for those that are single gadgets.
func (s *System) Circuit() circuit.Circuit {
	if d, ok := s.walk.(described); ok {
		return d.Circuit
	}
	return nil
}

// tree is a tree shape base-sub-top over a number of nodes.
type tree struct{ nodes, base, sub, top int }

// stacked are F17 to F27: the stacked circuit alone.
func stacked() []*System {
	system := func(name string, inputs, aux, rows int, hash string, layers, challenges int, t tree) *System {
		shape, err := porep.NewShape(t.nodes, layers, challenges, t.base, t.sub, t.top)
		if err != nil {
			panic(fmt.Sprintf("testsystem: %s: %v", name, err))
		}
		return &System{name, inputs, aux, rows, hash, described{porep.OfShape(name, shape)}}
	}
	size32, size64 := tree{1 << 30, 8, 8, 0}, tree{1 << 31, 8, 8, 2}
	return []*System{
		system("F17", 22, 1205053, 1206212, "e933e8bea2e68a3569205187f61c428770f083c7e7d2113babedb204b9429bc3", 2, 1, tree{8, 2, 0, 0}),
		system("F18", 22, 1198525, 1199620, "b9e22ee377bc73c4e08f679252c4f87948f5812be8c95358a6bf87a7279a785f", 2, 1, tree{8, 8, 0, 0}),
		system("F19", 22, 1295435, 1296576, "2bb32fe1d16325b1afe3f67f42148047406233e23eae86605f53247273706615", 2, 1, tree{32, 8, 4, 0}),
		system("F20", 22, 1345810, 1346982, "c9b69c85139ae04bac789fecb881052900c660c6337ab4b520eaa0c9f7293f75", 2, 1, tree{64, 8, 4, 2}),
		system("F21", 22, 7232200, 7238236, "5d477993ad4d9f61d0bb3309e06fd6659635ddd6007f0b3fdf81feb9d4ed5ef6", 11, 1, size32),
		system("F22", 22, 7282575, 7288642, "f76ab217216b44c128deeefe2982423a61a43517655eac6e7090da1ac0d52e3d", 11, 1, size64),
		system("F23", 40, 2685673, 2687921, "2c120b1125bd531d5a62b11932b2ae0e0cb47f455cea582994f97534e296bb42", 2, 2, tree{1 << 6, 8, 0, 0}),
		system("F24", 40, 3842449, 3844929, "b1fe5a4629fb8fc6684d6c90d6f8d6d32e5bccf6bc9439e4e8a9758e579328db", 2, 2, tree{1 << 18, 8, 0, 0}),
		system("F25", 40, 4420837, 4423433, "c7ade8c93707968e967cce4507669258eab20ff010e6dc1827d55544ee671cbb", 2, 2, tree{1 << 24, 8, 0, 0}),
		system("F26", 328, 130169893, 130278541, "a790207ea0435359e7d5f286563586e3f9a3a286c97af2440f65a4a18063d9cb", 11, 18, size32),
		system("F27", 328, 131076643, 131185849, "7686117961498d7849ede7429233254b20e3b149011eca8674ca8e9ab0655af6", 11, 18, size64),
	}
}
