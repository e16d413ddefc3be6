package footprint

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Usage is resident memory in bytes. Total is the sum of the kinds when all are of one moment; of peaks it is the peak
// of the sum, which is not above the sum of the peaks.
type Usage struct {
	Total     int64 `json:"total_bytes"`
	Anonymous int64 `json:"anonymous_bytes"` // heap, stacks, private writable mappings
	File      int64 `json:"file_bytes"`      // mapped files, the program's own text among them
	Shared    int64 `json:"shared_bytes"`    // shared memory: tmpfs and shared anonymous mappings
}

// statusPath is what the kernel says about this process.
const statusPath = "/proc/self/status"

// Now gives the present usage.
func Now() Usage {
	status, err := os.ReadFile(statusPath)
	if err != nil {
		return Usage{}
	}
	usage, _ := parse(status)
	return usage
}

// Peak gives the most the process ever had resident, as the kernel kept count.
func Peak() int64 {
	status, err := os.ReadFile(statusPath)
	if err != nil {
		return 0
	}
	_, peak := parse(status)
	return peak
}

// parse reads the lines of interest. Their amounts are in units of 1024 bytes.
func parse(status []byte) (now Usage, peak int64) {
	scanner := bufio.NewScanner(bytes.NewReader(status))
	for scanner.Scan() {
		key, rest, _ := strings.Cut(scanner.Text(), ":")
		amount, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			continue
		}
		amount *= 1024
		switch key {
		case "VmHWM":
			peak = amount
		case "VmRSS":
			now.Total = amount
		case "RssAnon":
			now.Anonymous = amount
		case "RssFile":
			now.File = amount
		case "RssShmem":
			now.Shared = amount
		}
	}
	return now, peak
}

// interval is the time between two looks of a Watch.
const interval = 5 * time.Millisecond

// Watch looks at the process again and again and keeps the peaks.
type Watch struct {
	mutex sync.Mutex
	peak  Usage
	end   chan struct{}
	done  chan struct{}
}

// Start begins to watch.
func Start() *Watch {
	w := &Watch{end: make(chan struct{}), done: make(chan struct{})}
	w.look()
	go func() {
		defer close(w.done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-w.end:
				return
			case <-ticker.C:
				w.look()
			}
		}
	}()
	return w
}

// look raises the peaks to what is now.
func (w *Watch) look() {
	now := Now()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.peak.Total = max(w.peak.Total, now.Total)
	w.peak.Anonymous = max(w.peak.Anonymous, now.Anonymous)
	w.peak.File = max(w.peak.File, now.File)
	w.peak.Shared = max(w.peak.Shared, now.Shared)
}

// Stop ends the watch and gives the peaks. It must be called exactly once.
func (w *Watch) Stop() Usage {
	close(w.end)
	<-w.done
	w.look()
	return w.peak
}
