package bus

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// Retention says what ends a message in a stream.
type Retention string

const (
	// WorkQueue: its acknowledgement. A full stream refuses. One consumer per subject.
	WorkQueue Retention = "queue"
	// Limits: age and size. Whether a full stream refuses or drops the oldest is the stream's own setting.
	Limits Retention = "limits"
)

// Stream is a stored sequence of messages. Limits are 0 for none, but BytesMax should be set everywhere: it is what the
// server sets aside.
type Stream struct {
	Name      string
	Subjects  []string
	Retention Retention
	// BytesMax and MessagesMax bound the stream, MessageBytesMax one message.
	BytesMax        bytesize.Bytes
	MessagesMax     int64
	MessageBytesMax bytesize.Bytes
	// AgeMax ends messages of streams with Limits.
	AgeMax time.Duration
	// DropOldest makes a full stream with Limits drop its oldest messages instead of refusing new ones.
	DropOldest bool
	// DuplicateWindow is how long message IDs are remembered. 0 is DuplicateWindowDefault.
	DuplicateWindow time.Duration
}

// Bucket is a KV bucket. It keeps one value per key.
type Bucket struct {
	Name          string
	BytesMax      bytesize.Bytes
	ValueBytesMax bytesize.Bytes
}

// ObjectBucket is a bucket of objects.
type ObjectBucket struct {
	Name     string
	BytesMax bytesize.Bytes
}

// Topology is what must be there.
type Topology struct {
	Streams []Stream
	Buckets []Bucket
	Objects []ObjectBucket
	// Replicas is on how many servers each is kept: 1, 3 or 5. 0 is 1.
	Replicas int
}

// Consumer is a durable reader of a work queue. All who use one share its messages; it outlives them.
type Consumer struct {
	// Stream is the stream's name, Name the consumer's: letters, digits, - and _.
	Stream, Name string
	// Subject selects messages; no other consumer of the stream may match any of them.
	Subject string
	// AckWait is how long a delivered message waits for a word. 0 is AckWaitDefault.
	AckWait time.Duration
	// HeldMax bounds messages delivered or put back and not settled; when they reach it nothing more is given out. 0 is
	// no bound, so that messages put back with a delay hold nobody up.
	HeldMax int
	// Existing opens what somebody else makes, with that one's ack wait: while it is not there, Queue and Fetch give
	// fault.NotFound, and fault.Conflict if it is of other messages. Otherwise opening makes it.
	Existing bool
}

// Fails tells errors of opening the consumer that waiting does not mend: Fetch gives them back.
func (c *Consumer) Fails(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid:
		return true
	case fault.NotFound, fault.Conflict:
		return c.Existing
	default:
		return false
	}
}

// Hints of adapters.
const (
	HintNotSetUp = "streams are made by a coordinator at its start; is one running?"
	HintNotMade  = "a coordinator makes it when it hears of the worker; is one running?"
)

// Defaults.
const (
	AckWaitDefault         = 30 * time.Second
	DuplicateWindowDefault = 2 * time.Minute
)

var (
	nameForm    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	subjectForm = regexp.MustCompile(`^([!-)+-\-/-=?-~]+|\*)(\.([!-)+-\-/-=?-~]+|\*))*(\.>)?$|^>$`)
	keyForm     = regexp.MustCompile(`^[A-Za-z0-9_=/-]+(\.[A-Za-z0-9_=/-]+)*$`)
)

// NameMax bounds object names, bytes.
const NameMax = 512

// CheckName refuses names of streams, buckets, consumers and services that an adapter could misread.
func CheckName(what, name string) error {
	if !nameForm.MatchString(name) {
		return fault.New(fault.Invalid, "%s %q: a name is 1 to 128 letters, digits, - or _", what, name)
	}
	return nil
}

// CheckSubject refuses malformed subjects, and those with wildcards unless they are allowed.
func CheckSubject(subject string, wildcards bool) error {
	if len(subject) > 512 || !subjectForm.MatchString(subject) {
		return fault.New(fault.Invalid, "subject %.600q is malformed", subject)
	}
	if !wildcards && (strings.Contains(subject, "*") || strings.Contains(subject, ">")) {
		return fault.New(fault.Invalid, "subject %q: no wildcards here", subject)
	}
	return nil
}

