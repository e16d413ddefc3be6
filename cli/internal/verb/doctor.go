package verb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// verdict is how much a finding matters.
type verdict string

const (
	verdictOK     verdict = "ok"
	verdictInfo   verdict = "info"   // a fact that limits what this host can do
	verdictAdvice verdict = "advice" // works, and would work better
	verdictFix    verdict = "fix"    // must be fixed
)

// check is one thing that doctor looked at.
type check struct {
	Name    string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Text    string  `json:"text"`
	Fix     string  `json:"fix,omitempty"`
}

// doctorResult is everything that doctor looked at.
type doctorResult struct {
	Checks []check `json:"checks"`
	Fixes  int     `json:"to_fix"`
}

func (r *doctorResult) human(w io.Writer) {
	for _, c := range r.Checks {
		fmt.Fprintf(w, "%-7s %-12s %s\n", c.Verdict, c.Name, sentence(c.Text))
		if c.Fix != "" {
			fmt.Fprintf(w, "%-7s %-12s -> %s\n", "", "", sentence(c.Fix))
		}
	}
}

// add keeps a finding; the remedy may be empty.
func (r *doctorResult) add(v verdict, name, fix, format string, args ...any) {
	if v == verdictFix {
		r.Fixes++
	}
	text := config.HideUserInfoIn(fmt.Sprintf(format, args...))
	r.Checks = append(r.Checks, check{Name: name, Verdict: v, Text: text, Fix: fix})
}

// broken keeps an error with the remedy that it brings, or else the given one.
func (r *doctorResult) broken(v verdict, name string, err error, fix string) {
	report := fault.ReportOf("", err)
	r.add(v, name, cmp.Or(report.Hint, fix), "%s", report.Message)
}

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	rack                      rackFlags
	store                     storeFlags
	data, spill, disk         string
	redis, redisUser, redisPW string
	clockMax                  time.Duration
	traces                    doctorTraces
}

// doctorCommand looks at a host before it joins a rack.
func (a *app) doctorCommand() *cobra.Command {
	var flags doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "look at this host, and the servers that are named, for what would keep a rack from working",
		Long: "doctor looks at shared memory, limits, the GPU driver and folders of this host; with --params at the\n" +
			"parameters of every circuit, with --server at NATS and its clock, with --redis at the ledger's store. Each\n" +
			"finding comes with its remedy. It keeps nothing but digests of parameters that it had to compute. It\n" +
			"fails with exit code 9 if something must be fixed.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.doctor(c.Context(), &flags) },
	}
	flags.rack.register(c)
	flags.store.registerParams(c)
	flags.store.registerCache(c)
	f := c.Flags()
	f.StringVar(&flags.data, "data", "", `data folder of "proofrack up"`)
	f.StringVar(&flags.spill, "spill", "/dev/shm", "folder for segments, on a tmpfs")
	f.StringVar(&flags.disk, "disk-spill", "", "folder for segments on a disk")
	f.StringVar(&flags.redis, "redis", "", "Redis server of the ledger: host:port or the path of a Unix socket")
	f.StringVar(&flags.redisUser, "redis-user", "", "its ACL user")
	f.StringVar(&flags.redisPW, "redis-password-file", "", "file with the user's password")
	flags.traces.register(f)
	f.DurationVar(&flags.clockMax, "clock-max", time.Second, "how far this host's clock may be from the NATS server's")
	return c
}

func (a *app) doctor(ctx context.Context, flags *doctorFlags) error {
	r := &doctorResult{}
	host := inventory.NewHost()
	proved := r.parameters(ctx, a, &flags.store)
	need := r.segment(proved)
	r.memory(host, need)
	r.spill(host, flags.spill, handoff.SHM, need)
	if flags.disk != "" {
		r.spill(host, flags.disk, handoff.Disk, need)
	}
	if flags.data != "" {
		r.folder(host, "data", flags.data)
	}
	r.locked()
	r.driver(host)
	r.nats(ctx, a, flags)
	r.ledgerStore(ctx, flags)
	r.traces(ctx, &flags.traces)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := a.emit(r, false); err != nil {
		return err
	}
	if r.Fixes > 0 {
		return fail(notReady, "", "%d of %d checks found something that must be fixed", r.Fixes, len(r.Checks))
	}
	return nil
}

