package workergpu_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/config"
	workergpu "github.com/proofrack/proofrack/worker-gpu"
)

func TestEveryKeyIsDocumentedAndTheDefaultsHold(t *testing.T) {
	t.Parallel()
	c := workergpu.DefaultConfig()
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
		"prove.params=", "prove.ahead=-1", "prove.ahead=1000", "prove.workers=-1", "prove.poll=0s",
		"prove.circuits=porep-3GiB", "assets.listen=here", "assets.advertise=ftp://x", "assets.advertise=http://x/y",
		"assets.rate_max=1KiB",
		"engine.start_max=0s", "engine.faults_max=0", "simulate={cpu='{'}", `simulate={cpu='{"leak_percent":200}'}`,
		`simulate={CPU='{}'}`, "gpu.interval=0s",
	} {
		c := workergpu.DefaultConfig()
		if _, err := config.Load(&c, config.Sources{Set: []string{"node=n1", set}}); err == nil {
			t.Errorf("%s passes", set)
		}
	}
}
