package synth

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// watched is a witness whose walks are bound to processors and can be seen to advance: by the processor time of the
// threads that walk. A section of a large circuit takes seconds, on a crowded host many.
type watched struct {
	circuit.Witness

	cpus  []int
	first func() // called after the first section
	once  sync.Once

	mu      sync.Mutex
	walking map[int]time.Duration // by thread: its processor time at the start of the section
	spent   time.Duration         // by sections that are done
	done    uint64
}

func newWatched(w circuit.Witness, cpus []int, first func()) *watched {
	return &watched{Witness: w, cpus: cpus, first: first, walking: map[int]time.Duration{}}
}

// Synthesize walks one section.
func (w *watched) Synthesize(section int, values r1cs.Values) {
	near(w.cpus, func() { w.walk(section, values) })
	w.once.Do(w.first)
}

// near runs a function on processors, on a thread of its own for that time.
func near(cpus []int, do func()) {
	runtime.LockOSThread()
	defer release(bind(cpus))
	do()
}

func (w *watched) walk(section int, values r1cs.Values) {
	thread := unix.Gettid()
	w.mu.Lock()
	w.walking[thread] = processorTime(thread)
	w.mu.Unlock()
	w.Witness.Synthesize(section, values)
	w.mu.Lock()
	w.spent += max(0, processorTime(thread)-w.walking[thread])
	w.done++
	delete(w.walking, thread)
	w.mu.Unlock()
}

// progressStep is how much processor time counts as progress.
const progressStep = 10 * time.Millisecond

// progress rises as long as some section is walked; it does not fall.
func (w *watched) progress() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := w.spent
	for _, thread := range slices.Sorted(maps.Keys(w.walking)) {
		sum += max(0, processorTime(thread)-w.walking[thread])
	}
	return w.done + uint64(sum/progressStep)
}

// processorTime is what a thread of this process has used, 0 when that cannot be read.
func processorTime(thread int) time.Duration {
	text, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(thread) + "/schedstat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	nanos, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(nanos)
}

// bind keeps the calling thread on processors and gives what it had before; nil when nothing was changed. A system that
// refuses has the work done wherever it likes: slower, not wrong.
func bind(cpus []int) *unix.CPUSet {
	if len(cpus) == 0 {
		return nil
	}
	before, set := new(unix.CPUSet), new(unix.CPUSet)
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if unix.SchedGetaffinity(0, before) != nil || unix.SchedSetaffinity(0, set) != nil {
		return nil
	}
	return before
}

// release undoes bind and gives the thread back. One that cannot be unbound ends with its goroutine.
func release(before *unix.CPUSet) {
	if before == nil || unix.SchedSetaffinity(0, before) == nil {
		runtime.UnlockOSThread()
	}
}
