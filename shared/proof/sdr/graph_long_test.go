//go:build long

package sdr

import "testing"

func TestParentGraph512MiBHasItsPublishedDigest(t *testing.T) {
	t.Parallel()
	for number, want := range map[RegisteredProof]string{
		2: "3adcc092423aa76d6a7184016893406da44dd974b219a89cd3ece25e4e3018f5",
		7: "b5877d1963793efebc261fd8fde4dd6bc59e6b5c7abf52617a4ee023b8dc173a",
	} {
		t.Run(number.String(), func(t *testing.T) {
			t.Parallel()
			if got := parentsDigest(number.Config().Graph().Tabulated()); got != want {
				t.Errorf("digest = %s, want %s", got, want)
			}
		})
	}
}
