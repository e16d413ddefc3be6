package redisledger_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
)

const node job.Node = "n1"

// begin starts a reign and declares the node.
func begin(t testing.TB, l *redisledger.Ledger, term uint64) ledger.Call {
	t.Helper()
	call, err := l.Begin(context.Background(), term, "e1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Declare(context.Background(), call, declaration(node, term)); err != nil {
		t.Fatal(err)
	}
	return call
}

func closedWith(err error, reason string) bool {
	var refusal *ledger.Refusal
	return errors.As(err, &refusal) && refusal.Closed == reason && fault.KindOf(err) == fault.Transient
}

func TestB69ScriptsTurnNumbersIntoTextInOnePlaceOnly(t *testing.T) {
	t.Parallel()
	texts, err := redisledger.Scripts()
	if err != nil || len(texts) < 13 {
		t.Fatalf("%d scripts, %v", len(texts), err)
	}
	forbidden := regexp.MustCompile(`tostring|cjson|cmsgpack|HINCRBY|INCR|%d'|%g|%f|EXPIRE|'PX'|'EX'|FCALL`)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		for i, line := range strings.Split(texts[name], "\n") {
			code, _, _ := strings.Cut(line, "--")
			code = strings.Replace(code, "local function text(n) return string.format('%d', n) end", "", 1)
			if found := forbidden.FindString(code); found != "" {
				t.Errorf("%s:%d uses %s", name, i+1, found)
			}
			if strings.Contains(code, "string.format") {
				t.Errorf("%s:%d formats outside text()", name, i+1)
			}
			// What is joined must be text already: names of pools, parts of entries, or text().
			for _, joined := range regexp.MustCompile(`\.\.\s*([a-zA-Z_.]+)`).FindAllStringSubmatch(code, -1) {
				if joined[1] != "pool" && joined[1] != "text" {
					t.Errorf("%s:%d joins %s, which may be a number", name, i+1, joined[1])
				}
			}
		}
	}
}

