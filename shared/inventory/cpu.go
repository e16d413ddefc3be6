package inventory

import (
	"fmt"
	"math"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/proofrack/proofrack/shared/fault"
)

// CPUs is what of the host's processors this process may use.
type CPUs struct {
	Online []int   // of the host
	Mask   []int   // affinity mask of this process
	Quota  float64 // processors' worth of time by the lowest quota of a control group; 0 is none
	Usable int     // threads worth running: the smaller of mask and quota rounded up, at least 1
}

// CPUs reads what processors there are. A quota is rounded up, so that what is allowed can be used up.
func (h *Host) CPUs() (CPUs, error) {
	var c CPUs
	online, err := h.read("sys/devices/system/cpu/online")
	if err != nil {
		return c, err
	}
	if c.Online, err = parseList(online); err != nil {
		return c, fmt.Errorf("processors online: %w", err)
	}
	if c.Mask, err = h.allowed("Cpus_allowed_list"); err != nil {
		return c, err
	}
	if len(c.Mask) == 0 {
		c.Mask = c.Online
	}
	if c.Quota, err = h.quota(); err != nil {
		return c, err
	}
	c.Usable = max(1, len(c.Mask))
	if c.Quota > 0 {
		c.Usable = max(1, min(c.Usable, int(math.Ceil(c.Quota))))
	}
	return c, nil
}

// Environ gives native child processes the same number of threads, whichever library they use.
func (c CPUs) Environ() []string {
	n := strconv.Itoa(c.Usable)
	return []string{"GOMAXPROCS=" + n, "OMP_NUM_THREADS=" + n, "RAYON_NUM_THREADS=" + n}
}

// LowerProcs has the Go runtime of this process run no more threads of work than are usable. The runtime itself counts
// the affinity mask and the quota of the innermost control group, but never less than two for a quota, and no groups
// above. It gives GOMAXPROCS as it is afterwards; a lower one that was set by hand stays.
func (h *Host) LowerProcs() (int, error) {
	c, err := h.CPUs()
	now := runtime.GOMAXPROCS(0)
	if err == nil && c.Usable < now {
		runtime.GOMAXPROCS(c.Usable)
		now = c.Usable
	}
	return now, err
}

// allowed reads a list of /proc/self/status, nil when it is not there.
func (h *Host) allowed(name string) ([]int, error) {
	status, err := h.read("proc/self/status")
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(status, "\n") {
		if label, list, ok := strings.Cut(line, ":"); ok && label == name {
			return parseList(list)
		}
	}
	return nil, nil
}

// quota is the lowest quota of all control groups, in processors; 0 is none.
func (h *Host) quota() (float64, error) {
	groups, err := h.groups("cpu")
	if err != nil {
		return 0, err
	}
	least := 0.0
	for _, g := range groups {
		for _, folder := range g.folders {
			q, err := h.quotaOf(g, folder)
			if err != nil {
				return 0, err
			}
			if q > 0 && (least == 0 || q < least) {
				least = q
			}
		}
	}
	return least, nil
}

func (h *Host) quotaOf(g group, folder string) (float64, error) {
	quota, period := "", ""
	if g.unified {
		text, err := h.read(path.Join(folder, "cpu.max"))
		if absent(err) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		quota, period, _ = strings.Cut(text, " ")
	} else {
		var err error
		if quota, err = h.read(path.Join(folder, "cpu.cfs_quota_us")); absent(err) {
			return 0, nil
		} else if err != nil {
			return 0, err
		}
		if period, err = h.read(path.Join(folder, "cpu.cfs_period_us")); err != nil {
			return 0, err
		}
	}
	if quota == "max" || quota == "-1" {
		return 0, nil
	}
	q, err1 := strconv.ParseUint(quota, 10, 53)
	p, err2 := strconv.ParseUint(period, 10, 53)
	if err1 != nil || err2 != nil || q == 0 || p == 0 {
		return 0, fault.New(fault.Corrupt, "processor quota %.40q of %.40q in %s", quota, period, folder)
	}
	return float64(q) / float64(p), nil
}
