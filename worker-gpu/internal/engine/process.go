package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
)

// Config says how an engine is started and watched.
type Config struct {
	// Command starts an engine; by default this program again with the argument "engine".
	Command []string
	// Setup is what it is told.
	Setup Setup
	// Environ is added to its environment; Inherit are files that it holds as long as it lives.
	Environ []string
	Inherit []*os.File
	// StartMax bounds the time until it is ready, StopMax the time that it has to end by itself.
	StartMax, StopMax time.Duration
	// StallMax is how long it may show no progress while it has something to do; StageMax bounds one stage.
	StallMax, StageMax time.Duration
	// Timeline, when set, follows what the engine reports of its buffers, to its end.
	Timeline *flight.Timeline
	Log      zerolog.Logger
}

// Defaults.
const (
	DefaultStartMax = 30 * time.Second
	DefaultStopMax  = 5 * time.Second
	DefaultStallMax = 30 * time.Second
	DefaultStageMax = 30 * time.Minute
)

// DefaultCommand is this program as an engine. The link leads to the running file even after an upgrade replaced it.
func DefaultCommand() []string { return []string{"/proc/self/exe", "engine"} }

// Crash is how an engine process ended that nobody asked to end.
type Crash struct {
	// Cause is one line: "signal: killed", "exit status 2: SIGABRT: abort", "no progress for 30s".
	Cause string
	// Hung tells that it was killed by its supervisor.
	Hung bool
	// Lines are the last words on its standard error.
	Lines []string
}

// Error is the cause and the last words.
func (c *Crash) Error() string {
	text := "engine crashed: " + c.Cause
	if c.Hung {
		text = "engine hung: " + c.Cause
	}
	if len(c.Lines) > 0 {
		text += "\nlast words:\n" + strings.Join(c.Lines, "\n")
	}
	return text
}

// FaultKind is fault.Device.
func (c *Crash) FaultKind() fault.Kind { return fault.Device }

// Engine is a running engine process. Its methods may be called from several goroutines.
type Engine struct {
	config Config
	conn   *conn
	cmd    *exec.Cmd
	ready  Ready
	words  *lastWords
	silent chan struct{} // closed when no more answers come
	gone   chan struct{} // closed when the process is gone
	crash  *Crash        // set before gone is closed

	mu       sync.Mutex
	next     uint64
	waiting  map[uint64]chan answer
	progress Progress
	moved    time.Time // when progress last rose
	staged   time.Time // when Steps last rose
	closing  bool
	killed   string // why it was killed
}

// Spawn starts an engine and waits until it is ready. Errors are of kind fault.Device, or the context's.
func Spawn(ctx context.Context, config Config) (*Engine, error) {
	e := &Engine{
		config: config, words: &lastWords{}, gone: make(chan struct{}), silent: make(chan struct{}),
		waiting: map[uint64]chan answer{},
		moved:   time.Now(), staged: time.Now(),
	}
	mine, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	if e.conn, err = newConn(mine); err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	err = e.start(theirs)
	if err = errors.Join(err, theirs.Close()); err != nil { // only the engine has it open, so its end shows here
		return nil, errors.Join(fault.As(fault.Device, fmt.Errorf("start engine %s: %w", config.Setup.Name, err)),
			e.conn.socket.Close())
	}
	go e.read()
	ctx, cancel := context.WithTimeout(ctx, config.StartMax)
	defer cancel()
	a, err := e.ask(ctx, request{Do: verbSetup, Setup: &config.Setup}, nil)
	if err == nil && a.Ready == nil {
		err = fault.New(fault.Device, "engine %s answered its setup with nothing", config.Setup.Name)
	}
	if err != nil {
		e.Kill("start failed")
		<-e.gone
		if errors.Is(err, context.DeadlineExceeded) {
			err = fault.New(fault.Device, "engine %s was not ready within %s", config.Setup.Name, config.StartMax)
		}
		return nil, err
	}
	e.ready = *a.Ready
	e.mu.Lock()
	if e.progress == (Progress{}) {
		e.progress = a.Ready.Progress
	}
	e.mu.Unlock()
	go e.watch()
	return e, nil
}

// start runs the process. It dies with the thread that started it, so that thread is kept until it is gone.
func (e *Engine) start(socket *os.File) error {
	//nolint:gosec // the command is this program, or the configuration's
	e.cmd = exec.Command(e.config.Command[0], e.config.Command[1:]...)
	e.cmd.ExtraFiles = append([]*os.File{socket}, e.config.Inherit...)
	e.cmd.Env = append(os.Environ(), e.config.Environ...)
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	stderr, err := e.cmd.StderrPipe()
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := e.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		e.listen(stderr)
		err = e.cmd.Wait()
		<-e.silent // its last answers count
		e.ended(err)
	}()
	return <-started
}

