package inventory

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// clockTick is the unit of times in /proc: the kernel shows 100 to the second on every machine that we build for.
const clockTick = 10 * time.Millisecond

// CPUTime is the processor time that a process has taken, and the processes below it that it has waited for; NotFound
// when there is none.
func (h *Host) CPUTime(pid int) (time.Duration, error) {
	text, err := h.read(fmt.Sprintf("proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) {
		err = fault.As(fault.NotFound, err)
	}
	if err != nil {
		return 0, err
	}
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	if end < 0 || len(fields) < 15 {
		return 0, fault.New(fault.Corrupt, "proc/%d/stat has too few fields", pid)
	}
	var sum time.Duration
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil || ticks < 0 || ticks > int64(1<<62)/int64(clockTick) {
			return 0, fault.New(fault.Corrupt, "proc/%d/stat has a time of %.40q", pid, field)
		}
		sum += time.Duration(ticks) * clockTick
	}
	return sum, nil
}
