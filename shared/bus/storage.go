package bus

import (
	"context"
	"io"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// Entry is a key's value at one revision.
type Entry struct {
	Key   string
	Value []byte
	// Revision grows with every write in the bucket.
	Revision uint64
	// Deleted tells that the key is gone; Value is then nil, and Revision that of the deletion or, when the deletion
	// itself was missed, the last one seen.
	Deleted bool
	// At is when it was written; zero if the deletion itself was missed.
	At time.Time
}

// KV is a bucket of small records. Keys are words separated by dots.
type KV interface {
	// Get gives the present value; fault.NotFound when there is none.
	Get(ctx context.Context, key string) (Entry, error)
	// Create writes a key that is not there; fault.Conflict when it is.
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update writes a key whose present revision is the one given; else fault.Conflict.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete deletes a key whose present revision is the one given (0: any); else fault.Conflict. A key that is not
	// there is fault.NotFound.
	Delete(ctx context.Context, key string, revision uint64) error
	// Keys lists the keys that begin with a prefix, sorted. A prefix is "" or ends with a dot.
	Keys(ctx context.Context, prefix string) ([]string, error)
	// Watch calls see with the present values of the keys that begin with a prefix, then ready, then see with each
	// change, one call at a time. It goes on through outages: afterwards see is called with what differs from what it
	// told before, also for keys deleted meanwhile, and then ready again. It ends with stop, which waits for a running
	// call (so neither function may call it), or with ctx. The deletion of a key is told if the key was seen before or
	// is deleted while watching.
	Watch(ctx context.Context, prefix string, see func(Entry), ready func()) (stop func(), err error)
}

// ObjectInfo describes an object.
type ObjectInfo struct {
	Name   string
	Bytes  bytesize.Bytes
	SHA256 string // hex, lower case
	// Modified is when it was put, by the server's clock.
	Modified time.Time
	Meta     map[string]string
}

// Objects is a bucket of files of any size.
type Objects interface {
	// Put stores what a reader gives, over an older object of the name. Nothing of a failed put is visible; its pieces
	// are removed at once where the server can be asked, otherwise by Sweep.
	Put(ctx context.Context, name string, r io.Reader, meta map[string]string) (ObjectInfo, error)
	// Info tells about an object; fault.NotFound when there is none.
	Info(ctx context.Context, name string) (ObjectInfo, error)
	// Get opens an object. One of more than bytesMax is fault.Invalid, without reading it. The reader ends with
	// fault.Corrupt instead of io.EOF if the bytes are not those put, so nothing may be believed before io.EOF. It must
	// be closed; ctx holds for all of reading.
	Get(ctx context.Context, name string, bytesMax int64) (io.ReadCloser, ObjectInfo, error)
	// Delete removes an object; fault.NotFound when there is none.
	Delete(ctx context.Context, name string) error
	// List gives all objects, sorted by name.
	List(ctx context.Context) ([]ObjectInfo, error)
	// Usage counts the bucket, with what no object owns.
	Usage(ctx context.Context) (ObjectUsage, error)
	// Sweep removes pieces that no object owns (uploads that broke off, deleted or overwritten objects) and that were
	// written before a time; it gives the bytes freed, about.
	Sweep(ctx context.Context, before time.Time) (bytesize.Bytes, error)
}

// ObjectUsage is how full a bucket of objects is.
type ObjectUsage struct {
	// Stored is what the store holds for the bucket, Live the objects' own bytes, Partial those of pieces that no object
	// owns (uploads under way count here).
	Stored, Live, Partial bytesize.Bytes
}
