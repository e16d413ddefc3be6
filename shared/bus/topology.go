package bus

import (
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// Topology is what has to exist on the server.
type Topology struct {
	Streams []Stream
	KVs     []Bucket
	Objects []Bucket
	// Replicas is how many servers keep each of them: 1 or 3.
	Replicas int
}

// Stream is a named store of messages.
type Stream struct {
	Name     string
	Subjects []string
	// WorkQueue: a message is removed when it is acked, and a full stream refuses new ones. Otherwise messages stay
	// until a limit is reached, and the oldest go first.
	WorkQueue   bool
	BytesMax    bytesize.Bytes
	MessagesMax int64
	AgeMax      time.Duration // 0: for ever
	// DuplicateWindow is how long ids are remembered.
	DuplicateWindow time.Duration
	// AckWait is how long a delivery may be silent before the message is given to another.
	AckWait time.Duration
}

// Bucket is a named store of keys or objects.
type Bucket struct {
	Name     string
	BytesMax bytesize.Bytes
	AgeMax   time.Duration // 0: for ever
}
