package bus

import (
	"context"
	"io"
	"time"
)

// MessageBytesMax bounds a message's body, as NATS does by default.
const MessageBytesMax = 1 << 20

// Message is what is sent.
type Message struct {
	Subject string
	// ID makes publishing idempotent within the stream's duplicate window; "" for none.
	ID     string
	Header map[string]string
	Data   []byte
}

// Bus is a connection.
type Bus interface {
	// Setup creates what the topology names, or changes it; doing it again changes nothing. Its errors say which stream
	// or bucket wants what, and what the server allows.
	Setup(ctx context.Context, t Topology) error

	// Publish stores a message in a stream. Duplicate tells that the stream had this id already. It may be called again
	// with the same id after any error.
	Publish(ctx context.Context, m Message) (duplicate bool, err error)
	// Queue opens the durable consumer of one subject of a work-queue stream, and creates it when it is not there.
	Queue(ctx context.Context, stream, subject string) (Queue, error)
	// Purge deletes the messages of a stream that the filter selects, and tells how many. The filter sees each waiting
	// message once; messages that are being worked on count too.
	Purge(ctx context.Context, stream string, drop func(Message) bool) (int, error)
	// Replay gives the messages of a limits stream under a subject filter from the beginning, or those that were stored
	// at or after since, then further ones as they come, until ctx ends or handle returns false.
	Replay(ctx context.Context, stream, filter string, since time.Time, handle func(Message) bool) error

	// Send sends at most once.
	Send(ctx context.Context, m Message) error
	// Subscribe calls handle for each message of a subject (with wildcards), one at a time. What comes faster than handle
	// returns is kept up to a bound and then dropped and counted.
	Subscribe(subject string, handle func(Message)) (Subscription, error)
	// Request asks and waits for the answer until ctx ends. It is fault.Transient when nobody serves the subject.
	Request(ctx context.Context, m Message) (Message, error)
	// Serve answers requests.
	Serve(s Service) (Subscription, error)

	KV(ctx context.Context, bucket string) (KV, error)
	Objects(ctx context.Context, bucket string) (Objects, error)

	// Connected tells whether the server is there now; OnChange is called at each change, until the bus is closed.
	Connected() bool
	OnChange(call func(connected bool))
	// Close ends subscriptions and the connection.
	Close() error
}

// Subscription can be stopped; Stop waits for the handler that runs.
type Subscription interface {
	Stop() error
	// Dropped is how many messages were dropped because the handler was too slow.
	Dropped() int64
}

// Service is a set of endpoints under one name, which `nats micro` lists.
type Service struct {
	Name        string
	Version     string // semantic
	Description string
	Endpoints   []Endpoint
}

// Endpoint answers the requests of one subject (with wildcards).
type Endpoint struct {
	Name    string
	Subject string
	// Queue is the name of the group of which one member gets each request; "" when every server answers.
	Queue string
	// Workers is how many requests are handled at once; less than 1 means 1.
	Workers int
	Handle  func(ctx context.Context, m Message) []byte
}

// Queue gives the messages of one subject of a work queue.
type Queue interface {
	// Fetch waits for one message until ctx ends. It survives reconnects and re-creates a consumer that was deleted.
	Fetch(ctx context.Context) (Delivery, error)
	// Close stops fetching; the durable consumer stays.
	Close() error
}

// Delivery is one message in somebody's hands. Exactly one of Ack, Nak and Term settles it.
type Delivery interface {
	Message() Message
	// Count is how often it has been delivered, 1 at first.
	Count() int
	// Ack removes it and waits until the server has done so.
	Ack(ctx context.Context) error
	// Nak gives it back, to be delivered again after the pause.
	Nak(ctx context.Context, pause time.Duration) error
	// Term removes it for good.
	Term(ctx context.Context, reason string) error
	// InProgress renews the ack wait.
	InProgress(ctx context.Context) error
}

// Entry is a key with its value.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
	At       time.Time
	Deleted  bool
}

// KV is a bucket of keys with revisions.
type KV interface {
	// Get fails with fault.NotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// Create stores a key that is not there; fault.Conflict when it is.
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update changes a key that has the revision; fault.Conflict when it has another.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete removes a key that has the revision (0: whichever); fault.Conflict when it has another.
	Delete(ctx context.Context, key string, revision uint64) error
	// Keys lists the keys with a prefix.
	Keys(ctx context.Context, prefix string) ([]string, error)
	// Watch calls handle for each key with the prefix as it is now, once with nil when that is done, and then for each
	// change, one at a time, until ctx ends. After a reconnect it goes on without a gap.
	Watch(ctx context.Context, prefix string, handle func(*Entry)) error
}

// ObjectInfo describes an object.
type ObjectInfo struct {
	Name   string
	Bytes  int64
	SHA256 string // lower-case hex
	At     time.Time
}

// Objects is a bucket of large values.
type Objects interface {
	// Put stores all of r under the name, in place of what was there.
	Put(ctx context.Context, name string, r io.Reader) (ObjectInfo, error)
	// Get reads an object; the reader fails with fault.Corrupt at its end when the bytes are not those of the digest.
	// It fails with fault.NotFound.
	Get(ctx context.Context, name string) (io.ReadCloser, ObjectInfo, error)
	// Delete removes an object; one that is not there is no error.
	Delete(ctx context.Context, name string) error
	// List describes all objects.
	List(ctx context.Context) ([]ObjectInfo, error)
	// Sweep removes what interrupted uploads older than age have left, and tells how many bytes that were.
	Sweep(ctx context.Context, age time.Duration) (int64, error)
}
