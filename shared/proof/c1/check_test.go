package c1

import (
	"testing"
)

func TestCheckAcceptsWhatRustMade(t *testing.T) {
	t.Parallel()
	for _, s := range append(localSamples(t), foreignSamples(t)...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if err := Check(mustDecode(t, s.text), s.claim); err != nil {
				t.Errorf("check: %v", err)
			}
		})
	}
}
