package hook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// Bounds.
const (
	EntriesMax = 64
	PauseMax   = 10 * time.Minute
	pollEvery  = 5 * time.Millisecond
)

// Actions of an entry.
const (
	kill  = "kill"
	pause = "pause"
	mark  = "mark"
	leak  = "leak"
)

var entryForm = regexp.MustCompile(`^(kill|pause|mark|leak)@([a-z0-9][a-z0-9.-]{0,62})(?:#([1-9][0-9]{0,5}))?$`)

// entry is what happens at one point the nth time.
type entry struct {
	action, point string
	nth           int
}

func (e entry) name() string { return e.point + "#" + strconv.Itoa(e.nth) }

// Points are the entries of one process. All methods may be called from several goroutines and on nil.
type Points struct {
	folder  string
	entries []entry

	mu     sync.Mutex
	visits map[string]int
}

// Parse reads entries of the form action@point#n; "#1" may be left out. Without entries it gives nil. The folder must
// exist; it is where marks and hold files are.
func Parse(folder string, texts []string) (*Points, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	if len(texts) > EntriesMax {
		return nil, fault.New(fault.Invalid, "%d test hooks, at most %d", len(texts), EntriesMax)
	}
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		return nil, fault.New(fault.Invalid, "folder %q of test hooks is not there: %v", folder, err)
	}
	p := &Points{folder: folder, visits: map[string]int{}}
	for _, text := range texts {
		parts := entryForm.FindStringSubmatch(text)
		if parts == nil {
			return nil, fault.New(fault.Invalid,
				"test hook %q is not kill@point#n, pause@point#n, mark@point#n or leak@point#n", text)
		}
		e := entry{action: parts[1], point: parts[2], nth: 1}
		if parts[3] != "" {
			if e.nth, err = strconv.Atoi(parts[3]); err != nil {
				return nil, fault.New(fault.Invalid, "test hook %q: %w", text, err)
			}
		}
		p.entries = append(p.entries, e)
	}
	return p, nil
}

// Hit tells that the process is at a point. It returns at once unless an entry is due.
func (p *Points) Hit(ctx context.Context, point string) { p.visit(ctx, point) }

// Leak tells that the process makes what could leak, and whether this one is to: an entry with action leak is due.
func (p *Points) Leak(point string) bool { return p.visit(context.Background(), point) }

// visit tells that the process is at a point, and whether an entry with action leak has fired.
func (p *Points) visit(ctx context.Context, point string) (leaks bool) {
	if p == nil {
		return false
	}
	p.mu.Lock()
	p.visits[point]++
	visit := p.visits[point]
	p.mu.Unlock()
	for _, e := range p.entries {
		if e.point == point && e.nth == visit {
			fired := p.fire(ctx, e)
			leaks = leaks || fired && e.action == leak
		}
	}
	return leaks
}

// fire does what an entry says, unless that was done before, and tells whether it did. A folder that cannot be written
// is a broken test.
func (p *Points) fire(ctx context.Context, e entry) bool {
	reached, hold := p.path(e, "reached"), p.path(e, "hold")
	if _, err := os.Lstat(reached); err == nil {
		return false
	}
	if e.action == pause {
		if err := os.WriteFile(hold, nil, 0o600); err != nil {
			panic(fmt.Sprintf("hook: hold %s: %v", e.name(), err))
		}
	}
	f, err := os.OpenFile(reached, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false // another process was faster
	}
	if err != nil {
		panic(fmt.Sprintf("hook: mark %s: %v", e.name(), err))
	}
	if _, err := f.WriteString(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
		panic(fmt.Sprintf("hook: mark %s: %v", e.name(), err))
	}
	if err := f.Close(); err != nil {
		panic(fmt.Sprintf("hook: mark %s: %v", e.name(), err))
	}
	switch e.action {
	case kill:
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			panic(fmt.Sprintf("hook: kill at %s: %v", e.name(), err))
		}
		select {} // the signal is on its way
	case pause:
		waitGone(ctx, hold)
	case mark, leak:
	}
	return true
}

// waitGone waits until a file is gone.
func waitGone(ctx context.Context, path string) {
	ctx, cancel := context.WithTimeout(ctx, PauseMax)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *Points) path(e entry, suffix string) string {
	return filepath.Join(p.folder, e.name()+"."+suffix)
}

// Unreached lists the entries that no process has reached yet, sorted: a name with a typing error shows here.
func (p *Points) Unreached() []string {
	if p == nil {
		return nil
	}
	var names []string
	for _, e := range p.entries {
		if _, err := os.Lstat(p.path(e, "reached")); err != nil {
			names = append(names, e.action+"@"+e.name())
		}
	}
	sort.Strings(names)
	return names
}

// ReachedBy is the number of the process that reached an entry's point in a folder, and whether one did. It is for
// tests that watch other processes; point has the form "name#n".
func ReachedBy(folder, point string) (int, bool) {
	text, err := os.ReadFile(filepath.Join(folder, point+".reached"))
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, err == nil
}

// LetGo ends the pause of an entry; point has the form "name#n".
func LetGo(folder, point string) error {
	if err := os.Remove(filepath.Join(folder, point+".hold")); err != nil {
		return fmt.Errorf("let go of hook %s: %w", point, err)
	}
	return nil
}
