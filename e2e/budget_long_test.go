//go:build long

package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// What the budget is proved with: segments of 256 MiB and a device that takes 400 ms for a partition.
const (
	budgetSegment    = 256 * bytesize.MiB
	budgetPartitions = 12
	budgetPairs      = 5
	budgetDevice     = `{"start_time_ns":400000000,"finish_time_ns":100000000}`
)

// The budget is proved: where two partitions fit and twelve wait, no more than two are there at any moment, and this
// costs next to no throughput. What is there is sampled from outside: bytes of the node's file system, which has room
// for all of them, and memory of its processes.
//
// The same work without the ledger's bound is done by two racks beside it, on nodes with room for all: one as it is
// shipped, and one that works as far ahead as the bounded one (schedule.device_partitions_max), so that only what
// counts bytes differs. Runs take turns.
func TestLongBudgetOfTwo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a tmpfs of its own and must be run as root")
	}
	bounded, free, alike := newRack(t), newRack(t), newRack(t)
	start := func(r *rack, room bytesize.Bytes, settings ...string) *node {
		r.startShipped(settings...)
		n := r.addNode("n1")
		mountTmpfs(t, n.spill, (budgetPartitions+1)*budgetSegment)
		memory := fmt.Sprintf("memory.shm_max=%d", room)
		n.workShipped(budgetDevice, []string{fmt.Sprintf("synth.pad_bytes=%d", budgetSegment), memory},
			[]string{"prove.ahead=2", memory})
		r.ready()
		return n
	}
	two := start(bounded, 2*budgetSegment+64*bytesize.MiB)
	start(free, (budgetPartitions+1)*budgetSegment)
	start(alike, (budgetPartitions+1)*budgetSegment, "schedule.device_partitions_max=1")
	work := func(r *rack) time.Duration {
		seeds := make([]uint64, budgetPartitions)
		for i := range seeds {
			seeds[i] = uint64(1000*len(r.jobs) + i + 1)
		}
		began := time.Now()
		r.submit(seeds...)
		r.ended(time.Minute)
		return time.Since(began)
	}
	work(bounded) // pools, measured times
	work(free)
	work(alike)
	s := sample(t, two)
	var toFree, toAlike []time.Duration // ratios, in nanoseconds per second, so that quantile serves
	racks := []*rack{bounded, free, alike}
	for turn := range budgetPairs {
		took := map[*rack]time.Duration{}
		for i := range racks {
			r := racks[(turn+i)%len(racks)]
			took[r] = work(r)
		}
		t.Logf("turn %d: room for two %s, for all %s, for all and no further ahead %s", turn+1, took[bounded], took[free],
			took[alike])
		ratio := func(other *rack) time.Duration {
			return time.Duration(took[other].Seconds() / took[bounded].Seconds() * float64(time.Second))
		}
		toFree, toAlike = append(toFree, ratio(free)), append(toAlike, ratio(alike))
	}
	s.end()
	s.judge(t)
	for what, ratios := range map[string][]time.Duration{
		"": toFree, ", as far ahead": toAlike,
	} {
		median := quantile(ratios, 0.5).Seconds()
		figure(t, "throughput with room for 2 of 12, to that with room for all"+what, median, "", ">= 0.95", median >= 0.95)
	}
	for _, r := range racks {
		r.checkQuietLater()
	}
}

func mountTmpfs(t *testing.T, folder string, size bytesize.Bytes) {
	t.Helper()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		t.Fatalf("mount a tmpfs of %d bytes on %s: %v", size, folder, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", folder, err)
		}
	})
}

// samples are what was seen of a node from outside.
type samples struct {
	node *node
	stop chan struct{}
	done sync.WaitGroup

	began    time.Time
	last     time.Time
	count    int
	pause    time.Duration  // longest between two
	late     int            // samples that came later than pauseMax after the one before
	used     bytesize.Bytes // most in the file system
	two      int            // samples with two partitions
	sum      bytesize.Bytes // most in the file system and in memory of all processes that is no segment, at one time
	anonIdle bytesize.Bytes // the same before the work
	failed   error
}

// sampleEvery is well below pauseMax, the 20 Hz that are asked for.
const (
	sampleEvery = 10 * time.Millisecond
	pauseMax    = 50 * time.Millisecond
)

func sample(t *testing.T, n *node) *samples {
	t.Helper()
	s := &samples{node: n, stop: make(chan struct{}), began: time.Now(), last: time.Now()}
	s.anonIdle, s.failed = s.memory()
	s.done.Go(func() {
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-ticker.C:
				s.look()
			}
		}
	})
	return s
}

func (s *samples) end() {
	close(s.stop)
	s.done.Wait()
}

func (s *samples) look() {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(s.node.spill, &fs); err != nil {
		s.failed = err
		return
	}
	used := bytesize.Bytes(int64(fs.Blocks-fs.Bfree) * fs.Bsize)
	s.used = max(s.used, used)
	if used >= 2*budgetSegment {
		s.two++
	}
	anon, err := s.memory()
	if err != nil {
		s.failed = err
	}
	s.sum = max(s.sum, used+anon)
	now := time.Now()
	pause := now.Sub(s.last)
	if s.pause, s.last = max(s.pause, pause), now; pause > pauseMax {
		s.late++
	}
	s.count++
}

// memory is what the node's processes have of their own: workers and engine.
func (s *samples) memory() (sum bytesize.Bytes, err error) {
	pids := append(children(s.node.gpu.pid()), s.node.gpu.pid(), s.node.synth.pid())
	for _, pid := range pids {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			return 0, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
				kB, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				if err != nil {
					return 0, err
				}
				sum += bytesize.Bytes(kB) * bytesize.KiB
			}
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func (s *samples) judge(t *testing.T) {
	t.Helper()
	if s.failed != nil {
		t.Fatal(s.failed)
	}
	rate := float64(s.count) / s.last.Sub(s.began).Seconds()
	t.Logf("%d samples, %.0f a second, longest pause %s, %d over %s; most in the file system %d bytes, two partitions in "+
		"%d samples; processes' own memory %d bytes before, with the file system at most %d", s.count, rate, s.pause, s.late,
		pauseMax, s.used, s.two, s.anonIdle, s.sum)
	late := float64(s.late) / float64(s.count)
	figure(t, "samples of the budget", rate, "Hz", ">= 20 Hz", rate >= 20)
	figure(t, "of them later than 50 ms after the one before", late, "", "<= 0.01", late <= 0.01)
	segments := float64(s.used) / float64(budgetSegment)
	figure(t, "most bytes in the spill folder, in segments of 256 MiB", segments, "", "2 and not 3 (<= 2.1), 12 waiting",
		segments <= 2.1 && segments >= 2)
	sum := float64(s.sum-s.anonIdle) / float64(budgetSegment)
	figure(t, "these and growth of processes' own memory, at one time, in segments", sum, "",
		"<= 2.5: no third one in a heap", sum <= 2.5)
}