// parameters looks at both files of every circuit and gives the circuits that can be proved.
func (r *doctorResult) parameters(ctx context.Context, a *app, f *storeFlags) []circuit.Circuit {
	const name = "parameters"
	if f.params == "" {
		r.add(verdictInfo, name, "", "not looked at: --params names no folder")
		return nil
	}
	if info, err := os.Stat(f.params); err != nil || !info.IsDir() {
		r.add(verdictFix, name, "make the folder, and put the published files there", "there is no folder %s", f.params)
		return nil
	}
	var proved []circuit.Circuit
	before := r.Fixes
	for _, c := range catalog.Circuits() {
		whole := r.parameterFile(ctx, a, f, c, srs.ParamsExtension)
		key := r.parameterFile(ctx, a, f, c, srs.KeyExtension)
		switch {
		case whole && key:
			proved = append(proved, c)
		case whole:
			r.add(verdictFix, name, "coordinators verify with it: put the published .vk file beside the .params file",
				"%s: the .vk file is missing", c.ID())
		case key:
			r.add(verdictInfo, name, "", "%s: only the .vk file is there: a coordinator can verify, no worker can prove", c.ID())
		}
	}
	if len(proved) == 0 && r.Fixes == before {
		r.add(verdictFix, name, `put the published files there, or make some with "proofrack params generate"`,
			"no circuit can be proved with what is in %s", f.params)
	}
	return proved
}

// parameterFile tells whether a file is there; one that is there and wrong is a finding.
func (r *doctorResult) parameterFile(ctx context.Context, a *app, f *storeFlags, c circuit.Circuit, ext string) bool {
	const name = "parameters"
	path := filepath.Join(f.params, c.ParamsName()+ext)
	meter := a.startMeter("hashing " + c.ID())
	defer meter.stop()
	report, err := srs.Import(ctx, path, srs.Counts{}, f.options(meter))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		r.broken(verdictFix, name, err, "replace the file")
		return true
	}
	v, fix := verdictOK, ""
	if report.Origin == srs.OriginDevelopment {
		v, fix = verdictAdvice, "use the published file for proofs that a chain shall accept"
	}
	r.add(v, name, fix, "%s: %s file, %s, digest %s, %s", c.ID(), ext, byteText(report.Bytes), report.Digest,
		report.Origin)
	return true
}

// segment gives the size of the largest segment that this host will have to hold: of the circuits that can be proved,
// or of all when that is not known.
func (r *doctorResult) segment(circuits []circuit.Circuit) bytesize.Bytes {
	if len(circuits) == 0 {
		circuits = catalog.Circuits()
	}
	var most bytesize.Bytes
	for _, c := range circuits {
		layout, err := compact.LayoutOf(c)
		if err != nil {
			r.broken(verdictFix, "segment", err, "")
			continue
		}
		most = max(most, bytesize.Bytes(layout.Bytes()))
	}
	return most
}

// memory looks at what this process may use.
func (r *doctorResult) memory(host *inventory.Host, segment bytesize.Bytes) {
	m, err := host.Memory(inventory.DefaultMargin())
	if err != nil {
		r.broken(verdictFix, "memory", err, "")
		return
	}
	limit := "no limit by a control group"
	if m.LimitFile != "" {
		limit = fmt.Sprintf("limit %s by %s", m.Limit, m.LimitFile)
	}
	v, fix := verdictOK, ""
	if m.Budget < 2*segment {
		v, fix = verdictFix, "raise the limit (memory of the container, MemoryMax of the unit) or add memory"
	}
	r.add(v, "memory", fix, "%s to book of %s, %s; a segment takes %s", m.Budget, m.Total, limit, segment)
	cpus, err := host.CPUs()
	if err != nil {
		r.broken(verdictFix, "processors", err, "")
		return
	}
	r.add(verdictOK, "processors", "", "%d of %d to use", cpus.Usable, len(cpus.Online))
}

// hugePage is the page size that makes fresh segments fast.
const hugePage = 2 * bytesize.MiB