// listen keeps the last words and logs them.
func (e *Engine) listen(stderr io.Reader) {
	lines := bufio.NewReaderSize(stderr, lineBytesMax)
	for {
		line, prefix, err := lines.ReadLine()
		if err != nil {
			return
		}
		text := strings.ToValidUTF8(string(line), "\uFFFD")
		e.words.add(text)
		e.config.Log.Debug().Str("line", text).Msg("engine says")
		for prefix && err == nil { // the rest of an endless line
			_, prefix, err = lines.ReadLine()
		}
	}
}

// ended records how the process ended and answers whoever waits.
func (e *Engine) ended(err error) {
	if e.config.Timeline != nil {
		e.config.Timeline.Follow(time.Now(), &flight.Report{})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closing || e.killed != "" {
		e.crash = &Crash{Cause: e.cause(err), Hung: e.killed != "", Lines: e.words.lines()}
	} else {
		e.crash = &Crash{Cause: "it was closed"}
	}
	close(e.gone)
}

var signalForm = regexp.MustCompile(`^(SIG[A-Z]+: .*|panic: .*|fatal error: .*|engine: .*)`)

// cause says in a line why the process ended.
func (e *Engine) cause(err error) string {
	if e.killed != "" {
		return e.killed
	}
	text := "exit status 0"
	if err != nil {
		text = err.Error()
	}
	if line := e.words.first(signalForm); line != "" {
		text += ": " + line
	}
	return text
}

// read takes answers until the socket ends.
func (e *Engine) read() {
	defer close(e.silent)
	for {
		var a answer
		file, err := e.conn.receive(&a)
		if file != nil {
			err = errors.Join(err, file.Close(), fault.New(fault.Corrupt, "engine sent a file"))
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				e.Kill(err.Error())
			}
			return
		}
		e.take(a)
	}
}

func (e *Engine) take(a answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.Progress != nil {
		if e.config.Timeline != nil && a.Progress.Flight != nil {
			e.config.Timeline.Follow(time.Now(), a.Progress.Flight)
		}
		if a.Progress.Steps > e.progress.Steps {
			e.staged, e.moved = time.Now(), time.Now()
		}
		if a.Progress.CPU >= e.progress.CPU+cpuStep {
			e.moved = time.Now()
		} else {
			a.Progress.CPU = e.progress.CPU
		}
		e.progress = *a.Progress
	}
	if to, ok := e.waiting[a.ID]; ok {
		delete(e.waiting, a.ID)
		to <- a
	}
}

// cpuStep is how much processor time counts as progress: more than an idle process uses for its beats.
const cpuStep = 20 * time.Millisecond

// watch kills an engine that has something to do and shows no progress.
func (e *Engine) watch() {
	ticker := time.NewTicker(max(time.Millisecond, min(e.config.StallMax, e.config.StageMax)/8))
	defer ticker.Stop()
	for {
		select {
		case <-e.gone:
			return
		case now := <-ticker.C:
			if why := e.hung(now); why != "" {
				e.Kill(why)
				return
			}
		}
	}
}

func (e *Engine) hung(now time.Time) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case len(e.waiting) == 0:
		e.moved, e.staged = now, now
	case now.Sub(e.moved) > e.config.StallMax:
		return fmt.Sprintf("no progress for %s in stage %q", e.config.StallMax, e.progress.Stage)
	case now.Sub(e.staged) > e.config.StageMax:
		return fmt.Sprintf("stage %q took longer than %s", e.progress.Stage, e.config.StageMax)
	}
	return ""
}

// Gone is closed when the process is gone.
func (e *Engine) Gone() <-chan struct{} { return e.gone }

// Crash is how it ended; only valid once it is gone.
func (e *Engine) Crash() *Crash { return e.crash }

// PID is the process's number.
func (e *Engine) PID() int { return e.ready.PID }

// Device is the device's own name.
func (e *Engine) Device() string { return e.ready.Device }

// Progress is the latest progress; its sum only rises.
func (e *Engine) Progress() Progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.progress
}

// Count is progress as one number that rises as long as the engine works.
func (p Progress) Count() uint64 { return p.Steps + uint64(p.CPU/cpuStep) }

// Kill ends the process at once; cause says why.
func (e *Engine) Kill(cause string) {
	e.mu.Lock()
	if e.killed == "" && !e.closing {
		e.killed = cause
	}
	e.mu.Unlock()
	_ = e.cmd.Process.Kill() // it may be gone already
}

// Close lets the process end by itself, or kills it after StopMax, and waits until it is gone.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	_ = e.conn.socket.CloseWrite() // it may be gone already
	timer := time.NewTimer(e.config.StopMax)
	defer timer.Stop()
	select {
	case <-e.gone:
	case <-timer.C:
		_ = e.cmd.Process.Kill()
		<-e.gone
	}
	_ = e.conn.socket.Close()
}
