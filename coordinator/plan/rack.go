package plan

import (
	"io"
	"maps"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Rack is machines, how work is spread over them, and what they cost.
type Rack struct {
	Nodes  []NodeKind `toml:"nodes" json:"nodes"`
	Policy Policy     `toml:"policy" json:"policy"`
	Cost   Cost       `toml:"cost" json:"cost"`
}

// NodeKind is Count machines that are alike.
type NodeKind struct {
	// Name is 1 to 24 lower-case letters, digits and inner hyphens.
	Name  string `toml:"name" json:"name"`
	Count int    `toml:"count" json:"count"`
	Cores int    `toml:"cores" json:"cores"`
	// RAM of the machine; policy "rack" leaves 5 % and 512 MiB of it alone, as the agents do. SHM is at most half of RAM
	// when not given, Pinned and Disk are none.
	RAM    bytesize.Bytes `toml:"ram" json:"ram"`
	SHM    bytesize.Bytes `toml:"shm" json:"shm,omitempty"`
	Pinned bytesize.Bytes `toml:"pinned" json:"pinned,omitempty"`
	Disk   bytesize.Bytes `toml:"disk" json:"disk,omitempty"`
	// SynthSlots are partitions synthesized at once; 0 is a quarter of the cores. For policy "box" they are its workers.
	SynthSlots int `toml:"synth_slots" json:"synth_slots,omitempty"`
	// LoadRate is how many bytes of assets it loads per second; 0 is 1 GiB.
	LoadRate bytesize.Bytes `toml:"load_rate" json:"load_rate,omitempty"`
	Devices  []DeviceKind   `toml:"devices" json:"devices"`
	// Price of one machine without its devices, Watts that it draws, working or not.
	Price float64 `toml:"price" json:"price,omitempty"`
	Watts float64 `toml:"watts" json:"watts,omitempty"`
}

// DeviceKind is Count devices of a node.
type DeviceKind struct {
	// Kind is what the profile calls it.
	Kind  string         `toml:"kind" json:"kind"`
	Count int            `toml:"count" json:"count"`
	VRAM  bytesize.Bytes `toml:"vram" json:"vram,omitempty"`
	// Feeders are partitions in the device's hands at once, one of them being proved; 0 is 1.
	Feeders   int     `toml:"feeders" json:"feeders,omitempty"`
	Price     float64 `toml:"price" json:"price,omitempty"`
	Watts     float64 `toml:"watts" json:"watts,omitempty"`
	IdleWatts float64 `toml:"idle_watts" json:"idle_watts,omitempty"`
}

// Policies.
const (
	PolicyRack = "rack"
	PolicyBox  = "box"
	// PermitDelivery holds a worker's permit until a feeder takes the partition, PermitSynthesis only while it is
	// synthesized.
	PermitDelivery  = "delivery"
	PermitSynthesis = "synthesis"
)

// Policy is how work is spread.
type Policy struct {
	// Name is PolicyRack (the default) or PolicyBox.
	Name string `toml:"name" json:"name"`
	// Permit is for PolicyBox: PermitDelivery (the default) or PermitSynthesis.
	Permit string `toml:"permit" json:"permit,omitempty"`
	// WorkAhead, SealedAhead and Ageing are the coordinator's settings for PolicyRack; 0 is its default.
	WorkAhead   Duration `toml:"work_ahead" json:"work_ahead,omitempty"`
	SealedAhead Duration `toml:"sealed_ahead" json:"sealed_ahead,omitempty"`
	Ageing      Duration `toml:"ageing" json:"ageing,omitempty"`
	// Warm has all assets loaded at the start.
	Warm bool `toml:"warm" json:"warm"`
}

// Cost is what turns prices and watts into the cost of a proof.
type Cost struct {
	Currency string `toml:"currency" json:"currency,omitempty"`
	// Years over which prices are spread, PerKWh the price of a kilowatt-hour. Years 0: no costs.
	Years  float64 `toml:"years" json:"years,omitempty"`
	PerKWh float64 `toml:"per_kwh" json:"per_kwh,omitempty"`
}

// ReadRack reads and checks machines. Errors are fault.Invalid, with the file's name.
func ReadRack(r io.Reader, name string) (*Rack, error) {
	var rack Rack
	if err := decode(r, "nodes "+name, &rack); err != nil {
		return nil, err
	}
	rack.fill()
	return &rack, rack.Validate()
}

// fill puts defaults where nothing was given.
func (r *Rack) fill() {
	if r.Policy.Name == "" {
		r.Policy.Name = PolicyRack
	}
	if r.Policy.Name == PolicyBox && r.Policy.Permit == "" {
		r.Policy.Permit = PermitDelivery
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.SynthSlots == 0 {
			n.SynthSlots = max(1, n.Cores/4)
		}
		if n.SHM == 0 {
			n.SHM = n.RAM / 2
		}
		if n.LoadRate == 0 {
			n.LoadRate = bytesize.GiB
		}
		for j := range n.Devices {
			if n.Devices[j].Feeders == 0 {
				n.Devices[j].Feeders = 1
			}
		}
	}
}

// Validate tells all that is wrong with a rack.
func (r *Rack) Validate() error {
	c := &checker{what: "nodes"}
	c.count("number of kinds", len(r.Nodes), 1, KindsMax)
	seen, nodes := map[string]bool{}, 0
	for i := range min(len(r.Nodes), KindsMax) {
		n := &r.Nodes[i]
		if _, err := job.ParseNode(n.Name); err != nil || len(n.Name) > 24 {
			c.addf("nodes[%d].name %q: use 1 to 24 lower-case letters, digits and inner hyphens", i, clip(n.Name))
		}
		if seen[n.Name] {
			c.addf("node %q is there twice", n.Name)
		}
		seen[n.Name] = true
		c.count(clip(n.Name)+": count", n.Count, 0, NodesMax)
		nodes += min(max(n.Count, 0), NodesMax)
		n.check(c)
	}
	c.count("number of nodes", nodes, 1, NodesMax)
	r.Policy.check(c)
	c.number("cost.years", r.Cost.Years, 0, 100, false)
	c.number("cost.per_kwh", r.Cost.PerKWh, 0, MoneyMax, false)
	if len(r.Cost.Currency) > 8 {
		c.addf("cost.currency has more than 8 characters")
	}
	return c.err("docs/plan.md describes the format")
}

func (n *NodeKind) check(c *checker) {
	at := clip(n.Name)
	c.count(at+": cores", n.Cores, 1, CoresMax)
	c.count(at+": synth_slots", n.SynthSlots, 1, SlotsMax)
	c.number(at+": ram", float64(n.RAM), 0, float64(bytesize.Max), true)
	c.number(at+": load_rate", float64(n.LoadRate), 0, float64(bytesize.Max), true)
	for key, bytes := range map[string]bytesize.Bytes{"shm": n.SHM, "pinned": n.Pinned} {
		if bytes > n.RAM {
			c.addf("%s: %s is more than ram, of which it is a part", at, key)
		}
	}
	c.number(at+": price", n.Price, 0, MoneyMax, false)
	c.number(at+": watts", n.Watts, 0, WattsMax, false)
	total, seen := 0, map[string]bool{}
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Kind == "" || len(d.Kind) > 64 || seen[d.Kind] {
			c.addf("%s: device kind %q is empty, too long or there twice", at, clip(d.Kind))
		}
		seen[d.Kind] = true
		c.count(at+": devices.count", d.Count, 1, DevicesMax)
		c.count(at+": devices.feeders", d.Feeders, 1, FeedersMax)
		c.number(at+": devices.price", d.Price, 0, MoneyMax, false)
		c.number(at+": devices.watts", d.Watts, 0, WattsMax, false)
		c.number(at+": devices.idle_watts", d.IdleWatts, 0, WattsMax, false)
		total += min(max(d.Count, 0), DevicesMax)
	}
	c.count(at+": number of devices", total, 1, DevicesMax)
}

