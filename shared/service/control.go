package service

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/rs/zerolog"
)

// Level is how urgently something is to end.
type Level int

// Levels, each more urgent than the one before.
const (
	// Drain asks to take no new work, finish what runs, and return.
	Drain Level = iota + 1
	// HandBack asks to return running work unfinished, at once.
	HandBack
	// Kill ends contexts.
	Kill
)

// String is the level in words.
func (l Level) String() string {
	switch l {
	case Drain:
		return "drain"
	case HandBack:
		return "hand back"
	case Kill:
		return "kill"
	}
	return fmt.Sprintf("level %d", int(l))
}

// Control is what a service hears of its process, and tells it.
type Control struct {
	levels [Kill]chan struct{}
	ready  chan struct{}

	mu     sync.Mutex
	level  Level
	reason string
	once   sync.Once
}

// NewControl makes a Control that nothing stops but Stop.
func NewControl() *Control {
	c := &Control{ready: make(chan struct{})}
	for i := range c.levels {
		c.levels[i] = make(chan struct{})
	}
	return c
}

// Ready tells that the service works; the next one starts then. It may be called more than once.
func (c *Control) Ready() { c.once.Do(func() { close(c.ready) }) }

// Stopping is closed when the service is to take no new work, finish what runs, and return.
func (c *Control) Stopping() <-chan struct{} { return c.levels[Drain-1] }

// HandingBack is closed when running work is to be handed back at once. Stopping is closed before it.
func (c *Control) HandingBack() <-chan struct{} { return c.levels[HandBack-1] }

// killed is closed when the service's context ends.
func (c *Control) killed() <-chan struct{} { return c.levels[Kill-1] }

// Stop raises the level; a lower or equal one changes nothing. The reason is for people: "SIGTERM", "drain by order".
func (c *Control) Stop(level Level, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.level < min(level, Kill) {
		c.reason = reason
		close(c.levels[c.level])
		c.level++
	}
}

// Level is the present level, 0 while nothing asked to stop, and who asked for it.
func (c *Control) Level() (Level, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level, c.reason
}

type controlKey struct{}

// With gives a context that carries a Control: a Group run under it obeys that.
func With(ctx context.Context, c *Control) context.Context {
	return context.WithValue(ctx, controlKey{}, c)
}

// ControlOf is the Control that a context carries, nil for none.
func ControlOf(ctx context.Context) *Control {
	c, _ := ctx.Value(controlKey{}).(*Control)
	return c
}

// Notify gives a context whose Control follows the signals of the process, until stop is called.
func Notify(ctx context.Context, log zerolog.Logger) (_ context.Context, stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1)
	c := NewControl()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.follow(signals, done, log)
	}()
	return With(ctx, c), func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}

// follow turns signals into levels.
func (c *Control) follow(signals <-chan os.Signal, done <-chan struct{}, log zerolog.Logger) {
	for {
		select {
		case <-done:
			return
		case s := <-signals:
			level, _ := c.Level()
			next := min(level+1, Kill)
			if s == syscall.SIGUSR1 {
				next = max(level, HandBack)
			}
			log.Info().Stringer("signal", s).Stringer("stop", next).Msg("signal received")
			c.Stop(next, s.String())
		}
	}
}
