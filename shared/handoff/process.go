package handoff

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Process names one process of one boot of a host, for evidence of its life.
type Process struct {
	PID int `json:"pid"`
	// Start is when it started, in clock ticks since boot.
	Start uint64 `json:"start"`
	// Boot is the host's boot id.
	Boot string `json:"boot"`
	// Space is its process number space; numbers of other spaces mean nothing here.
	Space string `json:"space,omitempty"`
}

const bootIDPath = "/proc/sys/kernel/random/boot_id"

// BootID is a name that the kernel makes at each boot.
func BootID() (string, error) {
	text, err := os.ReadFile(bootIDPath)
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if len(id) == 0 || len(id) > bootBytesMax {
		return "", fmt.Errorf("read boot id: %q is not one", id)
	}
	return id, nil
}

// Self is this process.
func Self() (Process, error) {
	boot, err := BootID()
	if err != nil {
		return Process{}, err
	}
	start, err := startOf(os.Getpid())
	if err != nil {
		return Process{}, err
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Process{}, fmt.Errorf("read process space: %w", err)
	}
	return Process{PID: os.Getpid(), Start: start, Boot: boot, Space: space}, nil
}

// Seen tells whether the process is known to live: it is of this boot and this number space, and its number still
// belongs to it. False is no proof of death when the number spaces differ.
func (p Process) Seen() bool {
	self, err := Self()
	if err != nil || p.Boot != self.Boot || p.Space != self.Space {
		return false
	}
	start, err := startOf(p.PID)
	return err == nil && start == p.Start
}

var errStat = errors.New("unreadable process status")

// startOf reads the 22nd field of a process's status; a process that ended and waits for its parent counts as gone.
func startOf(pid int) (uint64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("read status of process %d: %w", pid, err)
	}
	_, rest, ok := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(") "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, fmt.Errorf("process %d: %w", pid, errStat)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w: %w", pid, errStat, err)
	}
	return start, nil
}
