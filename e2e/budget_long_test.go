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
// costs next to no throughput. What is there is sampled from outside: bytes of the node's file system, and memory of
// its processes.
//
// The same work without the ledger's bound is done by a second rack beside it, on a node with room for all. There the
// number of partitions is held to one beside the one in the device (schedule.device_partitions_max), so that both
// racks work equally far ahead and only what counts bytes differs. Runs alternate.
func TestLongBudgetOfTwo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a tmpfs of its own and must be run as root")
	}
	bounded, free := newRack(t), newRack(t)
	start := func(r *rack, size bytesize.Bytes, settings ...string) *node {
		r.startShipped(settings...)
		n := r.addNode("n1")
		mountTmpfs(t, n.spill, size)
		pad := fmt.Sprintf("synth.pad_bytes=%d", budgetSegment)
		n.workShipped(budgetDevice, []string{pad}, []string{"prove.ahead=2"})
		r.ready()
		return n
	}
	two := start(bounded, 2*budgetSegment+64*bytesize.MiB)
	start(free, 2*budgetPartitions*budgetSegment, "schedule.device_partitions_max=1")
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
	s := sample(t, two)
	var ratios []time.Duration // in nanoseconds per second, so that quantile serves
	for pair := range budgetPairs {
		var with, without time.Duration
		if pair%2 == 0 {
			with, without = work(bounded), work(free)
		} else {
			without, with = work(free), work(bounded)
		}
		ratio := without.Seconds() / with.Seconds()
		t.Logf("pair %d: with the ledger %.3f s, without %.3f s, throughput %.4f", pair+1, with.Seconds(), without.Seconds(),
			ratio)
		ratios = append(ratios, time.Duration(ratio*float64(time.Second)))
	}
	s.end()
	s.judge(t)
	median := quantile(ratios, 0.5).Seconds()
	figure(t, "throughput with room for 2 of 12, to that without the ledger", median, "", ">= 0.95", median >= 0.95)
	bounded.checkQuietLater()
	free.checkQuietLater()
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
	used     bytesize.Bytes // most in the file system
	two      int            // samples with two partitions
	anon     bytesize.Bytes // most memory of all processes that is no segment
	anonIdle bytesize.Bytes // the same before the work
	failed   error
}

// sampleEvery is well below the 50 ms that are asked for.
const sampleEvery = 10 * time.Millisecond

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
	s.anon = max(s.anon, anon)
	now := time.Now()
	s.pause, s.last = max(s.pause, now.Sub(s.last)), now
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
	t.Logf("%d samples, %.0f a second, longest pause %s; most in the file system %d bytes, two partitions in %d samples; "+
		"processes' own memory %d bytes before, most %d", s.count, rate, s.pause, s.used, s.two, s.anonIdle, s.anon)
	figure(t, "samples of the budget", rate, "Hz", ">= 20 Hz", rate >= 20)
	segments := float64(s.used) / float64(budgetSegment)
	figure(t, "most bytes in the spill folder, in segments of 256 MiB", segments, "", "2 and not 3 (<= 2.1), 12 waiting",
		segments <= 2.1 && segments >= 2)
	grown := float64(s.anon-s.anonIdle) / float64(budgetSegment)
	figure(t, "growth of processes' own memory, in segments", grown, "", "<= 0.5: no third one in a heap", grown <= 0.5)
}
