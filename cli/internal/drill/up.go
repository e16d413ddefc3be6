package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// UpFile is what a rack in one process says of itself in its data folder, as JSON of [UpState], while it runs.
const UpFile = "up.json"

// UpState is a running rack in one process.
type UpState struct {
	PID    int    `json:"pid"`
	URL    string `json:"url"`
	Spill  string `json:"spill"`
	Ledger string `json:"ledger"`        // address of its ledger store
	Web    string `json:"web,omitempty"` // address of its web page
}

// ReadUp reads the state of the rack whose data are in a folder. It fails with fault.NotFound when none runs there.
func ReadUp(data string) (*UpState, error) {
	text, err := os.ReadFile(filepath.Join(data, UpFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "no rack is up on %s", data)
	}
	if err != nil {
		return nil, fmt.Errorf("read state of the rack: %w", err)
	}
	var s UpState
	if err := json.Unmarshal(text, &s); err != nil || s.PID < 2 {
		return nil, fault.New(fault.Corrupt, "%s in %s is not the state of a rack", UpFile, data)
	}
	return &s, nil
}

// WriteUp writes it, in one step.
func WriteUp(data string, s *UpState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode state of the rack: %w", err)
	}
	path := filepath.Join(data, UpFile)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("write state of the rack: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write state of the rack: %w", err)
	}
	return nil
}

// Times of the faults of a rack in one process.
const (
	stopMax   = 10 * time.Second // until a killed process is gone
	startMax  = time.Minute      // until a started one is up
	spillHold = 20 * time.Second
	// memoryLeft is what filling a folder in memory leaves to everybody.
	memoryLeft = 4 * bytesize.GiB
)

// Up gives the means for the rack whose data are in a folder: it is one process, so a killed coordinator, NATS server
// or store is a killed rack, which is then started again by the same command line. Pause is how long the process
// stands still: longer than a lease.
func Up(data string, pause time.Duration) map[string]Means {
	u := &up{data: data}
	restart := Means{
		Do:   Action{"kill -9 of the rack: coordinator, NATS, ledger store and workers are one process", u.kill},
		Undo: Action{"the same command again", u.start},
	}
	wiped := restart
	wiped.Do = Action{"kill -9 of the rack, and all files of its NATS server are removed", u.empty}
	return map[string]Means{
		Worker: {Do: Action{"kill -9 of the engine that proves", u.killEngine}},
		Pause: {
			Do: Action{"SIGSTOP to the rack", u.signal(unix.SIGSTOP)}, Hold: pause,
			Undo: Action{"SIGCONT", u.signal(unix.SIGCONT)},
		},
		Leader: restart, Broker: restart, Store: restart, Everything: wiped,
		Wipe:  {Do: Action{"FLUSHALL in its ledger store", u.flush}},
		Spill: u.fillMeans(),
	}
}

// up is a rack in one process.
type up struct {
	data    string
	command *exec.Cmd // how it is started again
	ballast string
}

// process is the running rack: its number, once it is certain that it is one.
func (u *up) process() (*UpState, []string, error) {
	s, err := ReadUp(u.data)
	if err != nil {
		return nil, nil, err
	}
	args, err := zeroed(s.PID, "cmdline")
	if err != nil || len(args) < 2 || !slices.Contains(args, "up") {
		return nil, nil, fault.New(fault.NotFound, "process %d of %s is not a rack", s.PID, UpFile)
	}
	return s, args, nil
}

