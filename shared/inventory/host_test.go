package inventory_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
)

const (
	unifiedMount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	memoryMount  = "35 25 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
	cpuMount     = "36 25 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
	hybridMount  = "37 25 0:33 / /sys/fs/cgroup/unified rw,relatime shared:11 - cgroup2 cgroup2 rw\n"

	v2 = "sys/fs/cgroup/"
	v1 = "sys/fs/cgroup/memory/"
	// noLimit is what the first layout says for none, on machines with pages of 4 KiB.
	noLimit = "9223372036854771712\n"
)

// files is a made-up root folder.
type files map[string]string

// with adds files to a host of 64 GiB and 16 processors.
func with(more files) *inventory.Host {
	root := fstest.MapFS{}
	for _, set := range []files{{
		"proc/meminfo":                  "MemTotal:       67108864 kB\nMemFree:  1 kB\nMemAvailable:   33554432 kB\n",
		"proc/self/status":              "Name:\tx\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-15\n",
		"sys/devices/system/cpu/online": "0-15\n",
	}, more} {
		for name, text := range set {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return inventory.NewHostAt(root)
}

func TestB42MemoryIsTheLeastOfAllLimitsMinusTheMargin(t *testing.T) {
	t.Parallel()
	const gib = bytesize.GiB
	for name, c := range map[string]struct {
		files files
		limit bytesize.Bytes
		file  string
	}{
		"no cgroups": {nil, 0, ""},
		"unified, max": {files{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": unifiedMount,
			v2 + "a/memory.max": "max\n", v2 + "a/memory.high": "max\n"}, 0, ""},
		"unified, own limit": {files{"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": unifiedMount,
			v2 + "a/b/memory.max": "536870912\n", v2 + "a/memory.max": "max\n"}, gib / 2, v2 + "a/b/memory.max"},
		"unified, limit above": {files{"proc/self/cgroup": "0::/a/b/c\n", "proc/self/mountinfo": unifiedMount,
			v2 + "a/b/c/memory.max": "17179869184\n", v2 + "a/memory.max": "8589934592\n"}, 8 * gib, v2 + "a/memory.max"},
		"unified, throttled before": {files{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": unifiedMount,
			v2 + "a/memory.max": "8589934592\n", v2 + "a/memory.high": "4294967296\n"}, 4 * gib, v2 + "a/memory.high"},
		"unified, in a namespace of its own": {files{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": unifiedMount,
			v2 + "memory.max": "4294967296\n"}, 4 * gib, v2 + "memory.max"},
		"unified, member of elsewhere": {files{"proc/self/cgroup": "0::/../other\n", "proc/self/mountinfo": unifiedMount,
			v2 + "memory.max": "4294967296\n", v2 + "other/memory.max": "1\n"}, 4 * gib, v2 + "memory.max"},
		"unified, more than there is": {files{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": unifiedMount,
			v2 + "a/memory.max": "137438953472\n"}, 0, ""},
		"first layout, no limit": {files{"proc/self/cgroup": "5:memory:/u\n4:cpu,cpuacct:/u\n",
			"proc/self/mountinfo": memoryMount + cpuMount, v1 + "u/memory.limit_in_bytes": noLimit,
			v1 + "memory.limit_in_bytes": noLimit}, 0, ""},
		"first layout, older no limit": {files{"proc/self/cgroup": "5:memory:/\n", "proc/self/mountinfo": memoryMount,
			v1 + "memory.limit_in_bytes": "18446744073709551615\n"}, 0, ""},
		"first layout, limit above": {files{"proc/self/cgroup": "5:memory:/u/v\n", "proc/self/mountinfo": memoryMount,
			v1 + "u/v/memory.limit_in_bytes": noLimit, v1 + "u/memory.limit_in_bytes": "536870912\n"},
			gib / 2, v1 + "u/memory.limit_in_bytes"},
		"first layout, container sees its part only": {files{"proc/self/cgroup": "5:memory:/docker/c0ffee\n",
			"proc/self/mountinfo":        strings.Replace(memoryMount, " / /sys", " /docker/c0ffee /sys", 1),
			v1 + "memory.limit_in_bytes": "536870912\n"}, gib / 2, v1 + "memory.limit_in_bytes"},
		"container of a like name": {files{"proc/self/cgroup": "5:memory:/docker/c0ffee2\n",
			"proc/self/mountinfo":        strings.Replace(memoryMount, " / /sys", " /docker/c0ffee /sys", 1),
			v1 + "memory.limit_in_bytes": "536870912\n", v1 + "2/memory.limit_in_bytes": "1\n"},
			gib / 2, v1 + "memory.limit_in_bytes"},
		"both layouts": {files{"proc/self/cgroup": "5:memory:/u\n0::/s\n", "proc/self/mountinfo": hybridMount + memoryMount,
			v1 + "u/memory.limit_in_bytes": "8589934592\n", v2 + "unified/s/memory.max": "4294967296\n"},
			4 * gib, v2 + "unified/s/memory.max"},
		"no controller in the unified part": {files{"proc/self/cgroup": "5:memory:/u\n0::/s\n",
			"proc/self/mountinfo": hybridMount + memoryMount, v1 + "u/memory.limit_in_bytes": "8589934592\n"},
			8 * gib, v1 + "u/memory.limit_in_bytes"},
	} {
		got, err := with(c.files).Memory(inventory.DefaultMargin())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		least := 64 * gib
		if c.limit > 0 {
			least = c.limit
			c.file = "/" + c.file
		}
		margin := least/100*5 + min(512*bytesize.MiB, least/8)
		want := inventory.Memory{Total: 64 * gib, Available: 32 * gib, Limit: c.limit, LimitFile: c.file,
			Budget: least - margin}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestB42SmallContainersKeepABudget(t *testing.T) {
	t.Parallel()
	host := with(files{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": unifiedMount,
		v2 + "memory.max": "536870912\n"})
	for _, c := range []struct {
		margin inventory.Margin
		want   bytesize.Bytes
	}{
		{inventory.DefaultMargin(), 536870912 - 26843500 - 67108864 - 45},
		{inventory.Margin{}, 512 * bytesize.MiB},
		{inventory.Margin{Fixed: bytesize.MiB}, 511 * bytesize.MiB},
	} {
		got, err := host.Memory(c.margin)
		if d := got.Budget - c.want; err != nil || d < -100 || d > 100 {
			t.Errorf("%+v: budget %d, want about %d, %v", c.margin, got.Budget, c.want, err)
		}
	}
	for _, bad := range []inventory.Margin{{Percent: -1}, {Percent: 91}, {Fixed: -1}} {
		if err := bad.Validate(); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestB30ProcessorsFollowTheSmallerOfMaskAndQuota(t *testing.T) {
	t.Parallel()
	mask := func(list string) string { return "Name:\tx\nCpus_allowed_list:\t" + list + "\n" }
	const cpu = "sys/fs/cgroup/cpu,cpuacct/"
	for name, c := range map[string]struct {
		files  files
		quota  float64
		usable int
	}{
		"neither":  {nil, 0, 16},
		"one CPU":  {files{"proc/self/status": mask("7")}, 0, 1},
		"two runs": {files{"proc/self/status": mask("0-2,8,10-11")}, 0, 6},
		"half a core": {files{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": unifiedMount,
			v2 + "a/cpu.max": "50000 100000\n"}, 0.5, 1},
		"two and a half": {files{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": unifiedMount,
			v2 + "a/cpu.max": "250000 100000\n"}, 2.5, 3},
		"quota above": {files{"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": unifiedMount,
			v2 + "a/b/cpu.max": "max 100000\n", v2 + "a/cpu.max": "400000 100000\n"}, 4, 4},
		"mask below quota": {files{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": unifiedMount,
			v2 + "a/cpu.max": "800000 100000\n", "proc/self/status": mask("3,5")}, 8, 2},
		"first layout": {files{"proc/self/cgroup": "4:cpu,cpuacct:/u\n", "proc/self/mountinfo": cpuMount,
			cpu + "u/cpu.cfs_quota_us": "150000\n", cpu + "u/cpu.cfs_period_us": "50000\n",
			cpu + "cpu.cfs_quota_us": "-1\n", cpu + "cpu.cfs_period_us": "100000\n"}, 3, 3},
		"no status": {files{"proc/self/status": "Name:\tx\n"}, 0, 16},
	} {
		got, err := with(c.files).CPUs()
		if err != nil || got.Usable != c.usable || got.Quota != c.quota || len(got.Online) != 16 {
			t.Errorf("%s: %+v, %v; want %d usable by quota %g", name, got, err, c.usable, c.quota)
		}
	}
	want := []string{"GOMAXPROCS=3", "OMP_NUM_THREADS=3", "RAYON_NUM_THREADS=3"}
	if diff := cmp.Diff(want, inventory.CPUs{Usable: 3}.Environ()); diff != "" {
		t.Errorf("what native children get: %s", diff)
	}
}

func TestTwoSockets(t *testing.T) {
	t.Parallel()
	const node = "sys/devices/system/node/"
	host := with(files{
		node + "online":                              "0-1\n",
		node + "node0/cpulist":                       "0-3,8-11\n",
		node + "node0/meminfo":                       "Node 0 MemTotal:       33554432 kB\nNode 0 MemFree:        100 kB\n",
		node + "node1/cpulist":                       "4-7,12-15\n",
		node + "node1/meminfo":                       "Node 1 MemTotal:       16777216 kB\n",
		"proc/self/status":                           "Cpus_allowed_list:\t2-5\n",
		"sys/bus/pci/devices/0000:17:00.0/numa_node": "1\n",
		"sys/bus/pci/devices/0000:b1:00.0/numa_node": "-1\n",
		"sys/bus/pci/devices/0000:b2:00.0/numa_node": "what\n",
	})
	got, err := host.NUMANodes()
	want := []inventory.NUMANode{
		{ID: 0, CPUs: []int{2, 3}, Memory: 32 * bytesize.GiB}, {ID: 1, CPUs: []int{4, 5}, Memory: 16 * bytesize.GiB},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for address, want := range map[string]int{
		"0000:17:00.0": 1, "00000000:17:00.0": 1, "0000:B1:00.0": inventory.NUMAUnknown,
		"0000:aa:00.0": inventory.NUMAUnknown,
	} {
		if got, err := host.PCINode(address); err != nil || got != want {
			t.Errorf("%s at node %d, %v; want %d", address, got, err, want)
		}
	}
	for address, kind := range map[string]fault.Kind{
		"../../../proc/self": fault.Invalid, "": fault.Invalid, "0000:b2:00.0": fault.Corrupt,
	} {
		if _, err := host.PCINode(address); fault.KindOf(err) != kind {
			t.Errorf("%s: %v", address, err)
		}
	}
	// A host that tells no nodes is one.
	got, err = with(nil).NUMANodes()
	if err != nil || len(got) != 1 || len(got[0].CPUs) != 16 || got[0].Memory != 64*bytesize.GiB {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGarbledFactsAreErrors(t *testing.T) {
	t.Parallel()
	mounted := func(more files) files {
		more["proc/self/cgroup"], more["proc/self/mountinfo"] = "0::/\n", unifiedMount
		return more
	}
	memory := func(h *inventory.Host) error { _, err := h.Memory(inventory.Margin{}); return err }
	cpus := func(h *inventory.Host) error { _, err := h.CPUs(); return err }
	nodes := func(h *inventory.Host) error { _, err := h.NUMANodes(); return err }
	for name, c := range map[string]struct {
		files files
		read  func(*inventory.Host) error
	}{
		"no total":         {files{"proc/meminfo": "MemFree: 3 kB\n"}, memory},
		"total in pages":   {files{"proc/meminfo": "MemTotal: 3 pages\n"}, memory},
		"huge total":       {files{"proc/meminfo": "MemTotal: 99999999999999999999 kB\n"}, memory},
		"limit":            {mounted(files{v2 + "memory.max": "much\n"}), memory},
		"negative limit":   {mounted(files{v2 + "memory.max": "-5\n"}), memory},
		"quota":            {mounted(files{v2 + "cpu.max": "x 100000\n"}), cpus},
		"quota of nothing": {mounted(files{v2 + "cpu.max": "50000 0\n"}), cpus},
		"quota alone":      {mounted(files{v2 + "cpu.max": "50000\n"}), cpus},
		"online":           {files{"sys/devices/system/cpu/online": "3-1\n"}, cpus},
		"endless online":   {files{"sys/devices/system/cpu/online": "0-65535,0-65535,0-65535\n"}, cpus},
		"mask":             {files{"proc/self/status": "Cpus_allowed_list:\tall\n"}, cpus},
		"nodes":            {files{"sys/devices/system/node/online": "a\n"}, nodes},
		"node's memory": {files{"sys/devices/system/node/online": "0\n", "sys/devices/system/node/node0/cpulist": "0\n",
			"sys/devices/system/node/node0/meminfo": "x\n"}, nodes},
	} {
		if err := c.read(with(c.files)); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v (%s)", name, err, fault.KindOf(err))
		}
	}
}

func FuzzHost(f *testing.F) {
	f.Add("MemTotal: 3 kB\n", "0::/a\n", unifiedMount, "0-3", "50000 100000")
	f.Add("", "5:memory:/u\n", memoryMount, "0", "max 1")
	f.Add("MemTotal: 3 kB\n", "0::/a/b\n", "1 2 3 / / 6 - cgroup2 a b\n", "0", "1") // once went round for ever
	f.Add("MemTotal: 3 kB\n", "0::/..\n", "1 2 3 4 5 6 - cgroup2 a b\n", ",", "")
	f.Fuzz(func(t *testing.T, meminfo, membership, mounts, list, text string) {
		h := with(files{"proc/meminfo": meminfo, "proc/self/cgroup": membership, "proc/self/mountinfo": mounts,
			"proc/self/status": "Cpus_allowed_list:\t" + list, v2 + "memory.max": text, v2 + "cpu.max": text,
			"proc/7/stat": text, "sys/devices/system/node/online": list})
		if m, err := h.Memory(inventory.DefaultMargin()); err == nil && (m.Budget < 0 || m.Budget > m.Total) {
			t.Fatalf("%+v", m)
		}
		if c, err := h.CPUs(); err == nil && c.Usable < 1 {
			t.Fatalf("%+v", c)
		}
		_, _ = h.NUMANodes()
		_, _ = h.Process(7)
	})
}
