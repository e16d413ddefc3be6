package dispatch_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// holder is a node with 100 GiB that holds assets as it is told.
type holder struct {
	*reign

	name job.Node
	stop func()

	mu       sync.Mutex
	seq      uint64
	url      string
	circuits []wire.DeviceCircuit
	held     map[string]ledger.Asset                  // by name
	fails    bool                                     // what it is told to load it cannot
	stuck    bool                                     // what it is told to unload it does not
	more     func(gpu *wire.Beat, h *wire.HostReport) // changes what its beats say
	heard    []wire.Control
}

// parameters are a circuit that is ready and of so much memory, from a file of its own.
func parameters(id string, n bytesize.Bytes) wire.DeviceCircuit {
	return wire.DeviceCircuit{Circuit: id, Ready: true, SRSBytes: n, FileBytes: n, ParamsDigest: strings.Repeat("ab", 32)}
}

// hold has a node join, which beats until the test's stop.
func (r *reign) hold(name job.Node, circuits ...wire.DeviceCircuit) *holder {
	r.t.Helper()
	h := &holder{reign: r, name: name, circuits: circuits, held: map[string]ledger.Asset{}}
	unsubscribe, err := r.bus.Subscribe(wire.ControlSubject(name), h.obey)
	r.check(err)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			h.beat()
			select {
			case <-quit:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	h.stop = func() { close(quit); <-done; unsubscribe() }
	time.Sleep(3 * time.Second)
	return h
}

func (h *holder) obey(m bus.Message) {
	var c wire.Control
	if err := wire.Decode(m.Data, &c); err != nil {
		h.t.Error(err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Kind == wire.ControlReport {
		return // the next beat is near
	}
	h.heard = append(h.heard, c)
	switch c.Kind {
	case wire.ControlPreload:
		i := slices.IndexFunc(h.circuits, func(d wire.DeviceCircuit) bool { return d.Circuit == c.Circuit })
		if !h.fails {
			h.has("srs:"+c.Circuit, ledger.PoolRAM, h.circuits[i].SRSBytes)
		}
	case wire.ControlEvict:
		if !h.stuck {
			delete(h.held, c.Asset)
		}
	}
}

func (h *holder) has(name string, pool ledger.Pool, n bytesize.Bytes) {
	h.held[name] = ledger.Asset{Name: name, Pool: pool, Class: ledger.ClassSRS, Bytes: n}
}

// with changes it under its lock.
func (h *holder) with(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// told gives what the node was told since the last time, as "kind circuit or asset".
func (h *holder) told() (orders []string) {
	h.with(func() {
		for _, c := range h.heard {
			orders = append(orders, strings.TrimSpace(c.Kind+" "+c.Circuit+c.Asset))
		}
		h.heard = nil
	})
	return orders
}

func (h *holder) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq++
	synth := &wire.Beat{Role: wire.RoleSynth, Slots: 1, Host: &wire.HostReport{
		Capacity:     ledger.Amounts{ledger.PoolRAM: 100 * bytesize.GiB, ledger.PoolSHM: bytesize.GiB},
		BookComplete: true, At: time.Now(),
	}}
	for _, c := range h.circuits {
		synth.Synth = append(synth.Synth, wire.SynthCircuit{Circuit: c.Circuit, SegmentBytes: bytesize.MiB})
	}
	for _, name := range slices.Sorted(maps.Keys(h.held)) {
		synth.Host.Assets = append(synth.Host.Assets, h.held[name])
	}
	gpu := &wire.Beat{Role: wire.RoleGPU, AssetsURL: h.url, Devices: []wire.DeviceState{{
		Device: "cpu", Healthy: true, Circuits: slices.Clone(h.circuits),
	}}}
	if h.more != nil {
		h.more(gpu, synth.Host)
	}
	for _, b := range []*wire.Beat{synth, gpu} {
		b.Node, b.Boot, b.Instance, b.Seq, b.State = h.name, "boot", string(h.name)+b.Role, h.seq, wire.StateReady
		b.WireMin, b.WireMax = 1, 2
		if err := b.Check(); err != nil {
			h.t.Error(err)
		}
		h.nodes.Beat(b, time.Now())
	}
}

// order is what an operator asks for.
func (h *holder) order(do, circuit string) error {
	_, err := h.leader.Assets(h.t.Context(), &wire.AssetsRequest{Do: do, Node: h.name, Circuit: circuit})
	return err
}

// booked gives the names in the ledger's book, those that the node does not hold with a "?".
func (h *holder) booked() (names []string) {
	h.t.Helper()
	reply, err := h.leader.Assets(h.t.Context(), &wire.AssetsRequest{Node: h.name})
	h.check(err)
	for _, a := range reply.Nodes[0].Assets {
		if !a.Present {
			a.Name += "?"
		}
		names = append(names, a.Name)
	}
	return names
}

func (h *holder) want(booked []string, told ...string) {
	h.t.Helper()
	if diff := cmp.Diff(booked, h.booked()); diff != "" {
		h.t.Errorf("booked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(told, h.told()); diff != "" {
		h.t.Errorf("told (-want +got):\n%s", diff)
	}
}

func hintOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.ReportOf("", err).Hint
}

// A preload is booked before the node is told, and stays. What the node could not load goes again.
func TestAPreloadIsBookedAndStaysOnlyWhenItIsLoaded(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		t := r.t
		h := r.hold("n1", parameters("toy", 40*bytesize.GiB))
		defer h.stop()
		for do, circuit := range map[string]string{wire.AssetsEvict: "toy", wire.AssetsPreload: "unknown"} {
			if err := h.order(do, circuit); fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s %s: %v", do, circuit, err)
			}
		}
		h.fails = true
		r.check(h.order(wire.AssetsPreload, "toy"))
		time.Sleep(time.Millisecond) // before its next beat
		h.want([]string{"srs:toy?"}, "preload toy")
		time.Sleep(time.Minute)
		h.want(nil)
		h.with(func() { h.fails = false })
		r.check(h.order(wire.AssetsPreload, "toy"))
		time.Sleep(time.Minute)
		h.want([]string{"srs:toy"}, "preload toy")
		r.check(h.order(wire.AssetsEvict, "toy"))
		time.Sleep(time.Minute)
		h.want(nil, "evict srs:toy")
		if _, err := r.leader.Assets(t.Context(), &wire.AssetsRequest{Node: "n2"}); fault.KindOf(err) != fault.NotFound {
			t.Errorf("list of an unknown node: %v", err)
		}
	})
}