// zeroed reads a file of /proc of texts that end in a zero byte.
func zeroed(pid int, name string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

func (u *up) kill(ctx context.Context) (string, error) {
	s, args, err := u.process()
	if err != nil {
		return "", err
	}
	proc := filepath.Join("/proc", strconv.Itoa(s.PID))
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	if err != nil {
		return "", fmt.Errorf("find the program of process %d: %w", s.PID, err)
	}
	folder, err := os.Readlink(filepath.Join(proc, "cwd"))
	if err != nil {
		return "", fmt.Errorf("find the folder of process %d: %w", s.PID, err)
	}
	env, err := zeroed(s.PID, "environ")
	if err != nil {
		return "", fmt.Errorf("find the environment of process %d: %w", s.PID, err)
	}
	u.command = &exec.Cmd{Path: exe, Args: args, Dir: folder, Env: env}
	return fmt.Sprintf("process %d", s.PID), killed(ctx, s.PID)
}

// killed kills a process and waits until it is gone.
func killed(ctx context.Context, pid int) error {
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopMax)
	defer cancel()
	for running(pid) {
		select {
		case <-ctx.Done():
			return fault.New(fault.Transient, "process %d is not gone %s after it was killed", pid, stopMax)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// running tells whether any thread of a process is left; one that only waits to be reaped is gone.
func running(pid int) bool {
	_, letter, err := stat(pid)
	if err != nil || letter == "X" {
		return false
	}
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	return err == nil && (letter != "Z" || len(threads) > 1)
}

// stat reads the parent and the state of a process.
func stat(pid int) (parent int, letter string, err error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, "", err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0, "", fault.New(fault.Corrupt, "process %d has no state", pid)
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, fields[0], err
}

// logFile is where a rack that a drill started writes its log, in its data folder.
const logFile = "drill.log"

func (u *up) start(ctx context.Context) (string, error) {
	if u.command == nil {
		return "", fault.New(fault.Conflict, "the rack was not killed")
	}
	log, err := os.OpenFile(filepath.Join(u.data, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", fmt.Errorf("start the rack: %w", err)
	}
	defer log.Close()
	cmd := u.command
	u.command = nil
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the drill
	if err := os.Remove(filepath.Join(u.data, UpFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("start the rack: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start the rack: %w", err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	for {
		if s, err := ReadUp(u.data); err == nil && s.PID == cmd.Process.Pid {
			return fmt.Sprintf("process %d, log in %s", s.PID, log.Name()), nil
		}
		select {
		case err := <-gone:
			return "", fmt.Errorf("start the rack: it ended (%w), see %s", err, log.Name())
		case <-ctx.Done():
			return "", fault.New(fault.Transient, "start the rack: it is not up after %s, see %s", startMax, log.Name())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (u *up) empty(ctx context.Context) (string, error) {
	said, err := u.kill(ctx)
	if err == nil {
		err = os.RemoveAll(filepath.Join(u.data, "nats"))
	}
	return said, err
}

// killEngine kills a child of the rack.
func (u *up) killEngine(ctx context.Context) (string, error) {
	s, _, err := u.process()
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, letter, err := stat(pid); err == nil && parent == s.PID && letter != "Z" {
			return fmt.Sprintf("process %d", pid), killed(ctx, pid)
		}
	}
	return "", fault.New(fault.NotFound, "process %d has no engine", s.PID)
}

func (u *up) signal(sig unix.Signal) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		s, _, err := u.process()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("process %d", s.PID), unix.Kill(s.PID, sig)
	}
}

func (u *up) flush(ctx context.Context) (string, error) {
	s, _, err := u.process()
	if err != nil {
		return "", err
	}
	r := redis.NewClient(&redis.Options{Addr: s.Ledger})
	defer r.Close()
	return s.Ledger, r.FlushAll(ctx).Err()
}

// fillMeans fills the spill folder, unless that would take the machine's memory.
func (u *up) fillMeans() Means {
	m := Means{
		Do: Action{"the spill folder's file system is filled", u.fill}, Hold: spillHold,
		Undo: Action{"the filling is removed", u.drain},
	}
	s, err := ReadUp(u.data)
	if err != nil {
		m.Lacking = err.Error()
		return m
	}
	switch free, available, err := room(s.Spill); {
	case err != nil:
		m.Lacking = err.Error()
	case sameFileSystem(s.Spill, "/"):
		m.Lacking = fmt.Sprintf("%s is in the root file system, which others need: put the spill folder on a tmpfs of its "+
			"own (--spill)", s.Spill)
	case free > available:
		m.Lacking = fmt.Sprintf("%s has %s free, which is more memory than can be spared: put the spill folder on a "+
			"tmpfs of its own (--spill)", s.Spill, free)
	}
	return m
}

// sameFileSystem tells whether two folders are in one, also when that is not to be known.
func sameFileSystem(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) != nil || unix.Stat(b, &y) != nil || x.Dev == y.Dev
}

// room is what is free in a file system, and how much of that may be filled.
func room(folder string) (free, available bytesize.Bytes, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return 0, 0, fmt.Errorf("look at the spill folder %s: %w", folder, err)
	}
	free = bytesize.Bytes(fs.Bavail) * bytesize.Bytes(fs.Bsize)
	if fs.Type != unix.TMPFS_MAGIC {
		return free, free, nil
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, 0, fmt.Errorf("ask for the free memory: %w", err)
	}
	available = bytesize.Bytes(info.Freeram) * bytesize.Bytes(info.Unit)
	return free, max(0, available-memoryLeft), nil
}

func (u *up) fill(context.Context) (string, error) {
	s, err := ReadUp(u.data)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(s.Spill, ".drill-")
	if err != nil {
		return "", fmt.Errorf("fill the spill folder: %w", err)
	}
	defer f.Close()
	u.ballast = f.Name()
	var took int64
	for step := int64(1 << 30); step >= 4096; {
		err := unix.Fallocate(int(f.Fd()), 0, took, step)
		switch {
		case err == nil:
			took += step
		case errors.Is(err, unix.ENOSPC):
			step /= 2
		case !errors.Is(err, unix.EINTR):
			return "", fmt.Errorf("fill the spill folder: %w", err)
		}
	}
	return fmt.Sprintf("%s in %s", bytesize.Bytes(took), f.Name()), nil
}

func (u *up) drain(context.Context) (string, error) {
	if u.ballast == "" {
		return "", nil
	}
	err := os.Remove(u.ballast)
	u.ballast = ""
	return "", err
}
