package workersynth_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/config"
	workersynth "github.com/proofrack/proofrack/worker-synth"
)

func TestEveryKeyIsDocumentedAndTheDefaultsHold(t *testing.T) {
	t.Parallel()
	c := workersynth.DefaultConfig()
	if got := config.Undocumented(&c); len(got) != 0 {
		t.Errorf("keys without a meaning: %v", got)
	}
	if _, err := config.Load(&c, config.Sources{Set: []string{"node=n1"}}); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, set := range []string{
		"synth.slots=-1", "synth.slots=1000", "synth.workers=-1", "synth.circuits=porep-3GiB", "synth.pad_bytes=-1B",
		"synth.ballast_bytes=-1B",
		"worker.keep_every=20s", "worker.heartbeat=0s", "node=A", "spill.path=relative",
		"nats.cert_file=/a",
	} {
		c := workersynth.DefaultConfig()
		if _, err := config.Load(&c, config.Sources{Set: []string{"node=n1", set}}); err == nil {
			t.Errorf("%s passes", set)
		}
	}
}
