// Package bus is the port through which the programs of the rack talk: work queues, requests, plain messages, keys and
// objects. natsbus is the adapter to NATS JetStream, membus the fake, bustest the suite that both pass.
//
//	Publish ─► stream ─► Queue.Fetch ─► Delivery: Ack | Nak | Term, InProgress meanwhile
//
// A delivery is not ownership: the server forgets an ack that was late, and gives the message to the next one. Who owns
// an attempt is decided by its fence (package job), and messages carry ids so that publishing again does no harm.
//
// Limits: a message is at most [MessageBytesMax]; a queue gives one message per Fetch, so that nobody holds work that he
// has no slot for. Errors are classified by package fault: Transient when the server is away or not set up yet, Exhausted
// when a queue or the store is full, NotFound, Conflict for keys that changed.
package bus
