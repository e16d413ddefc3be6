package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/porep"
)

// ErrUnknown is wrapped when nothing of that name exists.
var ErrUnknown = errors.New("unknown circuit")

// Kinds are the kinds of proof, the default first.
func Kinds() []circuit.Kind { return append([]circuit.Kind{porep.Kind{}}, testKinds()...) }

// FindKind is the kind with the given name; "" is the default.
func FindKind(name string) (circuit.Kind, error) {
	var known []string
	for _, k := range Kinds() {
		if name == "" || k.Name() == name {
			return k, nil
		}
		known = append(known, k.Name())
	}
	return nil, fmt.Errorf("%w: kind of proof %q; there are %s", ErrUnknown, name, strings.Join(known, ", "))
}

// Circuits are the circuits of all kinds.
func Circuits() []circuit.Circuit {
	var all []circuit.Circuit
	for _, k := range Kinds() {
		all = append(all, k.Circuits()...)
	}
	return all
}

// Find is the circuit with the given id.
func Find(id string) (circuit.Circuit, error) {
	return find("id", id, circuit.Circuit.ID)
}

// FindByParamsName is the circuit whose parameter files have the given base name.
func FindByParamsName(name string) (circuit.Circuit, error) {
	return find("parameter files", name, circuit.Circuit.ParamsName)
}

func find(what, name string, key func(circuit.Circuit) string) (circuit.Circuit, error) {
	var known []string
	for _, c := range Circuits() {
		if key(c) == name {
			return c, nil
		}
		known = append(known, c.ID())
	}
	return nil, fmt.Errorf("%w with %s %q; there are %s", ErrUnknown, what, name, strings.Join(known, ", "))
}
