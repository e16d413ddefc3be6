package membus

import (
	"maps"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// messageBytesMax is NATS's default bound of a message.
const messageBytesMax = 1 << 20

// stream is a sequence of messages, oldest first.
type stream struct {
	cfg       bus.Stream
	messages  []bus.Stored
	bytes     uint64
	last      uint64
	ids       map[string]time.Time // when they are forgotten
	consumers map[string]*consumer
}

func size(m bus.Message) uint64 {
	n := len(m.Subject) + len(m.Data) + len(m.ID)
	for key, value := range m.Header {
		n += len(key) + len(value)
	}
	return uint64(n) //nolint:gosec // lengths
}

func clone(m bus.Message) bus.Message {
	m.Data, m.Header = slices.Clone(m.Data), maps.Clone(m.Header)
	return m
}

// expire drops what is too old.
func (st *stream) expire(now time.Time) {
	maps.DeleteFunc(st.ids, func(_ string, until time.Time) bool { return !now.Before(until) })
	if st.cfg.AgeMax > 0 {
		for len(st.messages) > 0 && now.Sub(st.messages[0].At) >= st.cfg.AgeMax {
			st.remove(st.messages[0].Sequence)
		}
	}
}

func (st *stream) full(more uint64) bool {
	return st.cfg.MessagesMax > 0 && int64(len(st.messages)) >= st.cfg.MessagesMax ||
		st.cfg.BytesMax > 0 && st.bytes+more > uint64(st.cfg.BytesMax) //nolint:gosec // not negative
}

// add stores a message.
func (st *stream) add(m bus.Message, now time.Time) (duplicate bool, err error) {
	st.expire(now)
	more := size(m)
	if len(m.Data) > messageBytesMax || st.cfg.MessageBytesMax > 0 && more > uint64(st.cfg.MessageBytesMax) {
		return false, fault.New(fault.Invalid, "publish to %s: message of %d bytes is too large", m.Subject, more)
	}
	if _, known := st.ids[m.ID]; known && m.ID != "" {
		return true, nil
	}
	for st.full(more) && st.cfg.DropOldest && len(st.messages) > 0 {
		st.remove(st.messages[0].Sequence)
	}
	if st.full(more) {
		return false, fault.WithHint(fault.New(fault.Exhausted, "publish to %s: stream %s is full", m.Subject, st.cfg.Name),
			"the queue is full: try again later")
	}
	if m.ID != "" {
		window := st.cfg.DuplicateWindow
		if window == 0 {
			window = bus.DuplicateWindowDefault
		}
		st.ids[m.ID] = now.Add(window)
	}
	st.last++
	st.messages = append(st.messages, bus.Stored{Message: clone(m), Sequence: st.last, At: now})
	st.bytes += more
	return false, nil
}

func (st *stream) find(sequence uint64) (int, bool) {
	return slices.BinarySearchFunc(st.messages, sequence, func(m bus.Stored, sequence uint64) int {
		switch {
		case m.Sequence < sequence:
			return -1
		case m.Sequence > sequence:
			return 1
		}
		return 0
	})
}

func (st *stream) remove(sequence uint64) bool {
	i, ok := st.find(sequence)
	if !ok {
		return false
	}
	st.bytes -= size(st.messages[i].Message)
	st.messages = slices.Delete(st.messages, i, i+1)
	for _, c := range st.consumers {
		delete(c.held, sequence)
	}
	return true
}

// held is a message delivered or put back.
type held struct {
	until time.Time // then it is delivered again
	count int
}

type consumer struct {
	cfg  bus.Consumer
	next uint64 // first place never delivered
	held map[uint64]*held
}

// take gives the next message that is due: one that comes again first, by place.
func (st *stream) take(c *consumer, now time.Time) (bus.Stored, int, bool) {
	st.expire(now)
	again := uint64(0)
	for sequence, h := range c.held {
		if !now.Before(h.until) && (again == 0 || sequence < again) {
			again = sequence
		}
	}
	if again != 0 {
		i, _ := st.find(again) // remove keeps held within messages
		h := c.held[again]
		h.count++
		h.until = now.Add(c.cfg.AckWait)
		return st.messages[i], h.count, true
	}
	if c.cfg.HeldMax > 0 && len(c.held) >= c.cfg.HeldMax {
		return bus.Stored{}, 0, false
	}
	from, _ := st.find(c.next)
	for _, m := range st.messages[from:] {
		c.next = m.Sequence + 1
		if bus.Match(c.cfg.Subject, m.Subject) {
			c.held[m.Sequence] = &held{until: now.Add(c.cfg.AckWait), count: 1}
			return m, 1, true
		}
	}
	return bus.Stored{}, 0, false
}

// waiting counts what a consumer never gave out.
func (st *stream) waiting(c *consumer) (n uint64) {
	from, _ := st.find(c.next)
	for _, m := range st.messages[from:] {
		if bus.Match(c.cfg.Subject, m.Subject) {
			n++
		}
	}
	return n
}
