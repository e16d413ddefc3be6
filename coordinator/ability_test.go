package coordinator_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// The coordinator that leads has no verifying key for a job's circuit: it leads while it is alone, and gives way to one
// that has the key, which then verifies what waits.
func TestALeaderWithoutTheKeyGivesWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	empty := t.TempDir()
	blind := w.start(func(c *coordinator.Config) { c.Params.Dir = empty })
	reply := w.leads()
	first := reply.Term
	n := w.node("n1", 2, nil)
	id := w.submit(2)
	w.until("work is done that nobody can verify", func() bool { return len(n.attempts()) == 2 })
	if r := w.record(id); r.VerifiedCount() != 0 || w.leads().Term != first {
		t.Errorf("%d partitions are verified, the term is %d after %d", r.VerifiedCount(), w.leads().Term, first)
	}
	w.start()
	w.proof(w.ends(id, job.Done))
	if term := w.leads().Term; term <= first {
		t.Errorf("the blind one still leads, in term %d", term)
	}
	blind.stop()
	w.settles("n1")
}

// When the key comes to the only coordinator it is used, and the lead stays where it is.
func TestAKeyThatComesLaterIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.start(func(c *coordinator.Config) { c.Params.Dir = dir })
	first := w.leads().Term
	w.node("n1", 2, nil)
	id := w.submit(1)
	key := toy.Circuit().ParamsName() + ".vk"
	for _, name := range []string{"parameters.json", key} {
		data, err := os.ReadFile(filepath.Join(w.made.dir, name))
		w.check(err)
		w.check(os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	w.ends(id, job.Done)
	reply, err := ask[wire.NodesReply](w, wire.AdminSubject(wire.AdminNodes), &wire.Empty{})
	w.check(err)
	if reply.Term != first {
		t.Errorf("it leads in term %d, not in %d", reply.Term, first)
	}
}
