package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// node is what is known of a node.
type node struct {
	name job.Node
	view NodeView
	// seen is false while only running attempts tell that the node exists, gone once its beats stopped, declared while
	// the ledger grants anything there.
	seen, gone, declared bool
	devices              []*device
	// unsealed counts runs that wait for, or are in, synthesis.
	unsealed int

	pools    []ledger.Pool
	capacity []bytesize.Bytes
	// held is the sum of holdings and present assets, by pool.
	held     []bytesize.Bytes
	holdings map[job.Attempt]*holding
	assets   []*asset
	// ended is a holding whose bytes are gone and whose reservation is neither handed over nor released yet.
	ended *holding

	// pin is the waiter that the free bytes are kept for, on pinned.
	pin    *part
	pinned spot
	// leaveUntil is until when nothing is tried after a refusal.
	leaveUntil time.Time
	leaveCause string
	dirty      bool
}

// spot is a way to run a partition: a device and a choice there.
type spot struct {
	node    *node
	device  *device
	profile *profile
	choice  *choice
}

// device is what is known of a device.
type device struct {
	node *node
	view DeviceView
	// present tells that the latest view has it, usable that it may get work.
	present, usable bool
	// profiles by circuit.index, nil where nothing is known.
	profiles []*profile
	// runs are booked here, oldest first; proving counts those in the proof, until provingUntil by estimate.
	runs         []*run
	proving      int
	provingUntil time.Time
	// promised wait for it rather than to go to a slower one.
	promised []*part
	// count, booked and sealed are what Core.ahead gives, as long as counted is set.
	counted        bool
	count          int
	booked, sealed time.Duration

	// bad counts blamed faults in a row, badParts how often the partition changed among them; badPart is the latest.
	bad, badParts int
	badAt         time.Time
	badPart       job.Attempt
	quarantined   bool
}

// profile is a circuit on a device.
type profile struct {
	circuit *circuit
	view    CircuitView
	choices []choice
	// device is how long the device takes, measured; 0 before the first time.
	device time.Duration
	// ahead counts booked runs before the proof, sealed those of them that are sealed.
	ahead, sealed int
}

// choice is compiled Needs.
type choice struct {
	needs   Needs
	amounts []poolBytes
	assets  []assetNeed
	// ram is what an attempt has of that pool.
	ram bytesize.Bytes
	// fits tells that the node could hold it and nothing else.
	fits bool
}

type poolBytes struct {
	pool  int
	bytes bytesize.Bytes
}

type assetNeed struct {
	asset *asset
	bytes bytesize.Bytes
}

// asset is a shared asset that a node has or could have.
type asset struct {
	name    string
	pool    int
	bytes   bytesize.Bytes
	present bool
	// confirmed tells that the ledger knows it, not only an Admit without outcome.
	confirmed bool
	refs      int
	usedAt    time.Time
	// evictAt is when an Evict was asked for, zero when none is under way.
	evictAt time.Time
	// keepUntil is until when no Evict is asked for, since the last was refused.
	keepUntil time.Time
}

// holding is one attempt's reservation.
type holding struct {
	attempt job.Attempt
	amounts []poolBytes
	assets  []*asset
	// full are the amounts that were asked for, nil when not known; shrinking leaves them.
	full  ledger.Amounts
	asked bool
	limbo bool
	// tenant is whose quota it counts for, nil for nobody's; of a stranger the job is not known.
	tenant   *tenant
	stranger bool
}

func (c *Core) node(name job.Node) *node {
	n := c.nodes[name]
	if n == nil {
		n = &node{name: name, holdings: map[job.Attempt]*holding{}}
		c.nodes[name] = n
		i, _ := slices.BinarySearchFunc(c.order, name, func(n *node, name job.Node) int { return cmp.Compare(n.name, name) })
		c.order = slices.Insert(c.order, i, n)
	}
	return n
}

