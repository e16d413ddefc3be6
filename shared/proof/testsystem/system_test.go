package testsystem_test

import (
	"errors"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/testsystem"
)

// check holds what this build walks against the specification.
func check(t *testing.T, s *testsystem.System) {
	t.Helper()
	totals := s.Totals()
	if totals.Inputs != s.Inputs || totals.Aux != s.Aux || totals.Rows != s.Rows {
		t.Fatalf("inputs, aux, rows: got %d, %d, %d, want %d, %d, %d",
			totals.Inputs, totals.Aux, totals.Rows, s.Inputs, s.Aux, s.Rows)
	}
	if got := s.Digest(); got != s.Hash {
		t.Fatalf("hash: got %s, want %s", got, s.Hash)
	}
}

// quickRowsMax keeps the default run short; the long run has them all.
const quickRowsMax = 4_000_000

func TestSystemsHaveTheirHash(t *testing.T) {
	t.Parallel()
	for _, s := range testsystem.All() {
		if s.Rows > quickRowsMax {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			check(t, s)
		})
	}
}

func TestThereAre27NumberedSystems(t *testing.T) {
	t.Parallel()
	all := testsystem.All()
	if len(all) != 37 || all[0].Name != "F1" || all[26].Name != "F27" {
		t.Fatalf("%d systems, the first %s, number 27 %s", len(all), all[0].Name, all[26].Name)
	}
	if s, err := testsystem.Find("F11"); err != nil || s.Rows != 1063 {
		t.Errorf("find F11: %v, %v", s, err)
	}
	if _, err := testsystem.Find("F28"); !errors.Is(err, testsystem.ErrUnknown) {
		t.Errorf("find F28: got %v", err)
	}
}
