// Package bus is the port through which programs of the rack talk: work queues, plain messages, requests, small records
// and objects. Adapters: natsbus (NATS JetStream) and membus (in this process, for tests and the simulation). One
// conformance suite, bustest, runs against both.
//
// The bus owns no truth but what is stored in its streams and buckets. A delivery is not ownership: an acknowledgement
// is by place in the stream, so that of a worker that was given up removes the message under its successor. Who may
// act is said by the fence (package job), never by who holds a message.
//
//	stored ──Fetch──> held ──Ack, Term──> gone
//	   ^                │
//	   └── Nak, or no word for one ack wait
//
// What is promised:
//   - A message whose Publish gave no error is stored, once per ID within the duplicate window, and stays until it is
//     acknowledged or terminated (queues) or its stream's limits end it (logs). A server that starts again knows the
//     IDs of what is still stored, not of what was removed: only the fence keeps work from being done twice.
//   - A publish that failed may still have been stored. Publishing it again is safe with the same ID only; a new try of
//     work therefore needs a new ID, else it is swallowed within the window even after the first was acknowledged.
//   - Nothing stored is dropped to make room in a queue: a full one refuses with fault.Exhausted.
//   - Queues and watches go on by themselves after an outage, for ever.
//
// Kinds of errors: fault.Transient the server is away or what is asked is not set up yet; fault.Exhausted a limit or
// the store is full; fault.NotFound no such key, object or bucket; fault.Conflict somebody else was faster;
// fault.Corrupt an object's bytes are not what was put; fault.Invalid a bad name, size or credential.
//
// What it does not do: encode bodies (package wire), decide on retries of work, or order messages between subjects.
package bus