func (p *Policy) check(c *checker) {
	if p.Name != PolicyRack && p.Name != PolicyBox {
		c.addf("policy.name %q is none of rack, box", clip(p.Name))
	}
	if p.Name == PolicyBox && p.Permit != PermitDelivery && p.Permit != PermitSynthesis {
		c.addf("policy.permit %q is none of delivery, synthesis", clip(p.Permit))
	}
	ahead := map[string]Duration{"work_ahead": p.WorkAhead, "sealed_ahead": p.SealedAhead, "ageing": p.Ageing}
	for _, key := range slices.Sorted(maps.Keys(ahead)) {
		d := ahead[key]
		switch {
		case d < 0 || time.Duration(d) > 24*time.Hour:
			c.addf("policy.%s is %s: from 0s to 24h", key, time.Duration(d))
		case d > 0 && p.Name == PolicyBox:
			c.addf("policy.%s has no effect with policy box", key)
		}
	}
	if p.Name == PolicyRack && p.Permit != "" {
		c.addf("policy.permit has no effect with policy rack")
	}
}

// plusOne is the rack with one more node of a kind.
func (r *Rack) plusOne(kind int) *Rack {
	more := *r
	more.Nodes = slices.Clone(r.Nodes)
	more.Nodes[kind].Count++
	return &more
}