// A preload that has no room takes that of idle assets, the oldest first, and only if these are enough. Invariant 1:
// nothing is booked before they are gone.
func TestAPreloadEvictsWhatIsIdle(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		t := r.t
		h := r.hold("n1", parameters("toy", 40*bytesize.GiB), parameters("toy-b", 40*bytesize.GiB),
			parameters("toy-c", 60*bytesize.GiB), parameters("toy-d", 90*bytesize.GiB))
		defer h.stop()
		for _, id := range []string{"toy", "toy-b"} {
			r.check(h.order(wire.AssetsPreload, id))
			time.Sleep(time.Minute)
		}
		h.want([]string{"srs:toy", "srs:toy-b"}, "preload toy", "preload toy-b")
		r.check(h.order(wire.AssetsPreload, "toy-c"))
		time.Sleep(time.Minute)
		h.want([]string{"srs:toy-b", "srs:toy-c"}, "evict srs:toy", "preload toy-c")

		// What attempts use stays, and then the rest is not enough.
		r.check(h.order(wire.AssetsEvict, "toy-c"))
		time.Sleep(time.Minute)
		r.submit(1)
		time.Sleep(10 * time.Second)
		h.want([]string{"srs:toy?", "srs:toy-b"}, "evict srs:toy-c")
		var refusal *ledger.Refusal
		err := h.order(wire.AssetsPreload, "toy-d")
		if !errors.As(err, &refusal) || refusal.Need != 90*bytesize.GiB || refusal.Free >= 20*bytesize.GiB {
			t.Errorf("beside what is used: %v", err)
		}
		if err := h.order(wire.AssetsEvict, "toy"); fault.KindOf(err) != fault.Conflict {
			t.Errorf("evict of what is used: %v", err)
		}
		h.want([]string{"srs:toy?", "srs:toy-b"})
	})
}

