package mailbox

import (
	"sync"

	"github.com/proofrack/proofrack/shared/bus"
)

// Limits bound one mailbox.
type Limits struct {
	Messages int
	Bytes    int
}

// Mailbox calls one handler, one message at a time.
type Mailbox struct {
	limits  Limits
	handle  func(bus.Message)
	dropped func(count uint64)

	mu      sync.Mutex
	waiting []bus.Message
	bytes   int
	lost    uint64 // since dropped was last called
	stopped bool
	wake    chan struct{}
	done    chan struct{}
}

// New starts a mailbox. Dropped is called with the first message that is lost, and with the sum of further ones when
// the handler takes messages again.
func New(limits Limits, handle func(bus.Message), dropped func(count uint64)) *Mailbox {
	m := &Mailbox{
		limits: limits, handle: handle, dropped: dropped, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go m.run()
	return m
}

// Put adds a message, or drops it. It never waits for the handler.
func (m *Mailbox) Put(message bus.Message) {
	size := size(message)
	m.mu.Lock()
	if m.stopped {
		m.mu.Unlock()
		return
	}
	if len(m.waiting) >= m.limits.Messages || m.bytes+size > m.limits.Bytes {
		first := m.lost == 0
		m.lost++
		m.mu.Unlock()
		if first {
			m.dropped(1)
		}
		return
	}
	m.waiting = append(m.waiting, message)
	m.bytes += size
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Mailbox) run() {
	defer close(m.done)
	for {
		m.mu.Lock()
		if m.stopped {
			m.mu.Unlock()
			return
		}
		lost := m.lost
		m.lost = 0
		var next bus.Message
		some := len(m.waiting) > 0
		if some {
			next = m.waiting[0]
			m.waiting[0] = bus.Message{}
			m.waiting = m.waiting[1:]
			m.bytes -= size(next)
		}
		m.mu.Unlock()
		if lost > 1 {
			m.dropped(lost - 1) // the first was told at once
		}
		if some {
			m.handle(next)
		} else {
			<-m.wake
		}
	}
}

func size(m bus.Message) int { return len(m.Data) + len(m.Subject) }

// Stop drops what waits and returns when the handler has.
func (m *Mailbox) Stop() {
	m.mu.Lock()
	m.stopped, m.waiting = true, nil
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
	<-m.done
}
