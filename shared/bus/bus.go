package bus

import "context"

// Bus is a connection. Methods may be called from several goroutines. A context without deadline gets the adapter's
// call timeout, setting up, listing and sweeping several times that, but for those that say they wait.
type Bus interface {
	// Setup makes the streams and buckets of a topology, or changes them to it, and may be called by everybody at every
	// start. Its errors name the stream, what it wants and what the server allows. Consumers that are there stay.
	Setup(ctx context.Context, topology Topology) error

	// Publish stores a message in the stream of its subject. Duplicate tells that a message with this ID was stored
	// before. Fault kinds: Exhausted (stream or store full; later it may fit), Transient (server away, or no stream set
	// up for the subject), Invalid (message over the size limit).
	Publish(ctx context.Context, message Message) (duplicate bool, err error)
	// Queue gives a consumer's queue. The consumer is made when it is not there, unless it is to be an existing one, and
	// never deleted by the bus.
	Queue(ctx context.Context, consumer Consumer) (Queue, error)
	// Log gives a stream to read.
	Log(ctx context.Context, stream string) (Log, error)

	// Send sends a plain message: at most once, to who listens now.
	Send(ctx context.Context, message Message) error
	// Subscribe calls a handler with plain messages, and those published to streams from now on, one at a time. Of
	// what it does not take in time all over PendingMax is dropped, newest first, and counted (Dropped). The handler
	// must not call stop, which waits for it.
	Subscribe(subject string, handle func(Message)) (stop func(), err error)
	// Request sends a message and gives the answer, or the error that the service gave. Nobody there is
	// fault.Transient.
	Request(ctx context.Context, message Message) (Message, error)
	// Serve answers requests until stop is called, which waits for handlers that run.
	Serve(service Service) (stop func(), err error)

	// KV opens a bucket of records; fault.NotFound when it is not set up.
	KV(ctx context.Context, bucket string) (KV, error)
	// Objects opens a bucket of objects; fault.NotFound when it is not set up.
	Objects(ctx context.Context, bucket string) (Objects, error)

	// Connected tells whether the server is there now.
	Connected() bool
	// Dropped counts plain messages dropped because handlers were slow, since the start.
	Dropped() uint64
	// Close ends everything. Subscriptions, services and watches stop; fetches end with fault.Cancelled.
	Close()
}

// Service is a named set of endpoints.
type Service struct {
	// Name is one word of letters, digits, - and _.
	Name string
	// Version is a semantic version, e.g. "0.1.0".
	Version string
	// Description is for operators' tools.
	Description string
	Endpoints   []Endpoint
	// ConcurrentMax bounds the requests that each endpoint handles at once; more wait, but hold up no other endpoint's.
	// 0 is 32.
	ConcurrentMax int
}

// ConcurrentMaxDefault is a service's bound when none is given.
const ConcurrentMaxDefault = 32

// Events are called by an adapter from goroutines of its own; they must return soon. Each may be nil.
type Events struct {
	// Connected is called when the connection is made, again too.
	Connected func()
	// Disconnected is called when it is lost. The error may be nil.
	Disconnected func(error)
	// Dropped is called when a subscription is too slow, with what it lost since the last call.
	Dropped func(subject string, count uint64)
	// Trouble is called with what went wrong in the background and heals itself, e.g. a consumer deleted by hand.
	Trouble func(error)
}
