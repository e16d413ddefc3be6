package redisledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// The stored forms are described in scripts/prelude.lua.

func decimal[N ~int64 | ~uint64 | ~int](n N) string {
	if n < 0 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatUint(uint64(n), 10)
}

func encodeAmounts(a ledger.Amounts) string {
	var parts []string
	for _, pool := range a.Pools() {
		if a[pool] != 0 {
			parts = append(parts, string(pool)+"="+decimal(a[pool]))
		}
	}
	return strings.Join(parts, ",")
}

func encodeKeys(keys []ledger.AssetKey) string {
	parts := make([]string, len(keys))
	for i, key := range keys {
		parts[i] = key.String()
	}
	return strings.Join(parts, ",")
}

func encodeTime(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return decimal(t.UnixMilli())
}

func encodeEntry(e *ledger.Entry) string {
	state, till := "L", e.LeaseUntil
	if e.Limbo {
		state, till = "X", e.LimboSince
	}
	return strings.Join([]string{
		decimal(e.Attempt.Fence), state, encodeTime(e.Since), encodeTime(till), encodeAmounts(e.Amounts),
		encodeKeys(e.Assets),
	}, "|")
}

// Names of fields. That of a partition is what the texts of its attempts begin with.

func fieldOfPartition(a job.Attempt) string {
	return "e:" + string(a.Job) + "." + strconv.Itoa(a.Partition) + "."
}

func fieldOfAsset(key ledger.AssetKey) string { return "a:" + key.String() }

func encodeAsset(a *ledger.AssetEntry) string {
	return strings.Join([]string{string(a.Class), decimal(a.Bytes), decimal(a.Users), encodeTime(a.UsedAt)}, "|")
}

// encodeBook gives the fields of a book with their texts.
func encodeBook(b *ledger.NodeBook) []any {
	book := []any{
		"gate", strings.Join([]string{decimal(b.Term), b.Epoch, b.Run}, "|"),
		"count", encodeCount(b),
		"boot", b.Boot, "instance", b.Instance, "seq", decimal(b.Seq),
	}
	for _, pool := range b.Capacity.Pools() {
		book = append(book, "cap:"+string(pool), decimal(b.Capacity[pool]))
	}
	for _, pool := range b.Used.Pools() {
		book = append(book, "used:"+string(pool), decimal(b.Used[pool]))
	}
	var field string
	for i := range b.Entries { // those of a partition stand side by side
		e := &b.Entries[i]
		if next := fieldOfPartition(e.Attempt); next != field {
			field = next
			book = append(book, field, encodeEntry(e))
			continue
		}
		book[len(book)-1] = book[len(book)-1].(string) + ";" + encodeEntry(e)
	}
	for i := range b.Assets {
		book = append(book, fieldOfAsset(b.Assets[i].Key()), encodeAsset(&b.Assets[i]))
	}
	return book
}

// encodeCount gives the field that all changes write.
func encodeCount(b *ledger.NodeBook) string {
	parts := []string{
		decimal(b.Ops), encodeTime(b.WrittenAt), decimal(len(b.Entries)), decimal(len(b.Assets)), "0",
	}
	if b.Ahead > 0 {
		parts = append(parts, decimal(b.Ahead.Milliseconds()))
	}
	return strings.Join(parts, "|")
}

// decoder reads stored texts; its error is the first one.
type decoder struct{ err error }

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fault.New(fault.Corrupt, format, args...)
	}
}

func (d *decoder) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > uint64(bytesize.Max) {
		d.fail("stored number %.40q is not one below 2^53", text)
		return 0
	}
	return n
}

func (d *decoder) time(text string) time.Time {
	if n := d.number(text); n != 0 {
		return time.UnixMilli(int64(n)).UTC()
	}
	return time.Time{}
}

func (d *decoder) duration(text string) time.Duration {
	n := d.number(text)
	if n > uint64(math.MaxInt64/time.Millisecond) {
		d.fail("stored duration %.40q is too long", text)
		return 0
	}
	return time.Duration(n) * time.Millisecond //nolint:gosec // just checked
}

func (d *decoder) attempt(text string) job.Attempt {
	a, err := job.ParseAttempt(text)
	if err != nil {
		d.fail("stored attempt: %w", err)
	}
	return a
}

func (d *decoder) pool(text string) ledger.Pool {
	if err := ledger.Pool(text).Check(); err != nil {
		d.fail("stored pool: %w", err)
	}
	return ledger.Pool(text)
}

func (d *decoder) amounts(text string) ledger.Amounts {
	a := ledger.Amounts{}
	if text == "" {
		return a
	}
	for part := range strings.SplitSeq(text, ",") {
		pool, amount, found := strings.Cut(part, "=")
		if !found {
			d.fail("stored amount %.80q has no '='", part)
		}
		a[d.pool(pool)] = bytesize.Bytes(d.number(amount))
	}
	return a
}

func (d *decoder) key(text string) ledger.AssetKey {
	name, pool, found := strings.Cut(text, "@")
	if !found {
		d.fail("stored asset %.80q has no '@'", text)
	}
	return ledger.AssetKey{Name: name, Pool: d.pool(pool)}
}

func (d *decoder) fields(text string, count int) []string {
	parts := strings.Split(text, "|")
	if len(parts) != count {
		d.fail("stored text %.80q has %d fields in place of %d", text, len(parts), count)
		return make([]string, count)
	}
	return parts
}