// spill looks at a folder for segments: its file system, its pages, its permissions, and whether a segment fits.
func (r *doctorResult) spill(host *inventory.Host, path string, kind handoff.Kind, segment bytesize.Bytes) {
	name := string(kind)
	f, ok := r.folder(host, name, path)
	if !ok {
		return
	}
	inMemory := f.Kind == "tmpfs"
	switch {
	case kind == handoff.SHM && !inMemory:
		r.add(verdictAdvice, name, "name a folder in /dev/shm, or mount a tmpfs",
			"%s is on %s: segments there cost disk traffic", f.Path, cmp.Or(f.Kind, "a disk"))
	case kind == handoff.Disk && inMemory:
		r.add(verdictFix, name, "name a folder on a disk", "%s is on a tmpfs and would take memory", f.Path)
	case inMemory && f.PageSize < hugePage:
		r.add(verdictAdvice, name, "mount -o remount,huge=within_size "+f.MountPoint,
			"pages of %s: the first use of fresh segments is slow", f.PageSize)
	}
	if err := fits(f.Path, segment); err != nil {
		fix := "free some space or name another folder"
		if inMemory {
			fix = fmt.Sprintf("mount -o remount,size=%d %s, or shm_size of the container", 4*int64(segment), f.MountPoint)
		}
		r.broken(verdictFix, name, err, fix)
		return
	}
	r.add(verdictOK, name, "", "%s on %s: %s free of %s, room for %d segments of %s", f.Path, cmp.Or(f.Kind, "a disk"),
		f.Free, f.Size, int64(f.Free)/max(1, int64(segment)), segment)
}

// fits asks package handoff whether a segment can be made: in the folder itself if workers have used it, for then
// segments that wait to be reused count as room, else in a folder beside, which is removed again.
func fits(path string, segment bytesize.Bytes) (err error) {
	if _, statErr := os.Stat(filepath.Join(path, "seg")); statErr != nil {
		if path, err = os.MkdirTemp(path, ".proofrack-doctor-*"); err != nil {
			return fmt.Errorf("try folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(path)) }()
	}
	spill, err := handoff.New(handoff.NewConfig(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spill.Close()) }()
	return spill.Check("", segment)
}

// folder looks at the permissions of a folder, or of the one that it would be made in.
func (r *doctorResult) folder(host *inventory.Host, name, path string) (inventory.Folder, bool) {
	f, err := host.Folder(path)
	if fault.KindOf(err) == fault.NotFound {
		f, err = host.Folder(filepath.Dir(filepath.Clean(path)))
	}
	if err == nil {
		err = f.Check()
	}
	if err != nil {
		r.broken(verdictFix, name, err, "make the folder, owned by the user of the program")
		return f, false
	}
	if name == "data" {
		r.add(verdictOK, name, "", "%s: %s free", f.Path, f.Free)
	}
	return f, true
}

// locked looks at how much memory may be locked, which drivers of devices need.
func (r *doctorResult) locked() {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		r.broken(verdictFix, "memlock", fmt.Errorf("read limit of locked memory: %w", err), "")
		return
	}
	if limit.Cur == math.MaxUint64 {
		r.add(verdictOK, "memlock", "", "no limit")
		return
	}
	r.add(verdictAdvice, "memlock", "LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited",
		"%s may be locked: transfers to GPUs are slower without more", byteText(int64(min(limit.Cur, math.MaxInt64))))
}

// driver looks for GPUs. None is a fact, not a fault.
func (r *doctorResult) driver(host *inventory.Host) {
	const name = "driver"
	library := gpu.NVML(gpu.DefaultLibrary, host)
	version, err := library.Open()
	if err != nil { // nothing may be called after this
		r.add(verdictInfo, name, "", "no GPUs: %v; this host can prove with --device cpu", err)
		return
	}
	defer library.Close()
	readings, err := library.Read()
	if err != nil {
		r.broken(verdictFix, name, err, "nvidia-smi tells more")
		return
	}
	r.add(verdictOK, name, "", "version %s, %d devices", version, len(readings))
	for _, reading := range readings {
		d := reading.Device
		if reading.Err != nil {
			r.broken(verdictFix, name, fmt.Errorf("device %s: %w", cmp.Or(d.UUID, d.PCI), reading.Err), "reset the device")
			continue
		}
		r.add(verdictOK, name, "", "%s %s: %s, NUMA node %d", d.Name, d.UUID, d.Memory, d.NUMANode)
	}
}
