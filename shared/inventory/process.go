package inventory

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// Process is one process of this PID namespace. PID and StartTicks together name it for as long as the boot lasts.
type Process struct {
	PID        int
	StartTicks uint64 // clock ticks from boot to its start
	Dead       bool   // its memory is gone, its entry waits for the parent
}

// Process looks a process up; NotFound when there is none.
func (h *Host) Process(pid int) (Process, error) {
	text, err := h.read(fmt.Sprintf("proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) { // it ended between open and read
		err = fault.As(fault.NotFound, err)
	}
	if err != nil {
		return Process{}, err
	}
	// The name in parentheses may hold anything, parentheses too.
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	if end < 0 || len(fields) < 20 {
		return Process{}, fault.New(fault.Corrupt, "proc/%d/stat has too few fields", pid)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return Process{}, fault.As(fault.Corrupt, fmt.Errorf("proc/%d/stat: %w", pid, err))
	}
	return Process{PID: pid, StartTicks: start, Dead: strings.ContainsAny(fields[0], "ZXx")}, nil
}

// Self is this process.
func (h *Host) Self() (Process, error) { return h.Process(os.Getpid()) }

// Alive tells whether the process with this PID and start still has its memory. An error means that it is not known.
func (h *Host) Alive(pid int, startTicks uint64) (bool, error) {
	p, err := h.Process(pid)
	if absent(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return p.StartTicks == startTicks && !p.Dead, nil
}

// Resident is the memory of a process by kind.
type Resident struct {
	Total     bytesize.Bytes // all resident pages
	Anonymous bytesize.Bytes // heap and stacks
	Files     bytesize.Bytes // mapped files
	Shared    bytesize.Bytes // shared memory: segments
}

// Resident reads a process's memory; NotFound when there is none.
func (h *Host) Resident(pid int) (Resident, error) {
	text, err := h.read(fmt.Sprintf("proc/%d/status", pid))
	if errors.Is(err, syscall.ESRCH) {
		err = fault.As(fault.NotFound, err)
	}
	if err != nil {
		return Resident{}, err
	}
	total, ok := kilobytes(text, "VmRSS")
	if !ok {
		return Resident{}, fault.New(fault.NotFound, "process %d has no memory", pid)
	}
	anonymous, _ := kilobytes(text, "RssAnon")
	files, _ := kilobytes(text, "RssFile")
	shared, _ := kilobytes(text, "RssShmem")
	bytes := func(kilobytes uint64) bytesize.Bytes { return bytesize.Bytes(kilobytes) * bytesize.KiB }
	return Resident{bytes(total), bytes(anonymous), bytes(files), bytes(shared)}, nil
}