// Load is the jobs.
type Load struct {
	Jobs []JobKind `toml:"jobs" json:"jobs"`
}

// JobKind is Count jobs that are alike.
type JobKind struct {
	Circuit  string `toml:"circuit" json:"circuit"`
	Count    int    `toml:"count" json:"count"`
	Priority int    `toml:"priority" json:"priority,omitempty"`
	// At is when the first comes, Every when each next one does; 0 is all at once.
	At    Duration `toml:"at" json:"at,omitempty"`
	Every Duration `toml:"every" json:"every,omitempty"`
	// InFlight is how many of these the client has unfinished at once; 0 is no bound.
	InFlight int `toml:"in_flight" json:"in_flight,omitempty"`
}

// ReadLoad reads and checks jobs. Errors are fault.Invalid, with the file's name.
func ReadLoad(r io.Reader, name string) (*Load, error) {
	var l Load
	if err := decode(r, "jobs "+name, &l); err != nil {
		return nil, err
	}
	return &l, l.Validate()
}

// Validate tells all that is wrong with a load.
func (l *Load) Validate() error {
	c := &checker{what: "jobs"}
	c.count("number of entries", len(l.Jobs), 1, LoadsMax)
	for i := range min(len(l.Jobs), LoadsMax) {
		j := &l.Jobs[i]
		c.count("jobs.count", j.Count, 1, PartitionsMax)
		c.count("jobs.priority", j.Priority, -1000, 1000)
		c.count("jobs.in_flight", j.InFlight, 0, PartitionsMax)
		c.number("jobs.at, in seconds,", time.Duration(j.At).Seconds(), 0, SecondsMax, false)
		c.number("jobs.every, in seconds,", time.Duration(j.Every).Seconds(), 0, SecondsMax, false)
	}
	return c.err("docs/plan.md describes the format")
}

// partitions are those of all jobs, checked against the limit and the profile.
func (l *Load) partitions(p *Profile) (int, error) {
	total := 0
	for i := range l.Jobs {
		circuit, err := p.circuit(l.Jobs[i].Circuit)
		if err != nil {
			return 0, err
		}
		if total += circuit.Partitions * l.Jobs[i].Count; total > PartitionsMax {
			return 0, fault.WithHint(fault.New(fault.Invalid, "the jobs have more than %d partitions", PartitionsMax),
				"plan a shorter load: rates do not change with its length")
		}
	}
	return total, nil
}
