package sim_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// edit replaces a piece of a source file, which must be there once, in a build of this package's tests. The file itself
// stays as it is.
type edit struct {
	file     string // below the root of this repository, or of Go if it begins with "go:"
	old, new string
}

// exactly makes Go itself take all decisions in a run in the same way each time: the order of maps, of ready cases in a
// select, of timers that are due at the same instant, of contexts that end with their parent; and has goroutines on one
// thread lose it only where they wait. Random numbers begin anew in each bubble of testing/synctest, and the order of
// maps follows from its clock, so that to log more changes nothing.
var exactly = []edit{
	{
		"go:runtime/rand.go", "	globalRand.state.Init(*seed)\n",
		"	*seed = [32]byte{1}\n	globalRand.state.Init(*seed)\n",
	},
	{"go:runtime/rand.go", "	mp := getg().m\n	c := &mp.chacha8\n", `	if b := getg().bubble; b != nil {
		if b.id != bubbleRandID {
			bubbleRandID, bubbleRandState = b.id, 0
		}
		bubbleRandState += 0x9e3779b97f4a7c15
		x := bubbleRandState
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	mp := getg().m
	c := &mp.chacha8
`},
	{
		"go:runtime/rand.go", "var readRandomFailed bool\n",
		"var readRandomFailed bool\n\nvar bubbleRandID, bubbleRandState uint64\n",
	},
	{"go:runtime/rand.go", "func maps_rand() uint64 {\n", `func maps_rand() uint64 {
	if b := getg().bubble; b != nil {
		x := uint64(b.now) * 0x9e3779b97f4a7c15
		return x ^ x>>29
	}
`},
	{"go:runtime/time.go", "t.rand = cheaprand()", "t.rand = uint32(rand())"},
	{"go:runtime/select.go", "cheaprandn(uint32(norder + 1))", "randn(uint32(norder + 1))"},
	{"go:runtime/sema.go", "s.ticket = cheaprand() | 1", "s.ticket = uint32(rand()) | 1"},
	{"go:runtime/proc.go", "func preemptone(pp *p) bool {\n", `func preemptone(pp *p) bool {
	if gomaxprocs == 1 {
		return false
	}
`},
	// Each goroutine reads its machine's clock, as it was given one or inherited it, and what a timer calls waits while
	// the machine is stopped. As with a real clock there is a part
	// that only measures, which is the same for all.
	{"go:runtime/runtime2.go", "	labels          unsafe.Pointer // profiler labels\n",
		"	labels          unsafe.Pointer // profiler labels\n	clock *int64\n"},
	{"go:runtime/proc.go", "			newg.labels = mp.curg.labels\n",
		"			newg.labels = mp.curg.labels\n			newg.clock = mp.curg.clock\n"},
	{"go:runtime/proc.go", "	gp.labels = nil\n	gp.timer = nil\n",
		"	gp.labels = nil\n	gp.clock = nil\n	gp.timer = nil\n"},
	{"go:runtime/time.go", `		sec = bubble.now / (1000 * 1000 * 1000)
		nsec = int32(bubble.now % (1000 * 1000 * 1000))
`, `		wall := bubble.now
		if clock := getg().clock; clock != nil {
			wall += *clock
		}
		sec = wall / (1000 * 1000 * 1000)
		nsec = int32(wall % (1000 * 1000 * 1000))
`},
	{"go:runtime/time.go", "		return sec, nsec, 0\n", "		return sec, nsec, bubble.now\n"},
	{"go:runtime/time.go", "//go:linkname time_runtimeNano time.runtimeNano\n", `//go:linkname time_useClock time.useClock
func time_useClock(clock *int64) (before *int64) {
	gp := getg()
	before, gp.clock = gp.clock, clock
	return before
}

//go:linkname time_runtimeNano time.runtimeNano
`},
	{"go:time/time.go", "//go:linkname runtimeNano\n", `//go:linkname useClock
func useClock(clock *int64) (before *int64)

var hold func(clock *int64)

//go:linkname setHold
func setHold(f func(clock *int64)) { hold = f }

//go:linkname runtimeNano
`},
	{"go:time/sleep.go", "	return newTimer(when(d), 0, goFunc, f, nil)\n", `	clock := useClock(nil)
	useClock(clock)
	return newTimer(when(d), 0, goFunc, func() {
		useClock(clock)
		if clock != nil && hold != nil {
			hold(clock)
		}
		f()
	}, nil)
`},
	// The servers are not stopped with who calls them.
	{"shared/bus/membus/server.go", "	time.AfterFunc(d, wake)\n", "	go func() { time.Sleep(d); wake() }()\n"},
	{
		"coordinator/internal/sim/clock_test.go", "func useClock(*int64) bool { return false }\n",
		`func useClock(c *int64) bool {
	setClock(c)
	setHold(func(c *int64) { (*clock)(unsafe.Pointer(c)).held() })
	return true
}

//go:linkname setHold time.setHold
func setHold(f func(c *int64))

//go:linkname setClock time.useClock
func setClock(c *int64) *int64
`,
	},
	{"coordinator/internal/sim/clock_test.go", "import (\n", "import (\n	\"unsafe\"\n"},
	// Most goroutines of a run live briefly, and would spend as long on growing their stacks.
	{
		"go:runtime/stack.go", "var startingStackSize uint32 = fixedStack\n",
		"var startingStackSize uint32 = 4 * fixedStack\n",
	},
	// How long a mutex was waited for is real time.
	{"go:internal/sync/mutex.go", "starvationThresholdNs = 1e6", "starvationThresholdNs = 1 << 62"},
	{"go:context/context.go", "	children map[canceler]struct{} //", "	children map[canceler]uint64 //"},
	{"go:context/context.go", "make(map[canceler]struct{})", "make(map[canceler]uint64)"},
	{"go:context/context.go", ".children[child] = struct{}{}", ".children[child] = childCount.Add(1)"},
	{
		"go:context/context.go", "	for child := range c.children {\n",
		"	for _, child := range inOrder(c.children) {\n",
	},
	{"go:context/context.go", "var goroutines atomic.Int32\n", `var goroutines atomic.Int32

var childCount atomic.Uint64

func inOrder(children map[canceler]uint64) []canceler {
	list := make([]canceler, 0, len(children))
	for child := range children {
		at := len(list)
		for list = append(list, child); at > 0 && children[list[at-1]] > children[child]; at-- {
			list[at] = list[at-1]
		}
		list[at] = child
	}
	return list
}
`},
}

// build compiles this package's tests with edits.
func build(t *testing.T, edits []edit) (binary string) {
	t.Helper()
	folder := t.TempDir()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	texts, overlay := map[string]string{}, map[string]string{}
	for _, e := range edits {
		path := filepath.Join(root, e.file)
		if rest, ok := strings.CutPrefix(e.file, "go:"); ok {
			path = filepath.Join(strings.TrimSpace(string(goroot)), "src", rest)
		}
		if _, ok := texts[path]; !ok {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(data)
		}
		if n := strings.Count(texts[path], e.old); n != 1 {
			t.Fatalf("%s has this piece %d times, not once:\n%s", e.file, n, e.old)
		}
		texts[path] = strings.Replace(texts[path], e.old, e.new, 1)
	}
	for path, text := range texts {
		overlay[path] = filepath.Join(folder, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(overlay[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(list, data, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(folder, "sim.test")
	c := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, ".")
	// Addresses are the same in each process, too, since maps are keyed by some.
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOEXPERIMENT=norandomizedheapbase64", "GOMAXPROCS=")
	if output, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, bytes.TrimSpace(output))
	}
	return binary
}
