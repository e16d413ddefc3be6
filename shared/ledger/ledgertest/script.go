package ledgertest

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

//go:embed testdata/*.txt
var scripts embed.FS

// Rewrite writes the transcripts of a backend over the expected ones, below the folder that holds testdata.
func Rewrite(t *testing.T, folder string, backend func(testing.TB) Backend) {
	t.Helper()
	eachScript(t, func(t *testing.T, name, text string) {
		path := filepath.Join(folder, "testdata", name)
		if err := os.WriteFile(path, []byte(newPlayer(t, backend(t)).play(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// RewriteFlag defines -rewrite.
func RewriteFlag() *bool { return flag.Bool("rewrite", false, "write expected transcripts anew") }

func eachScript(t *testing.T, f func(t *testing.T, name, text string)) {
	t.Helper()
	names, err := fs.Glob(scripts, "testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range names {
		text, err := scripts.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			f(t, filepath.Base(name), string(text))
		})
	}
}

func runScripts(t *testing.T, backend func(testing.TB) Backend) {
	eachScript(t, func(t *testing.T, _, text string) {
		if diff := cmp.Diff(text, newPlayer(t, backend(t)).play(text)); diff != "" {
			t.Errorf("the transcript differs (-want +got):\n%s", diff)
		}
	})
}

// player carries out a script. A line that begins with neither "#" nor a space is a command, what follows it indented
// is its answer. "b: " in front of a command gives it to a second client.
type player struct {
	t       testing.TB
	backend Backend
	clients map[string]ledger.Ledger
	calls   map[string]ledger.Call
	back    func()
}

func newPlayer(t testing.TB, b Backend) *player {
	return &player{t: t, backend: b, clients: map[string]ledger.Ledger{}, calls: map[string]ledger.Call{}}
}

func (p *player) play(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, " ") {
			continue
		}
		out.WriteString(line)
		command := strings.TrimSpace(line)
		if command == "" || strings.HasPrefix(command, "#") {
			continue
		}
		for answer := range strings.Lines(p.command(command)) {
			out.WriteString("  " + answer)
		}
	}
	return out.String()
}

// jobID is the id that a script calls j<n>.
func jobID(n int) job.ID { return job.ID(fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", n)) }

var (
	longID  = regexp.MustCompile(`01890a5d-ac96-774b-bcce-0*(\d+)`)
	shortID = regexp.MustCompile(`^j(\d+)\.`)
)

func (p *player) attempt(text string) job.Attempt {
	match := shortID.FindStringSubmatch(text)
	if match == nil {
		p.t.Fatalf("%q is no attempt", text)
	}
	n, _ := strconv.Atoi(match[1])
	a, err := job.ParseAttempt(string(jobID(n)) + "." + strings.TrimPrefix(text, match[0]))
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

// amounts reads words like ram=5 and, with a name, srs:x@ram=5.
func (p *player) amounts(words []string) (ledger.Amounts, []ledger.Asset) {
	amounts := ledger.Amounts{}
	var assets []ledger.Asset
	for _, word := range words {
		what, number, found := strings.Cut(word, "=")
		n, err := strconv.ParseInt(number, 10, 64)
		if !found || err != nil {
			p.t.Fatalf("%q is no amount", word)
		}
		if name, pool, found := strings.Cut(what, "@"); found {
			class, _, _ := strings.Cut(name, ":")
			if name == ledger.AssetSegments {
				class = string(ledger.ClassScratch)
			}
			assets = append(assets, ledger.Asset{
				Name: name, Pool: ledger.Pool(pool), Class: ledger.Class(class), Bytes: bytesize.Bytes(n),
			})
			continue
		}
		amounts[ledger.Pool(what)] = bytesize.Bytes(n)
	}
	return amounts, assets
}

func (p *player) client(name string) ledger.Ledger {
	if p.clients[name] == nil {
		p.clients[name] = p.backend.Open(p.t)
	}
	return p.clients[name]
}

func (p *player) command(line string) string {
	client := "a"
	if name, rest, found := strings.Cut(line, ": "); found && len(name) == 1 {
		client, line = name, rest
	}
	words := strings.Fields(line)
	switch words[0] {
	case "advance":
		by, err := time.ParseDuration(words[1])
		if err != nil {
			p.t.Fatal(err)
		}
		p.backend.Advance(p.t, by)
	case "restart":
		p.backend.Restart(p.t)
	case "wipe":
		p.backend.Wipe(p.t)
	case "snapshot":
		p.back = p.backend.Snapshot(p.t)
	case "rollback":
		p.back()
	default:
		return longID.ReplaceAllString(p.call(client, words[0], words[1:]), "j$1")
	}
	return ""
}

func answer(err error, format string, args ...any) string {
	if err != nil {
		return fmt.Sprintf("%s: %v\n", fault.KindOf(err), err)
	}
	return fmt.Sprintf(format, args...) + "\n"
}

func list(attempts []job.Attempt) string {
	texts := make([]string, len(attempts))
	for i, a := range attempts {
		texts[i] = a.String()
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// call carries out one of the port's operations.
func (p *player) call(client, verb string, words []string) string {
	ctx, l, call := context.Background(), p.client(client), p.calls[client]
	if verb == "begin" {
		term, _ := strconv.ParseUint(words[0], 10, 64)
		call, err := l.Begin(ctx, term, words[1])
		if err == nil {
			p.calls[client] = call
		}
		return answer(err, "ok")
	}
	node := job.Node(words[0])
	switch verb {
	case "declare":
		drift, err := l.Declare(ctx, call, p.declaration(node, words[1:]))
		return answer(err, "%s", describe(drift))
	case "reserve":
		amounts, assets := p.amounts(words[2:])
		err := l.Reserve(ctx, call, &ledger.Reservation{
			Attempt: p.attempt(words[1]), Node: node, Amounts: amounts, Assets: assets,
		})
		return answer(err, "ok")
	case "transfer":
		amounts, assets := p.amounts(words[3:])
		err := l.Transfer(ctx, call, p.attempt(words[1]), &ledger.Reservation{
			Attempt: p.attempt(words[2]), Node: node, Amounts: amounts, Assets: assets,
		})
		return answer(err, "ok")
	case "renew":
		var attempts []job.Attempt
		for _, word := range words[1:] {
			attempts = append(attempts, p.attempt(word))
		}
		lost, err := l.Renew(ctx, call, node, attempts)
		return answer(err, "lost %s", list(lost))
	case "shrink":
		amounts, _ := p.amounts(words[2:])
		return answer(l.Shrink(ctx, call, node, p.attempt(words[1]), amounts), "ok")
	case "release":
		released, err := l.Release(ctx, call, node, p.attempt(words[1]))
		return answer(err, "released %t", released)
	case "expire":
		limbo, err := l.Expire(ctx, call, node)
		return answer(err, "limbo %s", list(limbo))
	case "evict":
		evicted, err := l.Evict(ctx, call, node, words[1])
		return answer(err, "evicted %t", evicted)
	case "forget":
		return answer(l.Forget(ctx, call, node), "ok")
	case "show":
		b, err := l.Node(ctx, node)
		if err != nil {
			return answer(err, "")
		}
		return Show(b, call.Epoch)
	}
	p.t.Fatalf("unknown command %q", verb)
	return ""
}

// declaration reads boot=b1 instance=i1 seq=3 partial correction, capacities as ram=5, assets as srs:x@ram=5, holdings
// as +j1.0.1 ram=5 (dead ones as ~j1.0.1) and claims as ?j1.0.1 ram=5, each ended by the next one.
func (p *player) declaration(node job.Node, words []string) *ledger.Declaration {
	d := &ledger.Declaration{Node: node, Boot: "b1", Instance: "i1", Capacity: ledger.Amounts{}}
	var holding *ledger.Holding
	var claim *ledger.Reservation
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case name == "boot":
			d.Boot = value
		case name == "instance":
			d.Instance = value
		case name == "seq":
			d.Seq, _ = strconv.ParseUint(value, 10, 64)
		case name == "partial":
			d.Partial = true
		case name == "correction":
			d.Correction = true
		case strings.HasPrefix(word, "+"), strings.HasPrefix(word, "~"):
			d.Holdings = append(d.Holdings, ledger.Holding{
				Attempt: p.attempt(word[1:]), Dead: word[0] == '~', Amounts: ledger.Amounts{},
			})
			holding = &d.Holdings[len(d.Holdings)-1]
		case strings.HasPrefix(word, "?"):
			d.Claims = append(d.Claims, ledger.Reservation{
				Attempt: p.attempt(word[1:]), Node: node, Amounts: ledger.Amounts{},
			})
			claim = &d.Claims[len(d.Claims)-1]
		default:
			amounts, assets := p.amounts([]string{word})
			switch {
			case claim != nil:
				for pool, amount := range amounts {
					claim.Amounts[pool] = amount
				}
				claim.Assets = append(claim.Assets, assets...)
			case holding == nil:
				for pool, amount := range amounts {
					d.Capacity[pool] = amount
				}
				d.Assets = append(d.Assets, assets...)
			default:
				for pool, amount := range amounts {
					holding.Amounts[pool] = amount
				}
				for i := range assets {
					holding.Assets = append(holding.Assets, assets[i].Key())
				}
			}
		}
	}
	return d
}

// describe lists what a declaration found.
func describe(d *ledger.Drift) string {
	if d == nil {
		return ""
	}
	parts := []string{"ok"}
	if d.Stale {
		parts = append(parts, "stale")
	}
	if d.Opened {
		parts = append(parts, "opened ("+d.Why+")")
	}
	if d.Rebooted {
		parts = append(parts, "rebooted")
	}
	for _, found := range []struct {
		name string
		all  []job.Attempt
	}{{"unheld", d.Unheld}, {"unknown", d.Unknown}, {"claimed", d.Claimed}, {"freed", d.Freed}} {
		if len(found.all) > 0 {
			parts = append(parts, found.name+" "+list(found.all))
		}
	}
	for _, c := range d.Changed {
		parts = append(parts, fmt.Sprintf("%s %s %d -> %d", c.Attempt, c.Pool, c.Booked, c.Held))
	}
	if len(d.Over) > 0 {
		parts = append(parts, fmt.Sprintf("over %v", d.Over))
	}
	if d.Drifted() {
		parts = append(parts, "DRIFT")
	}
	return strings.Join(parts, ", ")
}

// Show prints a book: pools as used/capacity, then every entry with age and lease or limbo, then assets.
func Show(b *ledger.NodeBook, epoch string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "node %s term %d epoch %s boot %s ops %d", b.Node, b.Term, b.Epoch, b.Boot, b.Ops)
	if why := b.ClosedFor(epoch); why != "" {
		fmt.Fprintf(&out, " CLOSED: %s", why)
	}
	out.WriteString("\n")
	for _, pool := range b.Capacity.Pools() {
		fmt.Fprintf(&out, "pool %s %d/%d free %d\n", pool, b.Used[pool], b.Capacity[pool], b.Free(pool))
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		state := "lease " + e.LeaseUntil.Sub(b.Now).String()
		if e.Limbo {
			state = "limbo for " + b.Now.Sub(e.LimboSince).String()
		}
		fmt.Fprintf(&out, "%s age %s %s:", e.Attempt, b.Now.Sub(e.Since), state)
		for _, pool := range e.Amounts.Pools() {
			fmt.Fprintf(&out, " %s=%d", pool, e.Amounts[pool])
		}
		for _, key := range e.Assets {
			fmt.Fprintf(&out, " %s", key)
		}
		out.WriteString("\n")
	}
	for _, a := range b.Assets {
		fmt.Fprintf(&out, "asset %s %s %d users %d idle %s\n", a.Key(), a.Class, a.Bytes, a.Users, b.Now.Sub(a.UsedAt))
	}
	if pools := b.Mismatch(); len(pools) > 0 {
		fmt.Fprintf(&out, "MISMATCH %v\n", pools)
	}
	return out.String()
}