// CheckKey refuses malformed keys.
func CheckKey(key string) error {
	if len(key) > 512 || !keyForm.MatchString(key) {
		return fault.New(fault.Invalid, "key %.600q is malformed", key)
	}
	return nil
}

// CheckPrefix refuses prefixes of keys that do not end at a dot.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if !strings.HasSuffix(prefix, ".") {
		return fault.New(fault.Invalid, "key prefix %.600q must be empty or end with a dot", prefix)
	}
	return CheckKey(prefix[:len(prefix)-1])
}

// CheckObjectName refuses names of objects that are empty, long or not printable.
func CheckObjectName(name string) error {
	if name == "" || len(name) > NameMax {
		return fault.New(fault.Invalid, "object name of %d bytes: must be 1 to %d", len(name), NameMax)
	}
	for _, r := range name {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return fault.New(fault.Invalid, "object name %q has a character that is not allowed", name)
		}
	}
	return nil
}

// Match tells whether a subject matches a pattern: * stands for one word, > at the end for one or more.
func Match(pattern, subject string) bool {
	for {
		p, pRest, pMore := strings.Cut(pattern, ".")
		if p == ">" {
			return subject != ""
		}
		s, sRest, sMore := strings.Cut(subject, ".")
		if p != "*" && p != s || pMore != sMore {
			return false
		}
		if !pMore {
			return true
		}
		pattern, subject = pRest, sRest
	}
}

// Validate reports all that is wrong with a topology.
func (t *Topology) Validate() error {
	var errs []error
	if t.Replicas != 0 && t.Replicas != 1 && t.Replicas != 3 && t.Replicas != 5 {
		errs = append(errs, fmt.Errorf("replicas must be 1, 3 or 5, not %d", t.Replicas))
	}
	for i := range t.Streams {
		errs = append(errs, t.Streams[i].validate())
	}
	for _, b := range t.Buckets {
		errs = append(errs, CheckName("bucket", b.Name), checkLimits(b.Name, b.BytesMax, b.ValueBytesMax))
	}
	for _, b := range t.Objects {
		errs = append(errs, CheckName("object bucket", b.Name), checkLimits(b.Name, b.BytesMax))
	}
	return fault.As(fault.Invalid, errors.Join(errs...))
}

func (s *Stream) validate() error {
	errs := []error{CheckName("stream", s.Name), checkLimits(s.Name, s.BytesMax, s.MessageBytesMax)}
	if len(s.Subjects) == 0 {
		errs = append(errs, fmt.Errorf("stream %s: no subjects", s.Name))
	}
	for _, subject := range s.Subjects {
		errs = append(errs, CheckSubject(subject, true))
	}
	if s.Retention != WorkQueue && s.Retention != Limits {
		errs = append(errs, fmt.Errorf("stream %s: retention %q is unknown", s.Name, s.Retention))
	}
	if s.Retention == WorkQueue && (s.DropOldest || s.AgeMax != 0) {
		errs = append(errs, fmt.Errorf("stream %s: a queue must not drop messages (drop oldest, greatest age)", s.Name))
	}
	if s.MessagesMax < 0 || s.AgeMax < 0 || s.DuplicateWindow < 0 {
		errs = append(errs, fmt.Errorf("stream %s: a limit is negative", s.Name))
	}
	return errors.Join(errs...)
}

func checkLimits(name string, limits ...bytesize.Bytes) error {
	for _, l := range limits {
		if l < 0 {
			return fmt.Errorf("%s: a limit is negative", name)
		}
	}
	return nil
}

// Validate reports all that is wrong with a consumer.
func (c *Consumer) Validate() error {
	errs := []error{CheckName("stream", c.Stream), CheckName("consumer", c.Name), CheckSubject(c.Subject, true)}
	if c.AckWait != 0 && c.AckWait < 10*time.Millisecond {
		errs = append(errs, fmt.Errorf("consumer %s: ack wait of %s is under 10ms", c.Name, c.AckWait))
	}
	if c.HeldMax < 0 {
		errs = append(errs, fmt.Errorf("consumer %s: held max is negative", c.Name))
	}
	return fault.As(fault.Invalid, errors.Join(errs...))
}