// A worker that was killed holds its bytes until the host shows that they are gone; nobody edits anything by hand.
func TestB71KilledWorkersBytesComeBackByEvidence(t *testing.T) {
	t.Parallel()
	const lease = 200 * time.Millisecond
	s := startServer(t)
	l := open(t, s, func(c *redisledger.Config) { c.Ledger.Lease = lease })
	call, ctx := begin(t, l, 1), context.Background()
	for i := range 20 {
		if err := l.Reserve(ctx, call, reservation(node, 1, i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	var limbo []job.Attempt
	for deadline := time.Now().Add(time.Minute); len(limbo) < 20; time.Sleep(lease / 8) {
		var err error
		if limbo, err = l.Expire(ctx, call, node); err != nil || time.Now().After(deadline) {
			t.Fatalf("%d in limbo, %v", len(limbo), err)
		}
	}
	book, err := l.Node(ctx, node)
	if err != nil || len(book.Entries) != 20 || book.Used[ledger.PoolRAM] != 20*reservation(node, 1, 0, 1).Amounts["ram"] {
		t.Fatalf("time freed bytes: %v, %+v", err, book)
	}
	for _, e := range book.Entries { // owner, age and lease of every entry
		if !e.Limbo || e.Since.IsZero() || e.LimboSince.Sub(e.Since) < lease {
			t.Errorf("entry %+v", e)
		}
	}
	drift, err := l.Declare(ctx, call, declaration(node, 2))
	if err != nil || len(drift.Freed) != 20 {
		t.Fatalf("%+v, %v", drift, err)
	}
	if book, err = l.Node(ctx, node); err != nil || len(book.Entries) > 0 || len(book.Used) > 0 {
		t.Errorf("used is not 0: %v, %+v", err, book)
	}
}

// Nothing is granted without the store, every call ends in its time, and what could not be released then is released
// later, once (B72, B79).
func TestB72AndB79FrozenStore(t *testing.T) {
	t.Parallel()
	const timeout = 150 * time.Millisecond
	s := startServer(t)
	l := open(t, s, func(c *redisledger.Config) { c.Timeout, c.Connections = timeout, 4 })
	patient := open(t, s, nil)
	call, ctx := begin(t, patient, 1), context.Background()
	for i := range 3 {
		if err := patient.Reserve(ctx, call, reservation(node, 1, i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	s.signal(syscall.SIGSTOP)
	var wg sync.WaitGroup
	var kept sync.Map
	for i := range 3 {
		wg.Go(func() {
			began := time.Now()
			if err := l.Reserve(ctx, call, reservation(node, 2, i, 1)); fault.KindOf(err) != fault.Transient {
				t.Errorf("reserve without a store: %v", err)
			}
			if took := time.Since(began); took > 200*timeout {
				t.Errorf("a call took %s", took)
			}
			a := reservation(node, 1, i, 1).Attempt
			if _, err := l.Release(ctx, call, node, a); fault.KindOf(err) != fault.Transient {
				t.Errorf("release without a store: %v", err)
			}
			kept.Store(a, true)
		})
	}
	wg.Wait()
	s.signal(syscall.SIGCONT)
	// The frozen server may still carry out what it was sent; repeating is harmless.
	retry(t, func() error { _, err := l.Node(ctx, node); return err })
	kept.Range(func(a, _ any) bool {
		retry(t, func() error { _, err := l.Release(ctx, call, node, a.(job.Attempt)); return err })
		return true
	})
	for i := range 3 {
		retry(t, func() error { _, err := l.Release(ctx, call, node, reservation(node, 2, i, 1).Attempt); return err })
	}
	book, err := patient.Node(ctx, node)
	if err != nil || len(book.Entries) > 0 || len(book.Used) > 0 || book.Closed != "" {
		t.Errorf("after thawing: %v, %+v", err, book)
	}

	s.signal(syscall.SIGSTOP)
	defer s.signal(syscall.SIGCONT)
	stuck := make(chan error, 1)
	go func() { _, err := l.Node(ctx, node); stuck <- err }()
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	for _, c := range []chan error{closed, stuck} {
		select {
		case <-c:
		case <-time.After(200 * timeout):
			t.Fatal("closing hangs on a frozen store")
		}
	}
}

// retry repeats what fails transiently, for a bounded time.
func retry(t testing.TB, f func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if fault.KindOf(err) != fault.Transient || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestB74ScriptsAreLoadedAgainUnderWay(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := open(t, s, nil)
	call, ctx := begin(t, l, 1), context.Background()
	admin := s.client()
	defer admin.Close()
	var flushes atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(30 * time.Millisecond):
				if err := admin.ScriptFlush(ctx).Err(); err != nil {
					t.Error(err)
				}
				flushes.Add(1)
			}
		}
	})
	defer func() {
		close(stop)
		wg.Wait()
	}()
	for i := 0; i < 300 || flushes.Load() < 10; i++ {
		r := reservation(node, 1, i%job.PartitionsMax, 1)
		if err := l.Reserve(ctx, call, r); err != nil {
			t.Fatal(err)
		}
		if released, err := l.Release(ctx, call, node, r.Attempt); err != nil || !released {
			t.Fatal(released, err)
		}
	}
}

// A store that was killed and comes back grants nothing until the node has declared, also to a client that never saw
// it before; a store that comes back empty neither.
func TestB74KilledStoreGrantsNothingUntilDeclared(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--appendfsync", "always")
	l := open(t, s, nil)
	call, ctx := begin(t, l, 1), context.Background()
	first, second := reservation(node, 1, 0, 1), reservation(node, 1, 1, 1)
	if err := l.Reserve(ctx, call, first); err != nil {
		t.Fatal(err)
	}
	s.kill()
	if err := l.Reserve(ctx, call, second); fault.KindOf(err) != fault.Transient {
		t.Fatalf("without a store: %v", err)
	}
	s.start()
	other := open(t, s, nil)
	otherCall, err := other.Begin(ctx, 1, "e1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		l    *redisledger.Ledger
		call ledger.Call
	}{{other, otherCall}, {l, call}} {
		if err := c.l.Reserve(ctx, c.call, second); !closedWith(err, ledger.ClosedRestarted) {
			t.Fatalf("after the restart: %v", err)
		}
	}
	held := ledger.Holding{Attempt: first.Attempt, Amounts: first.Amounts}
	if _, err := l.Declare(ctx, call, declaration(node, 2, held)); err != nil {
		t.Fatal(err)
	}
	if err := l.Reserve(ctx, call, second); err != nil {
		t.Fatal(err)
	}
	book, err := l.Node(ctx, node)
	if err != nil || len(book.Entries) != 2 || book.Closed != "" {
		t.Errorf("%v, %+v", err, book)
	}
}

// A stub answers LOADING for a while, at start and under way, then passes everything through.
func TestB75LoadingIsNotReady(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var loading atomic.Bool
	loading.Store(true)
	address := loadingProxy(t, s, &loading)
	l := open(t, s, func(c *redisledger.Config) { c.Address = address })
	ctx := context.Background()
	if _, err := l.Check(ctx); fault.KindOf(err) != fault.Transient || !strings.Contains(err.Error(), "LOADING") {
		t.Errorf("check: %v", err)
	}
	if _, err := l.Begin(ctx, 1, "e1"); fault.KindOf(err) != fault.Transient {
		t.Errorf("begin: %v", err)
	}
	loading.Store(false)
	call := begin(t, l, 1)
	loading.Store(true)
	err := l.Reserve(ctx, call, reservation(node, 1, 0, 1))
	if fault.KindOf(err) != fault.Transient {
		t.Errorf("reserve: %v", err)
	}
	loading.Store(false)
	if err := l.Reserve(ctx, call, reservation(node, 1, 0, 1)); err != nil {
		t.Error(err)
	}
}

// loadingProxy listens for clients of a server; while loading is set it answers each read with an error of its own.
func loadingProxy(t *testing.T, s *server, loading *atomic.Bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				redis, err := net.Dial("unix", s.socket())
				if err != nil {
					return
				}
				defer redis.Close()
				go func() { _, _ = copyAll(client, redis); _ = client.Close() }()
				buffer := make([]byte, 1<<16)
				for {
					n, err := client.Read(buffer)
					if err != nil {
						return
					}
					if loading.Load() {
						answers := strings.Repeat("-LOADING Redis is loading the dataset in memory\r\n", max(1, commands(buffer[:n])))
						_, _ = client.Write([]byte(answers))
						continue
					}
					if _, err := redis.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// commands counts the commands in what a client sent, which are arrays.
func commands(sent []byte) int {
	return len(regexp.MustCompile(`(?m)^\*\d+\r\n`).FindAll(sent, -1))
}

func copyAll(to, from net.Conn) (int64, error) {
	buffer := make([]byte, 1<<16)
	var total int64
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return total, err
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return total, err
		}
		total += int64(n)
	}
}

func TestB77EvictionPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	admin, ctx := s.client(), context.Background()
	defer admin.Close()
	for _, policy := range []string{"allkeys-lru", "volatile-lru", "allkeys-random", "volatile-ttl"} {
		if err := admin.ConfigSet(ctx, "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		strict := open(t, s, nil)
		_, err := strict.Begin(ctx, 1, "e1")
		report := fault.ReportOf("start", err)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "maxmemory-policy "+policy) ||
			report.Hint != "set maxmemory-policy noeviction" {
			t.Errorf("%s: %v (%+v)", policy, err, report)
		}
		loose := open(t, s, func(c *redisledger.Config) { c.AllowEviction = true })
		if got, err := loose.Check(ctx); err != nil || !strings.Contains(fmt.Sprint(got.Warnings), policy) {
			t.Errorf("%s, allowed: %+v, %v", policy, got, err)
		}
	}
	for setting, value := range map[string]string{
		"maxmemory-policy": "noeviction", "maxmemory": "0", "appendonly": "no",
	} {
		if err := admin.ConfigSet(ctx, setting, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	report, err := open(t, s, nil).Check(ctx)
	if err != nil || len(report.Warnings) != 2 || report.Version == "" ||
		!strings.Contains(report.Warnings[0], "appendonly") || !strings.Contains(report.Warnings[1], "maxmemory") {
		t.Errorf("no limit and no persistence: %+v, %v", report, err)
	}
}

// A book that is thrown away is found before anything is granted, a part of it that somebody takes out by hand when the
// book is read; the node's next word repairs both.
func TestB77EvictedBooksAreClosed(t *testing.T) {
	t.Parallel()
	const key = "c2:ledger:{n1}"
	for name, c := range map[string]struct{ field, closed string }{
		"book":  {"", ledger.ClosedNotDeclared},
		"entry": {"e:01890a5d-ac96-774b-bcce-000000000001.0.", ledger.ClosedDamaged},
		"asset": {"a:srs:x@ram", ledger.ClosedDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			admin, ctx := s.client(), context.Background()
			defer admin.Close()
			l := open(t, s, nil)
			call := begin(t, l, 1)
			held := reservation(node, 1, 0, 1)
			held.Assets = []ledger.Asset{{Name: "srs:x", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 7}}
			if err := l.Reserve(ctx, call, held); err != nil {
				t.Fatal(err)
			}
			n, err := int64(0), error(nil)
			if c.field == "" {
				n, err = admin.Del(ctx, key).Result()
			} else {
				n, err = admin.HDel(ctx, key, c.field).Result()
			}
			if err != nil || n != 1 {
				t.Fatal(n, err)
			}
			if c.closed == ledger.ClosedNotDeclared {
				if err := l.Reserve(ctx, call, reservation(node, 2, 1, 1)); !closedWith(err, c.closed) {
					t.Errorf("granted: %v", err)
				}
			} else if book, err := l.Node(ctx, node); err != nil || book.Closed != c.closed {
				t.Errorf("the book is %+v, %v", book, err)
			}
			d := declaration(node, 10, ledger.Holding{
				Attempt: held.Attempt, Amounts: held.Amounts, Assets: []ledger.AssetKey{held.Assets[0].Key()},
			})
			d.Assets = held.Assets
			if _, err := l.Declare(ctx, call, d); err != nil {
				t.Fatal(err)
			}
			if err := l.Reserve(ctx, call, reservation(node, 3, 1, 1)); err != nil {
				t.Fatal(err)
			}
			released, err := l.Release(ctx, call, node, reservation(node, 3, 1, 1).Attempt)
			if err != nil || !released {
				t.Fatal(released, err)
			}
			book, err := l.Node(ctx, node)
			if err != nil || book.Closed != "" || len(book.Mismatch()) > 0 || len(book.Entries) != 1 ||
				book.Assets[0].Users != 1 {
				t.Errorf("made again: %v, %+v", err, book)
			}
		})
	}
}

// Without memory for writes nothing is granted, and what frees memory still goes: also where a partition's other
// attempt stays.
func TestB77ReleaseWorksWithoutMemory(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	admin, ctx := s.client(), context.Background()
	defer admin.Close()
	l := open(t, s, nil)
	call := begin(t, l, 1)
	for fence := range uint64(3) {
		if err := l.Reserve(ctx, call, reservation(node, 1, 0, fence+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.ConfigSet(ctx, "maxmemory", "1mb").Err(); err != nil {
		t.Fatal(err)
	}
	err := l.Reserve(ctx, call, reservation(node, 1, 1, 1))
	if fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("reserve: %v", err)
	}
	keep := ledger.Amounts{ledger.PoolRAM: bytesize.MiB}
	if err := l.Shrink(ctx, call, node, reservation(node, 1, 0, 3).Attempt, keep); err != nil {
		t.Errorf("shrink: %v", err)
	}
	if limbo, err := l.Expire(ctx, call, node); err != nil || len(limbo) != 2 {
		t.Errorf("expire: %v, %v", limbo, err)
	}
	for fence := range uint64(3) {
		released, err := l.Release(ctx, call, node, reservation(node, 1, 0, fence+1).Attempt)
		if err != nil || !released {
			t.Errorf("release: %t, %v", released, err)
		}
	}
	book, err := l.Node(ctx, node)
	if err != nil || len(book.Entries) > 0 || len(book.Used) > 0 {
		t.Errorf("%v, %+v", err, book)
	}
}

// The number of keys and their size level off however many attempts there were, and none has a time to live.
func TestB80KeysAreBounded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	admin, ctx := s.client(), context.Background()
	defer admin.Close()
	l := open(t, s, nil)
	call := begin(t, l, 1)
	size := func() (keys []string, bytes int64) {
		keys, err := admin.Keys(ctx, "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if ttl := admin.PTTL(ctx, key).Val(); ttl != -1 {
				t.Errorf("key %s has a time to live of %s", key, ttl)
			}
			bytes += admin.MemoryUsage(ctx, key, 0).Val()
		}
		slices.Sort(keys)
		return keys, bytes
	}
	run := func(from, to int) {
		for i := from; i < to; i++ {
			r := reservation(node, i, i%job.PartitionsMax, uint64(i+1))
			if err := l.Reserve(ctx, call, r); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Release(ctx, call, node, r.Attempt); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(0, 10)
	keys, bytes := size()
	run(10, 1000)
	if again, more := size(); !slices.Equal(keys, again) || more > bytes+64 {
		t.Errorf("after 10 jobs %v with %d B, after 1000 %v with %d B", keys, bytes, again, more)
	}
	if err := l.Forget(ctx, call, node); err != nil {
		t.Fatal(err)
	}
	if left, _ := size(); !slices.Equal(left, []string{"c2:ledger:reign"}) {
		t.Errorf("after the last node went: %v", left)
	}
}
