package bus

import (
	"context"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// Message is one message. A receiver owns its copy.
type Message struct {
	// Subject is the address: words separated by dots.
	Subject string
	// ID makes publishing idempotent within a stream's duplicate window; "" for none. Plain messages have none.
	ID string
	// Header carries trace context and the like; keys are case-sensitive.
	Header map[string]string
	// Data is the body.
	Data []byte
}

// Delivery is a message of a queue in the hands of one consumer. It must be settled by Ack, Nak or Term; a message on
// which nothing is heard for one ack wait is delivered again. Methods may be called from several goroutines.
type Delivery interface {
	// Message gives the message.
	Message() Message
	// Count is how often the message was delivered, this time included: 1 at first.
	Count() int
	// Ack removes the message from its queue and returns when the server has said so.
	Ack(ctx context.Context) error
	// Nak puts the message back; it is delivered again after the delay (0: at once).
	Nak(ctx context.Context, delay time.Duration) error
	// Term removes the message unprocessed. The reason is for the server's operators.
	Term(ctx context.Context, reason string) error
	// InProgress starts the ack wait anew.
	InProgress(ctx context.Context) error
}

// Queue gives out the messages of one consumer. Methods may be called from several goroutines.
type Queue interface {
	// Fetch waits for a message until ctx ends, through outages too: its error is then ctx's. The consumer is made anew
	// if somebody deleted it, or, if it is an existing one, that is fault.NotFound. Other errors are fault.Invalid.
	Fetch(ctx context.Context) (Delivery, error)
	// State counts what is waiting and held.
	State(ctx context.Context) (QueueState, error)
}

// QueueState is what a queue's consumer holds.
type QueueState struct {
	// Waiting counts messages never delivered, Held those delivered or put back and not settled.
	Waiting, Held uint64
	// HeldMax bounds Held; -1 is no bound.
	HeldMax int
}

// Stored is a message in a stream.
type Stored struct {
	Message
	// Sequence is the message's place in its stream, from 1.
	Sequence uint64
	// At is when it was stored.
	At time.Time
}

// Log reads a stream by place, without taking from it.
type Log interface {
	// Next gives the first message at or after a place whose subject matches; fault.NotFound when there is none.
	Next(ctx context.Context, subject string, from uint64) (Stored, error)
	// Delete removes a message; fault.NotFound when it is not there.
	Delete(ctx context.Context, sequence uint64) error
	// State counts the stream.
	State(ctx context.Context) (LogState, error)
}

// LogState is how full a stream is.
type LogState struct {
	Messages uint64
	Bytes    uint64
	// First and Last are places; Last is that of the newest message ever stored.
	First, Last uint64
}

// Endpoint is one subject that a service answers on.
type Endpoint struct {
	// Name is one word, for operators' tools.
	Name string
	// Subject may have wildcards.
	Subject string
	// Everywhere makes every instance of the service get each request; otherwise one of them does.
	Everywhere bool
	// Handle answers. Its error goes to the asker with its kind and hint. Calls run side by side, as many as
	// Service.ConcurrentMax allows; the context ends when the service stops.
	Handle func(ctx context.Context, request Message) (Message, error)
}

// IDBytesMax bounds message ids.
const IDBytesMax = 256

// CheckHeader refuses headers and ids that an adapter could not carry, and headers that NATS gives a meaning.
func CheckHeader(m Message) error {
	for key, value := range m.Header {
		if key == "" || strings.ContainsAny(key, " :\r\n") || strings.ContainsAny(value, "\r\n") || ReservedHeader(key) ||
			value != strings.TrimSpace(value) {
			return fault.New(fault.Invalid, "header %.100q of a message to %s is not allowed", key, m.Subject)
		}
	}
	if len(m.ID) > IDBytesMax || strings.ContainsAny(m.ID, "\r\n") || m.ID != strings.TrimSpace(m.ID) {
		return fault.New(fault.Invalid, "message to %s: id %.300q is not allowed", m.Subject, m.ID)
	}
	return nil
}

// ReservedHeader tells headers that NATS gives a meaning.
func ReservedHeader(key string) bool { return len(key) >= 5 && strings.EqualFold(key[:5], "Nats-") }
