package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/proofrack/proofrack/shared/job"
)

// saysNeedAndHave is a reason with what a segment needs and what the folder has.
var saysNeedAndHave = regexp.MustCompile(`needs [0-9.]+ MiB,? .*has [0-9.]+ [KM]iB`)

// B81: the spill folder is a small tmpfs that a foreign file fills: the job waits and says for what, and so does the
// worker; no process dies, no attempt is used up; when there is room again the job is done.
func TestB81SpillFolderIsFull(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	r.startCoordinator()
	n := r.addNode("n1")
	if err := syscall.Mount("tmpfs", n.spill, "tmpfs", 0, "size=12m"); err != nil {
		t.Fatalf("mount a small tmpfs (needs root): %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(n.spill, syscall.MNT_DETACH) })
	n.startSynth("synth.pad_bytes=4MiB")
	n.startGPU("prove.cache=" + t.TempDir())
	r.ready()
	r.submit(1)
	r.waitDone()
	until(t, "the segment is given back, and the pool is swept", func() bool {
		return namesIn(n, "seg") == "" && namesIn(n, "pool") == ""
	})
	foreign := filepath.Join(n.spill, "foreign")
	f, err := os.Create(foreign)
	r.check(err)
	var st syscall.Statfs_t
	r.check(syscall.Statfs(n.spill, &st))
	r.check(syscall.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-1<<20))
	r.check(f.Close())
	q := request("waits for room", 2, 2)
	q.WaitForNode = true // whoever submits now may be told that no node has the room
	s, err := r.client.Submit(t.Context(), q)
	r.check(err)
	j := r.accepted(s.Job, 2)
	last := ""
	defer func() {
		if t.Failed() {
			t.Log(last)
		}
	}()
	until(t, "the job says what it waits for", func() bool {
		w, err := r.client.Why(t.Context(), j.id)
		if err != nil || len(w.Reasons) != 1 {
			return false
		}
		last = w.Reasons[0].Text
		return strings.Contains(last, n.spill) && strings.Contains(last, "not ready") && saysNeedAndHave.MatchString(last)
	})
	until(t, "the worker says the same", func() bool {
		v := r.view()
		last = fmt.Sprintf("%+v", v)
		return v != nil && len(v.Nodes) == 1 && !v.Nodes[0].Ready && saysNeedAndHave.MatchString(v.Nodes[0].Reason)
	})
	record := r.record(j)
	if record.State != job.Active || record.Partitions[0].FailedCount+record.Partitions[0].LostCount > 0 {
		t.Errorf("the job is %s: %+v", record.State, record.Partitions)
	}
	for _, p := range []*process{r.coordinators[0], n.synth, n.gpu} {
		select {
		case <-p.done:
			t.Errorf("%s ended", p.name)
		default:
		}
	}
	r.check(os.Remove(foreign))
	r.waitDone()
	r.checkQuiet()
}