// entries reads those of a partition. Leases end no sooner than rearmed.
func (d *decoder) entries(partition, text string, rearmed time.Time) []ledger.Entry {
	var entries []ledger.Entry
	for one := range strings.SplitSeq(text, ";") {
		f := d.fields(one, 6)
		e := ledger.Entry{
			Attempt: d.attempt(partition + f[0]), Limbo: f[1] == "X", Since: d.time(f[2]), Amounts: d.amounts(f[4]),
		}
		if till := d.time(f[3]); e.Limbo {
			e.LimboSince = till
		} else if e.LeaseUntil = till; till.Before(rearmed) {
			e.LeaseUntil = rearmed
		}
		if f[5] != "" {
			for key := range strings.SplitSeq(f[5], ",") {
				e.Assets = append(e.Assets, d.key(key))
			}
		}
		entries = append(entries, e)
	}
	return entries
}

func (d *decoder) asset(name, text string) ledger.AssetEntry {
	f, key := d.fields(text, 4), d.key(name)
	return ledger.AssetEntry{
		Asset: ledger.Asset{
			Name: key.Name, Pool: key.Pool, Class: ledger.Class(f[0]), Bytes: bytesize.Bytes(d.number(f[1])),
		},
		Users: int(d.number(f[2])), UsedAt: d.time(f[3]),
	}
}

// pairs checks that a reply is a list of pairs of texts.
func (d *decoder) pairs(reply any) [][2]string {
	list, ok := reply.([]any)
	if !ok || len(list)%2 != 0 {
		d.fail("reply %T is no list of pairs", reply)
		return nil
	}
	pairs := make([][2]string, 0, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		name, ok := list[i].(string)
		value, also := list[i+1].(string)
		if !ok || !also {
			d.fail("reply has a %T and a %T in place of texts", list[i], list[i+1])
			return nil
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs
}

// stored is a dump of a book.
type stored struct {
	clock time.Time
	// count is that field as it is stored, "" when there is none.
	count  string
	fields [][2]string
}

// readDump takes apart what dump() gives.
func readDump(node job.Node, reply any) (stored, error) {
	var d decoder
	parts, ok := reply.([]any)
	if !ok || len(parts) != 2 {
		return stored{}, fault.New(fault.Corrupt, "read the book of %s: the reply is no dump", node)
	}
	clock, _ := parts[0].(string)
	s := stored{clock: d.time(clock), fields: d.pairs(parts[1])}
	for _, f := range s.fields {
		if f[0] == "count" {
			s.count = f[1]
		}
	}
	return s, d.err
}

// book decodes a dump; it is nil for a node without a book. run is the present life of the store.
func (s stored) book(node job.Node, run string, seen uint64) (*ledger.NodeBook, error) {
	var d decoder
	b := &ledger.NodeBook{Node: node, Capacity: ledger.Amounts{}, Used: ledger.Amounts{}}
	count := []string{"0", "0", "-", "-", "0"}
	switch strings.Count(s.count, "|") {
	case len(count):
		count = d.fields(s.count, len(count)+1)
		b.Ahead = d.duration(count[5])
	default:
		if s.count != "" {
			count = d.fields(s.count, len(count))
		}
	}
	b.Ops, b.WrittenAt = d.number(count[0]), d.time(count[1])
	b.Tick(s.clock)
	rearmed := d.time(count[4])
	for _, f := range s.fields {
		d.field(b, f[0], f[1], rearmed)
	}
	if len(s.fields) == 0 || b.Epoch == "" {
		return nil, d.err
	}
	if d.err != nil {
		return nil, fmt.Errorf("read the book of %s: %w", node, d.err)
	}
	slices.SortFunc(b.Entries, func(x, y ledger.Entry) int { return compareAttempts(x.Attempt, y.Attempt) })
	slices.SortFunc(b.Assets, func(x, y ledger.AssetEntry) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Pool, y.Pool))
	})
	switch {
	case b.Run != run:
		b.Closed = ledger.ClosedRestarted
	case b.Ops < seen:
		b.Closed = ledger.ClosedRolledBack
	case decimal(len(b.Entries)) != count[2] || decimal(len(b.Assets)) != count[3]:
		b.Closed = ledger.ClosedDamaged
	}
	return b, nil
}

// field takes one field of the book.
func (d *decoder) field(b *ledger.NodeBook, name, value string, rearmed time.Time) {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "gate":
		f := d.fields(value, 3)
		b.Term, b.Epoch, b.Run = d.number(f[0]), f[1], f[2]
	case "boot":
		b.Boot = value
	case "instance":
		b.Instance = value
	case "seq":
		b.Seq = d.number(value)
	case "cap":
		b.Capacity[d.pool(rest)] = bytesize.Bytes(d.number(value))
	case "used":
		if amount := bytesize.Bytes(d.number(value)); amount != 0 {
			b.Used[d.pool(rest)] = amount
		}
	case "e":
		b.Entries = append(b.Entries, d.entries(rest, value, rearmed)...)
	case "a":
		b.Assets = append(b.Assets, d.asset(rest, value))
	}
}

func compareAttempts(a, b job.Attempt) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Fence, b.Fence))
}
