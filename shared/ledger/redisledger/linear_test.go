package redisledger_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/ledgertest"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
)

// nemesis is what happens to the store during a history.
type nemesis string

const (
	calm     nemesis = "nothing"
	flushes  nemesis = "SCRIPT FLUSH"
	freezes  nemesis = "frozen for a moment"
	restarts nemesis = "restarted"
)

const (
	linearClients = 5
	linearEach    = 9 // operations of each client
)

// history records what clients did at the same time.
type history struct {
	t     testing.TB
	s     *server
	admin *redis.Client
	clock string // key of its clock
	begin time.Time
	seq   atomic.Uint64
	// still keeps the clock while a declaration is under way: that is read, computed and written if nothing changed
	// meanwhile, and bears the time of the reading.
	still sync.RWMutex

	mu  sync.Mutex
	ops []porcupine.Operation
}

func (h *history) record(client int, in *input, do func() string) bool {
	called := time.Since(h.begin).Nanoseconds()
	out := output{text: do()}
	op := porcupine.Operation{ClientId: client, Input: in, Call: called, Return: time.Since(h.begin).Nanoseconds()}
	if out.unknown = out.text == unknownOutcome; out.unknown {
		op.Return = math.MaxInt64
	}
	op.Output = out
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
	return !out.unknown
}

// recordHistory lets clients race on one node while something happens to the store, and gives what they saw. spoil, if
// any, stands between client and ledger.
func recordHistory(
	t testing.TB, s *server, seed uint64, what nemesis, spoil func(ledger.Ledger) ledger.Ledger,
) *history {
	t.Helper()
	ctx := t.Context()
	h := &history{t: t, s: s, admin: s.client(), clock: fmt.Sprint("clock:", seed), begin: time.Now()}
	defer h.admin.Close()
	if err := h.admin.Set(ctx, h.clock, ledgertest.Start().UnixMilli(), 0).Err(); err != nil {
		t.Fatal(err)
	}
	var clients []ledger.Ledger
	for range linearClients {
		cfg := redisledger.DefaultConfig()
		cfg.Address, cfg.Prefix = s.socket(), fmt.Sprint("h", seed)
		cfg.Ledger.Lease, cfg.Timeout = ledgertest.Lease, 5*time.Second
		l, err := redisledger.OpenWithClock(cfg, fmt.Sprintf(
			`local function clock() return tonumber(redis.call('GET', '%s')) end`, h.clock))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		clients = append(clients, l)
		if spoil != nil {
			clients[len(clients)-1] = spoil(l)
		}
	}
	if _, err := clients[0].Begin(ctx, linearCall.Term, linearCall.Epoch); err != nil {
		t.Fatal(err)
	}
	first := &input{name: "declare", declare: h.declaration()}
	if !h.record(0, first, func() string { return perform(real{ctx, clients[0]}, first) }) {
		t.Fatal("the store is away from the beginning")
	}
	var wg sync.WaitGroup
	for c, l := range clients {
		wg.Go(func() { h.client(c, l, rand.New(rand.NewPCG(seed, uint64(c)))) })
	}
	wg.Go(func() { h.meddle(what) })
	wg.Wait()
	return h
}

func (h *history) client(c int, l ledger.Ledger, r *rand.Rand) {
	for range linearEach {
		in := h.draw(r)
		ctx, cancel := h.t.Context(), context.CancelFunc(func() {})
		switch {
		case in.name == "declare":
			h.still.RLock()
			cancel = h.still.RUnlock
		case in.name == "advance":
			h.still.Lock()
			cancel = h.still.Unlock
		case r.IntN(20) == 0:
			ctx, cancel = context.WithTimeout(ctx, time.Duration(50+r.IntN(500))*time.Microsecond)
		}
		known := h.record(c, in, func() string {
			if in.name == "advance" {
				if err := h.admin.IncrBy(ctx, h.clock, in.by.Milliseconds()).Err(); err != nil {
					return unknownOutcome
				}
				return "ok"
			}
			return perform(real{ctx, l}, in)
		})
		cancel()
		for !known && h.admin.Ping(h.t.Context()).Err() != nil {
			time.Sleep(time.Millisecond) // it is starting again; more unknown outcomes would only hide others
		}
	}
}

// meddle lets something happen to the store.
func (h *history) meddle(what nemesis) {
	switch what {
	case flushes:
		for range 3 {
			time.Sleep(time.Millisecond)
			_ = h.admin.ScriptFlush(h.t.Context()).Err()
		}
	case freezes:
		time.Sleep(time.Millisecond)
		h.s.signal(syscall.SIGSTOP)
		time.Sleep(5 * time.Millisecond)
		h.s.signal(syscall.SIGCONT)
	case restarts:
		time.Sleep(time.Millisecond)
		h.record(linearClients, &input{name: "restart"}, func() string {
			_ = h.admin.Shutdown(h.t.Context()).Err() // a clean end syncs: nothing is lost
			<-h.s.exited
			h.s.start()
			return "ok"
		})
	}
}

func (h *history) declaration() ledger.Declaration {
	return ledger.Declaration{
		Node: node, Boot: "b", Instance: "i", Seq: h.seq.Add(1),
		Capacity: ledger.Amounts{ledger.PoolRAM: 100, ledger.PoolSHM: 60},
	}
}

