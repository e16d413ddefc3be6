package c1

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

const (
	// InputBytesMax is the limit on the length of a C1 input that Decode applies by default. The largest legal one, a
	// non-interactive 64 GiB output in an envelope, is 0.66 GB long.
	InputBytesMax = 700 << 20
	// warningsMax bounds the warnings that are kept; more are only counted.
	warningsMax = 16
	// sectorNumberMax is the largest sector number of the chain.
	sectorNumberMax = math.MaxInt64
)

// Input is a decoded C1 input.
type Input struct {
	// Output is the L1 part.
	Output *Output
	// Envelope is what the L2 envelope says beside it, nil for plain L1.
	Envelope *Envelope
	// Warnings name the keys that were skipped because they are unknown, the first 16 of them; WarningsDropped counts
	// the others. They are one line each and harmless to print.
	Warnings        []string
	WarningsDropped int
}

// Envelope holds the numbers of an L2 envelope.
type Envelope struct {
	// SectorNumber is below 2^63.
	SectorNumber uint64
	// SectorSize is a published size, the one of the registered proof.
	SectorSize sdr.SectorSize
}

// Decode reads one C1 input, L1 JSON or the L2 envelope, to the end of the stream. bytesMax bounds its length in bytes,
// of the envelope if there is one; 0 stands for InputBytesMax. What is refused comes back as an *InputError; errors of
// the reader are wrapped. A decoded output has the counts of its registered proof and integers in range, but its values
// are unchecked: see Check.
func Decode(r io.Reader, bytesMax int64) (*Input, error) {
	if bytesMax == 0 {
		bytesMax = InputBytesMax
	}
	d := &decoder{input: &Input{Output: &Output{}}, partition: -1, challenge: -1}
	d.scanner = newScanner(r, bytesMax, d.where)
	d.begin()
	d.top()
	d.finish()
	if d.err != nil {
		return nil, d.err
	}
	return d.input, nil
}

// decoder walks the text and fills the input. The embedded scanner's sticky error ends every loop.
type decoder struct {
	*scanner
	input *Input

	// The place of an error: partition and challenge, -1 outside; and the keys and indices on the way, of which those
	// from fieldStart on are named.
	partition, challenge int
	path                 []step
	fieldStart           int
	inPhase1Out          bool

	// What is known so far, to be compared as soon as both sides are: the registered proof, and the size that the tag
	// of vanilla_proofs names with the place of the proofs.
	proofKnown bool
	tagSize    sdr.SectorSize
	tagOffset  int64
	sizeOffset int64
	shape      shape

	hashes   arena[[32]byte]
	elements arena[PathElement]
}

// step is one key, or one index when the key is empty.
type step struct {
	key   string
	index int
}

// where is the place of the decoder without the offset.
func (d *decoder) where() InputError {
	var field strings.Builder
	for i, s := range d.path[min(d.fieldStart, len(d.path)):] {
		switch {
		case s.key == "":
			field.WriteString("[" + strconv.Itoa(s.index) + "]")
		case i > 0:
			field.WriteString("." + s.key)
		default:
			field.WriteString(s.key)
		}
	}
	return InputError{
		Partition: d.partition, Challenge: d.challenge, Field: field.String(), InPhase1Out: d.inPhase1Out,
	}
}

// members reads an object. For every key that is one of names, take is called with its number, to read the value; it
// may answer false instead, without reading anything, to have the key treated as unknown. Unknown keys are skipped with
// a warning. The result has a bit for every key that was taken.
func (d *decoder) members(what string, names []string, take func(i int) bool) (seen uint32) {
	if got := d.peek(); got != '{' {
		d.unexpected(got, what)
		return 0
	}
	d.pos++
	expected := 0
	for first := true; d.next('}', first, "the object"); first = false {
		start := d.offset()
		key := d.text("a key")
		i := findKey(names, expected, key)
		if i >= 0 && seen>>i&1 == 1 {
			d.failAt(start, "duplicate key %s", names[i])
			return seen
		}
		var unknown string
		if i < 0 {
			unknown = string(key)
		}
		if d.expect(':', "after a key"); d.err != nil {
			return seen
		}
		if i >= 0 {
			d.path = append(d.path, step{key: names[i]})
			taken := take(i)
			d.path = d.path[:len(d.path)-1]
			if taken {
				seen |= 1 << i
				expected = i + 1
				continue
			}
			unknown = names[i]
		}
		d.warn(start, unknown, names)
		d.skipValue(0)
	}
	return seen
}

// findKey looks a key up, first at the place where it is expected; -1 if it is none of the names.
func findKey(names []string, expected int, key []byte) int {
	if expected < len(names) && names[expected] == string(key) {
		return expected
	}
	for i, name := range names {
		if name == string(key) {
			return i
		}
	}
	return -1
}

// warn notes a key that is skipped.
func (d *decoder) warn(offset int64, key string, names []string) {
	if len(d.input.Warnings) == warningsMax {
		d.input.WarningsDropped++
		return
	}
	place := d.where()
	place.Offset = offset
	place.Reason = "unknown key " + quoted(key) + " ignored"
	for _, name := range names {
		if name != key && strings.EqualFold(name, key) {
			place.Reason += ", it differs from " + name + " only in case"
		}
	}
	d.input.Warnings = append(d.input.Warnings, place.Error())
}

// object reads an object in which every one of names must occur once.
func (d *decoder) object(what string, names []string, take func(i int)) {
	seen := d.members(what, names, func(i int) bool {
		take(i)
		return true
	})
	d.demand(names, seen)
}

// demand fails unless every name has its bit.
func (d *decoder) demand(names []string, seen uint32) {
	for i, name := range names {
		if d.err == nil && seen>>i&1 == 0 {
			d.path = append(d.path, step{key: name})
			d.fail("missing key %s", name)
		}
	}
}

// list reads a list of exactly count elements, one call of take for each. Its error for the other lengths calls the
// elements what.
func (d *decoder) list(count int, what string, take func(i int)) {
	if got := d.peek(); got != '[' {
		d.unexpected(got, fmt.Sprintf("a list of %d %s", count, what))
		return
	}
	start := d.offset()
	d.pos++
	i := 0
	for ; d.next(']', i == 0, what); i++ {
		if i == count {
			d.fail("more than %d %s", count, what)
			return
		}
		d.path = append(d.path, step{index: i})
		take(i)
		d.path = d.path[:len(d.path)-1]
	}
	if d.err == nil && i != count {
		d.failAt(start, "%d %s, want %d", i, what, count)
	}
}

// arena hands out slices from larger blocks, which grow with what has been handed out, so that a short input cannot ask
// for much and a long one costs few allocations.
type arena[T any] struct {
	free []T
	used int
}

const arenaBlockMax = 8192

func (a *arena[T]) take(n int) []T {
	if len(a.free) < n {
		a.free = make([]T, max(n, min(a.used, arenaBlockMax)))
	}
	out := a.free[:n:n]
	a.free = a.free[n:]
	a.used += n
	return out
}