// A node that takes its time to unload holds nobody up: the order says what leaves, and works when it is asked again.
func TestAPreloadDoesNotWaitForeverForRoom(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		t := r.t
		h := r.hold("n1", parameters("toy", 60*bytesize.GiB), parameters("toy-b", 60*bytesize.GiB))
		defer h.stop()
		r.check(h.order(wire.AssetsPreload, "toy"))
		time.Sleep(3 * time.Second) // its second beat since
		if err := h.order(wire.AssetsPreload, "toy-b"); fault.KindOf(err) != fault.Exhausted ||
			strings.Contains(hintOf(err), "srs:toy") {
			t.Errorf("beside what has just come: %v (%s)", err, hintOf(err))
		}
		h.want([]string{"srs:toy"}, "preload toy")
		time.Sleep(time.Minute)
		h.with(func() { h.stuck = true })
		began := time.Now()
		err := h.order(wire.AssetsPreload, "toy-b")
		if fault.KindOf(err) != fault.Exhausted || !strings.Contains(hintOf(err), "srs:toy") {
			t.Errorf("while it is on its way out: %v (%s)", err, hintOf(err))
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("said after %s", took)
		}
		h.want([]string{"srs:toy"}, "evict srs:toy")
		h.with(func() { h.stuck = false; delete(h.held, "srs:toy") })
		r.check(h.order(wire.AssetsPreload, "toy-b"))
		time.Sleep(2 * time.Second)
		h.want([]string{"srs:toy-b"}, "preload toy-b")
	})
}

// A copy is ordered from a node that gives the file, with one token for both, unless the file is there already.
func TestACopyIsOrderedFromANodeThatGives(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		t := r.t
		missing := wire.DeviceCircuit{Circuit: "toy", Missing: "no file"}
		to := r.hold("n1", missing)
		defer to.stop()
		from := r.hold("n2", parameters("toy", bytesize.MiB))
		defer from.stop()
		other := r.hold("n3", parameters("toy", bytesize.MiB))
		defer other.stop()
		copyFrom := func(source job.Node) (job.Node, error) {
			reply, err := r.leader.Assets(t.Context(),
				&wire.AssetsRequest{Do: wire.AssetsCopy, Node: "n1", Circuit: "toy", From: source})
			if err != nil {
				return "", err
			}
			return reply.From, nil
		}
		if _, err := copyFrom(""); fault.KindOf(err) != fault.NotFound || !strings.Contains(hintOf(err), "assets.listen") {
			t.Errorf("copy that nobody gives: %v", err)
		}
		other.with(func() { other.url = "http://n3:1" })
		time.Sleep(2 * time.Second)
		if _, err := copyFrom("n2"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("copy from a node that does not give: %v", err)
		}
		if source, err := copyFrom(""); err != nil || source != "n3" {
			t.Errorf("copy from %q: %v", source, err)
		}
		time.Sleep(time.Second)
		var share, fetch *wire.Transfer
		other.with(func() { share = other.heard[0].Transfer })
		to.with(func() { fetch = to.heard[0].Transfer })
		if to.told()[0] != wire.ControlFetch || other.told()[0] != wire.ControlShare || from.told() != nil {
			t.Error("other orders than a share and a fetch")
		}
		if share.Token == "" || share.Token != fetch.Token || !share.Expires.After(time.Now()) ||
			fetch.URL != "http://n3:1" || fetch.Bytes != bytesize.MiB || fetch.Digest != strings.Repeat("ab", 32) {
			t.Errorf("share %+v, fetch %+v", share, fetch)
		}
		to.with(func() { to.circuits[0] = parameters("toy", bytesize.MiB) })
		time.Sleep(2 * time.Second)
		if _, err := copyFrom(""); fault.KindOf(err) != fault.Conflict {
			t.Errorf("copy of what is there: %v", err)
		}
		to.with(func() { to.circuits[0].ParamsDigest = strings.Repeat("cd", 32) })
		time.Sleep(2 * time.Second)
		if _, err := copyFrom(""); err != nil {
			t.Errorf("copy over other parameters: %v", err)
		}
	})
}
