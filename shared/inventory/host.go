package inventory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/proofrack/proofrack/shared/fault"
)

// FileBytesMax bounds what is read of one file.
const FileBytesMax = 4 << 20

// Host reads facts below a file system that looks like the root folder.
type Host struct {
	root fs.FS
}

// NewHost reads this host.
func NewHost() *Host { return &Host{root: os.DirFS("/")} }

// NewHostAt reads made-up files: "proc/meminfo", "sys/fs/cgroup/…", "sys/devices/system/node/…".
func NewHostAt(root fs.FS) *Host { return &Host{root: root} }

// read is a file's text.
func (h *Host) read(name string) (string, error) {
	file, err := h.root.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fault.As(fault.NotFound, err)
		}
		return "", fmt.Errorf("read host fact: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, FileBytesMax))
	if err != nil {
		return "", fmt.Errorf("read host fact %s: %w", name, err)
	}
	return string(bytes.TrimRight(text, "\n")), nil
}

// absent tells errors of files that a kernel or a container does not have.
func absent(err error) bool { return fault.KindOf(err) == fault.NotFound }

// BootID names the present run of the kernel: another one means that no process and no memory of before is left.
func (h *Host) BootID() (string, error) {
	id, err := h.read("proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	if len(id) != 36 {
		return "", fault.New(fault.Corrupt, "boot id %q is not a UUID", id)
	}
	return id, nil
}

// parseList reads the kernel's form of sets of numbers: "0-3,8,10-11". It refuses numbers of 65,536 and above.
func parseList(text string) ([]int, error) {
	var all []int
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || to < from {
			return nil, fault.New(fault.Corrupt, "list of numbers %.80q: %.80q", text, part)
		}
		for n := from; n <= to; n++ {
			if len(all) > 1<<16 {
				return nil, fault.New(fault.Corrupt, "list of numbers %.80q is too long", text)
			}
			all = append(all, int(n))
		}
	}
	return all, nil
}

// kilobytes reads a line "Name:   123 kB" of a file like /proc/meminfo.
func kilobytes(text, name string) (uint64, bool) {
	for line := range strings.SplitSeq(text, "\n") {
		label, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(label) != name {
			continue
		}
		fields := strings.Fields(value)
		if len(fields) != 2 || fields[1] != "kB" {
			return 0, false
		}
		n, err := strconv.ParseUint(fields[0], 10, 53)
		return n, err == nil
	}
	return 0, false
}
