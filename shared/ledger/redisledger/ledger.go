package redisledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Ledger implements [ledger.Ledger]. It is safe for concurrent use.
type Ledger struct {
	cfg      Config
	clock    string // the text of the clock's function
	rdb      *redis.Client
	life     atomic.Pointer[life]
	entering chan struct{} // holds the one that enters a life

	mu   sync.Mutex
	seen map[job.Node]uint64
}

var _ ledger.Ledger = (*Ledger)(nil)

// Open makes a client. It connects with the first call, and again whenever it must; Check tells whether the store can
// be worked with.
func Open(cfg Config) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open redis ledger: %w", err)
	}
	return &Ledger{
		cfg: cfg, clock: read("clock"), rdb: redis.NewClient(cfg.options()), entering: make(chan struct{}, 1),
		seen: map[job.Node]uint64{},
	}, nil
}

// Close implements [ledger.Ledger].
func (l *Ledger) Close() error {
	if err := l.rdb.Close(); err != nil {
		return fault.As(fault.Transient, fmt.Errorf("close redis ledger: %w", err))
	}
	return nil
}

// rounds bounds how often one call meets a new life of the store, or a book that others change meanwhile.
const rounds = 8

// reply is what a script answered, after its word.
type reply struct {
	run  *life
	word string
	rest []any
}

// text is the i-th part, "" when it is no text.
func (r reply) text(i int) string {
	if i >= len(r.rest) {
		return ""
	}
	text, _ := r.rest[i].(string)
	return text
}

// key is that of a node's book.
func (l *Ledger) key(node job.Node) string { return l.cfg.Prefix + ":{" + string(node) + "}" }

// eval runs a script on one key, in whatever life the store is.
func (l *Ledger) eval(ctx context.Context, op operation, key string, args ...any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	in := l.life.Load()
	for round := range rounds {
		if in == nil || round > 0 {
			next, err := l.enter(ctx, in)
			if err != nil {
				return reply{}, fmt.Errorf("%s: %w", op, err)
			}
			in = next
		}
		answer, err := l.rdb.EvalSha(ctx, in.scripts[op].sha, []string{key}, args...).Slice()
		switch {
		case err == nil && len(answer) > 0:
			word, _ := answer[0].(string)
			return reply{in, word, answer[1:]}, nil
		case err == nil:
			return reply{}, fault.New(fault.Corrupt, "%s: the script answered nothing", op)
		case !redis.HasErrorPrefix(err, "NOSCRIPT"):
			return reply{}, l.classify(string(op), err)
		}
	}
	return reply{}, fault.New(fault.Transient, "%s: redis at %s loses its scripts again and again", op, l.cfg.Address)
}

// call runs an operation on a node's book, which reads fields in front, and gives the reply when its word is ok.
func (l *Ledger) call(
	ctx context.Context, op operation, call ledger.Call, node job.Node, fields []string, own ...any,
) (reply, error) {
	if err := checkNode(call, node); err != nil {
		return reply{}, err
	}
	args := make([]any, 0, 4+len(fields)+len(own))
	args = append(args, decimal(call.Term)+"|"+call.Epoch+"|", decimal(l.seenOps(node)),
		decimal(l.cfg.Ledger.Lease.Milliseconds()), decimal(len(fields)))
	for _, field := range fields {
		args = append(args, field)
	}
	return l.answer(ctx, op, call, node, append(args, own...))
}

// answer runs a script on a node's book and takes what any of them may answer.
func (l *Ledger) answer(
	ctx context.Context, op operation, call ledger.Call, node job.Node, args []any,
) (reply, error) {
	r, err := l.eval(ctx, op, l.key(node), args...)
	if err != nil {
		return reply{}, fmt.Errorf("node %s: %w", node, err)
	}
	switch r.word {
	case "ok":
		ops, err := strconv.ParseUint(r.text(0), 10, 64)
		if err != nil {
			return reply{}, fault.New(fault.Corrupt, "%s: count of operations %.40q", op, r.text(0))
		}
		l.sawOps(node, ops)
		return r, nil
	case "term":
		seen, _ := strconv.ParseUint(r.text(0), 10, 64)
		return reply{}, ledger.TermOver(call, seen)
	case "closed":
		return reply{}, &ledger.Refusal{Node: node, Closed: closedReason(r.text(0))}
	}
	return r, nil
}