// draw makes an operation on few attempts, so that clients meet.
func (h *history) draw(r *rand.Rand) *input {
	attempt := func() job.Attempt {
		return job.Attempt{
			Job:       job.ID(fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", 1+r.IntN(2))),
			Partition: r.IntN(2), Fence: 1 + r.Uint64N(2),
		}
	}
	names := []string{
		"reserve", "reserve", "reserve", "reserve", "transfer", "renew", "shrink", "release", "release", "release", "expire",
		"evict", "declare", "advance", "look", "look",
	}
	in := &input{name: names[r.IntN(len(names))], attempt: attempt(), others: []job.Attempt{attempt()}}
	amount := func() bytesize.Bytes { return bytesize.Bytes(10 + 10*r.IntN(4)) }
	in.reserve = ledger.Reservation{
		Attempt: attempt(), Node: node, Amounts: ledger.Amounts{ledger.PoolRAM: amount(), ledger.PoolSHM: amount()},
	}
	if r.IntN(2) == 0 {
		in.reserve.Assets = []ledger.Asset{{Name: "srs:x", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 20}}
	}
	in.keep = ledger.Amounts{ledger.PoolRAM: amount()}
	in.by = []time.Duration{4 * time.Second, 11 * time.Second}[r.IntN(2)]
	in.declare = h.declaration()
	for range r.IntN(3) {
		held := ledger.Holding{Attempt: attempt(), Amounts: ledger.Amounts{ledger.PoolRAM: amount()}}
		if !slices.ContainsFunc(in.declare.Holdings, func(o ledger.Holding) bool { return o.Attempt == held.Attempt }) {
			in.declare.Holdings = append(in.declare.Holdings, held)
		}
	}
	return in
}

// check tells whether there is an order of the operations, each at some moment between its call and its answer, in
// which the machine gives all the answers that were seen.
func (h *history) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(), h.ops, time.Minute)
}

func (h *history) String() string {
	var b strings.Builder
	slices.SortFunc(h.ops, func(x, y porcupine.Operation) int { return int(x.Call - y.Call) })
	for _, op := range h.ops {
		in, out := op.Input.(*input), op.Output.(output)
		fmt.Fprintf(&b, "%9d %19d client %d: %s %s %v: %s\n", op.Call, op.Return, op.ClientId, in.name, in.attempt,
			in.reserve, out.text)
	}
	return b.String()
}

func (h *history) unknown() (count int) {
	for _, op := range h.ops {
		if op.Output.(output).unknown {
			count++
		}
	}
	return count
}

// checkLinear records histories for some time and checks each. Every kind of nemesis comes. A history whose check takes
// too long, as each operation of unknown outcome doubles it, proves nothing: another one of its kind takes its place.
func checkLinear(t *testing.T, budget time.Duration) {
	s := startServer(t)
	kinds := []nemesis{calm, flushes, freezes, calm, flushes, freezes, calm, restarts}
	histories, ops, unknown, undecided := 0, 0, 0, 0
	for begin := time.Now(); histories < len(kinds) || time.Since(begin) < budget; {
		what := kinds[histories%len(kinds)]
		h := recordHistory(t, s, uint64(histories+1000*undecided), what, nil)
		switch result := h.check(); result {
		case porcupine.Ok:
			histories++
			ops, unknown = ops+len(h.ops), unknown+h.unknown()
		case porcupine.Unknown:
			if undecided++; undecided > 3+histories/10 {
				t.Fatalf("%d histories are undecided, the last one (%s):\n%s", undecided, what, h)
			}
			if err := h.forget(); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("history %d (%s) is %s:\n%s", histories, what, result, h)
		}
	}
	t.Logf("%d histories, %d operations, %d of unknown outcome, %d undecided", histories, ops, unknown, undecided)
}

// Operations of several clients at once have their effects one after the other, each between its call and its answer,
// as the machine says; also when outcomes are unknown, scripts are forgotten, and the store restarts.
func TestLedgerIsLinearizable(t *testing.T) {
	t.Parallel()
	checkLinear(t, 3*time.Second)
}

// twice counts a release for everybody who asks for it.
type twice struct{ ledger.Ledger }

func (l twice) Release(ctx context.Context, call ledger.Call, n job.Node, a job.Attempt) (bool, error) {
	_, err := l.Ledger.Release(ctx, call, n, a)
	return err == nil, err
}

// deaf does not say which leases are lost.
type deaf struct{ ledger.Ledger }

func (l deaf) Renew(ctx context.Context, call ledger.Call, n job.Node, all []job.Attempt) ([]job.Attempt, error) {
	_, err := l.Ledger.Renew(ctx, call, n, all)
	return nil, err
}

// hasty says that it is booked before it is, and books it later.
type hasty struct {
	ledger.Ledger
	wg *sync.WaitGroup
}

func (l hasty) Reserve(ctx context.Context, call ledger.Call, r *ledger.Reservation) error {
	l.wg.Go(func() { _ = l.Ledger.Reserve(context.WithoutCancel(ctx), call, r) })
	return nil
}

// The check finds what is broken: a ledger that lies in one operation has a history that no order explains.
func TestLinearizabilityCheckFindsBrokenLedgers(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var late sync.WaitGroup
	for name, spoil := range map[string]func(ledger.Ledger) ledger.Ledger{
		"a release is counted twice":           func(l ledger.Ledger) ledger.Ledger { return twice{l} },
		"lost leases are not told":             func(l ledger.Ledger) ledger.Ledger { return deaf{l} },
		"what is granted is booked afterwards": func(l ledger.Ledger) ledger.Ledger { return hasty{l, &late} },
	} {
		found := false
		for i := uint64(0); i < 20 && !found; i++ {
			h := recordHistory(t, s, 1_000+i, calm, spoil)
			late.Wait()
			if err := h.forget(); err != nil {
				t.Fatal(err)
			}
			found = h.check() == porcupine.Illegal
		}
		if !found {
			t.Errorf("%s: no history shows it", name)
		}
	}
}

// forget empties the store, so that another history may have the same keys.
func (h *history) forget() error {
	admin := h.s.client()
	defer admin.Close()
	return admin.FlushDB(context.Background()).Err()
}