func (n *node) device(name job.Device) *device {
	i, found := slices.BinarySearchFunc(n.devices, name,
		func(d *device, name job.Device) int { return cmp.Compare(d.view.Device, name) })
	if !found {
		n.devices = slices.Insert(n.devices, i, &device{node: n, view: DeviceView{Device: name}})
	}
	return n.devices[i]
}

func (d *device) profile(c *circuit) *profile {
	for len(d.profiles) <= c.index {
		d.profiles = append(d.profiles, nil)
	}
	if d.profiles[c.index] == nil {
		d.profiles[c.index] = &profile{circuit: c}
	}
	return d.profiles[c.index]
}

// lookup gives the profile of a circuit, nil when nothing is known of it.
func (d *device) lookup(c *circuit) *profile {
	if c.index >= len(d.profiles) {
		return nil
	}
	return d.profiles[c.index]
}

func (d *device) forget(r *run) {
	d.runs = slices.DeleteFunc(d.runs, func(other *run) bool { return other == r })
}

// place names the device.
func (d *device) place() Place { return Place{Node: d.node.name, Device: d.view.Device} }

// pool gives the index of a pool's name.
func (n *node) pool(name ledger.Pool) int {
	i := slices.Index(n.pools, name)
	if i < 0 {
		i = len(n.pools)
		n.pools = append(n.pools, name)
		n.capacity = append(n.capacity, 0)
		n.held = append(n.held, 0)
	}
	return i
}

// asset gives the slot of an asset.
func (n *node) asset(name string, pool int) *asset {
	for _, s := range n.assets {
		if s.name == name && s.pool == pool {
			return s
		}
	}
	s := &asset{name: name, pool: pool}
	n.assets = append(n.assets, s)
	return s
}

func (n *node) compileAmounts(amounts ledger.Amounts) []poolBytes {
	out := make([]poolBytes, 0, len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if bytes := amounts[name]; bytes > 0 {
			out = append(out, poolBytes{n.pool(name), bytes})
		}
	}
	return out
}

func (n *node) compile(needs Needs) choice {
	ch := choice{needs: needs, amounts: n.compileAmounts(needs.Amounts), ram: needs.Amounts[ledger.PoolRAM]}
	for _, a := range needs.Assets {
		ch.assets = append(ch.assets, assetNeed{n.asset(a.Name, n.pool(a.Pool)), a.Bytes})
	}
	return ch
}

// take books a choice for an attempt.
func (n *node) take(a job.Attempt, ch *choice, now time.Time) {
	for other, h := range n.holdings {
		if other.Job == a.Job && other.Partition == a.Partition {
			h.limbo = true // the ledger fences it out
		}
	}
	h := &holding{attempt: a, amounts: slices.Clone(ch.amounts), full: ch.needs.Amounts, asked: true}
	for _, b := range h.amounts {
		n.held[b.pool] += b.bytes
	}
	for _, need := range ch.assets {
		s := need.asset
		if !s.present {
			s.present, s.confirmed, s.bytes = true, false, need.bytes
			n.held[s.pool] += s.bytes
		} else if more := need.bytes - s.bytes; more > 0 {
			s.bytes += more
			n.held[s.pool] += more
		}
		s.refs++
		s.usedAt = now
		h.assets = append(h.assets, s)
	}
	n.holdings[a] = h
}

// drop takes a holding out of the book; assets that only it brought go with it, which it reports.
func (n *node) drop(h *holding, now time.Time) (unloaded bool) {
	for _, b := range h.amounts {
		n.held[b.pool] -= b.bytes
	}
	for _, s := range h.assets {
		s.refs--
		s.usedAt = now
		if s.refs == 0 && s.present && !s.confirmed {
			n.unload(s)
			unloaded = true
		}
	}
	delete(n.holdings, h.attempt)
	return unloaded
}

func (n *node) unload(s *asset) {
	s.present, s.evictAt = false, time.Time{}
	n.held[s.pool] -= s.bytes
}

// free is what can still be granted of a pool; it is negative when more is held than there is.
func (n *node) free(pool int) bytesize.Bytes { return n.capacity[pool] - n.held[pool] }