func closedReason(word string) string {
	switch word {
	case "epoch":
		return ledger.ClosedEpoch
	case "run":
		return ledger.ClosedRestarted
	case "ops":
		return ledger.ClosedRolledBack
	}
	return ledger.ClosedNotDeclared
}

func checkNode(call ledger.Call, node job.Node) error {
	if err := ledger.CheckCall(call); err != nil {
		return err
	}
	if _, err := job.ParseNode(string(node)); err != nil {
		return fault.As(fault.Invalid, err)
	}
	return nil
}

func (l *Ledger) seenOps(node job.Node) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[node]
}

func (l *Ledger) sawOps(node job.Node, ops uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[node] = max(l.seen[node], ops)
}

// unexpected is the error for a reply that no script gives.
func unexpected(op operation, r reply) error {
	return fault.New(fault.Corrupt, "%s: the script answered %.40q", op, r.word)
}

// attempts reads a list of attempts, sorted.
func attempts(list any) ([]job.Attempt, error) {
	var d decoder
	texts, ok := list.([]any)
	if !ok {
		return nil, fault.New(fault.Corrupt, "reply %T is no list of attempts", list)
	}
	var out []job.Attempt
	for _, item := range texts {
		text, _ := item.(string)
		out = append(out, d.attempt(text))
	}
	return out, d.err
}

// Begin implements [ledger.Ledger].
func (l *Ledger) Begin(ctx context.Context, term uint64, epoch string) (ledger.Call, error) {
	call := ledger.Call{Term: term, Epoch: epoch}
	if err := ledger.CheckCall(call); err != nil {
		return ledger.Call{}, err
	}
	begin := func(key, what string) error {
		r, err := l.eval(ctx, opBegin, key, decimal(term), what)
		switch {
		case err != nil:
			return fmt.Errorf("term %d: %w", term, err)
		case r.word == "term":
			seen, _ := strconv.ParseUint(r.text(0), 10, 64)
			return ledger.TermOver(call, seen)
		}
		return nil
	}
	if err := begin(l.cfg.Prefix+":reign", "ledger"); err != nil {
		return ledger.Call{}, err
	}
	nodes, err := l.Nodes(ctx)
	if err != nil {
		return ledger.Call{}, err
	}
	for _, node := range nodes {
		if err := begin(l.key(node), "node"); err != nil {
			return ledger.Call{}, err
		}
	}
	return call, nil
}

// Nodes implements [ledger.Ledger].
func (l *Ledger) Nodes(ctx context.Context) ([]job.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	names, err := l.rdb.SMembers(ctx, l.cfg.Prefix+":nodes").Result()
	if err != nil {
		return nil, l.classify("list nodes", err)
	}
	var nodes []job.Node
	for _, name := range names {
		node, err := job.ParseNode(name)
		if err != nil {
			return nil, fault.As(fault.Corrupt, fmt.Errorf("list nodes: %w", err))
		}
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes, nil
}

// Node implements [ledger.Ledger].
func (l *Ledger) Node(ctx context.Context, node job.Node) (*ledger.NodeBook, error) {
	if _, err := job.ParseNode(string(node)); err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	r, s, err := l.read(ctx, node)
	if err != nil {
		return nil, err
	}
	b, err := s.book(node, r.run.run, l.seenOps(node))
	if err == nil && b == nil {
		err = ledger.NoBook(node)
	}
	return b, err
}

// read gets the dump of a node's book.
func (l *Ledger) read(ctx context.Context, node job.Node) (reply, stored, error) {
	r, err := l.eval(ctx, opNode, l.key(node))
	if err != nil {
		return reply{}, stored{}, fmt.Errorf("node %s: %w", node, err)
	}
	if r.word != "ok" || len(r.rest) != 1 {
		return reply{}, stored{}, unexpected(opNode, r)
	}
	s, err := readDump(node, r.rest[0])
	return r, s, err
}
