package job

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// ErrName is wrapped when a text is not a legal name of its kind.
var ErrName = errors.New("illegal name")

// ID names a job: a UUIDv7, so that names sort by the time of submission.
type ID string

// NewID makes a name that was never used before.
func NewID() (ID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make job id: %w", err)
	}
	return ID(id.String()), nil
}

// ParseID checks a job's name.
func ParseID(text string) (ID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return "", fmt.Errorf("%w: job id %q is not a lower-case UUID", ErrName, clip(text))
	}
	return ID(text), nil
}

// Names are parts of subjects, keys, file names and metrics, so they are short and plain.
var plain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Tenant, Node and Device are names of 1 … 32 characters: lower-case letters, digits and inner hyphens.
type (
	// Tenant is whom a job belongs to.
	Tenant string
	// Node is one host of the rack.
	Node string
	// Device is one accelerator, or the CPU, of a node.
	Device string
)

// MainTenant is the tenant of clients that name none.
const MainTenant Tenant = "main"

// ParseTenant checks a tenant's name.
func ParseTenant(text string) (Tenant, error) { return parseName[Tenant]("tenant", text) }

// ParseNode checks a node's name.
func ParseNode(text string) (Node, error) { return parseName[Node]("node", text) }

// ParseDevice checks a device's name.
func ParseDevice(text string) (Device, error) { return parseName[Device]("device", text) }

func parseName[T ~string](what, text string) (T, error) {
	if !plain.MatchString(text) {
		return "", fmt.Errorf("%w: %s %q: use 1 to 32 lower-case letters, digits and inner hyphens",
			ErrName, what, clip(text))
	}
	return T(text), nil
}

// KeyBytesMax bounds a client's idempotency key.
const KeyBytesMax = 256

// ParseKey checks a client's idempotency key: up to 256 bytes of printable ASCII; "" is none.
func ParseKey(text string) (string, error) {
	if len(text) > KeyBytesMax || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", fmt.Errorf("%w: key %q: use up to %d characters of printable ASCII", ErrName, clip(text), KeyBytesMax)
	}
	return text, nil
}

// Attempt names one try of one partition's whole path.
type Attempt struct {
	Job       ID     `json:"job"`
	Partition int    `json:"partition"`
	Fence     uint64 `json:"fence"`
}

// String is <job>.<partition>.<fence>: legal in file names, subjects and keys.
func (a Attempt) String() string {
	return string(a.Job) + "." + strconv.Itoa(a.Partition) + "." + strconv.FormatUint(a.Fence, 10)
}

// PartitionsMax bounds a job: twice what there is (126 for a non-interactive 32 GiB sector). With more its record would
// not fit into a message.
const PartitionsMax = 256

// ParseAttempt reads what String gives.
func ParseAttempt(text string) (Attempt, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Attempt{}, fmt.Errorf("%w: attempt %q is not job.partition.fence", ErrName, clip(text))
	}
	id, err := ParseID(parts[0])
	if err != nil {
		return Attempt{}, fmt.Errorf("attempt %q: %w", clip(text), err)
	}
	partition, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil || partition >= PartitionsMax {
		return Attempt{}, fmt.Errorf("%w: attempt %q: partition", ErrName, clip(text))
	}
	fence, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || fence == 0 {
		return Attempt{}, fmt.Errorf("%w: attempt %q: fence", ErrName, clip(text))
	}
	a := Attempt{Job: id, Partition: int(partition), Fence: fence}
	if a.String() != text {
		return Attempt{}, fmt.Errorf("%w: attempt %q is not in its shortest form", ErrName, clip(text))
	}
	return a, nil
}

func clip(text string) string {
	if len(text) > 64 {
		return text[:64] + "…"
	}
	return text
}
