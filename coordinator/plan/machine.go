package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// attempt is one partition on its way.
type attempt struct {
	name    job.Attempt
	job     *simJob
	node    *machine
	device  *device
	times   *DeviceTimes
	booked  ledger.Amounts
	holding ledger.Amounts
	// assetsAt is when the assets that it needs are loaded.
	assetsAt time.Duration
	span     Span
	// held is what kept it waiting last before it was admitted, waited for how long it waited in all.
	held   scheduler.Hold
	waited time.Duration
	// left is the share of its synthesis that is still to do.
	left float64
}

// Span is when a partition went through its stages.
type Span struct {
	Job       int
	Partition int
	Node      int
	Device    int
	// Admitted, Started and Sealed bound waiting for a slot and synthesis; Taken is when a feeder took it, Proving and
	// Proved bound the device's work, Ended the CPU's after it, Gone its bytes.
	Admitted, Started, Sealed, Taken, Proving, Proved, Ended, Gone time.Duration
}

// machine is one node in simulated time.
type machine struct {
	index int
	name  job.Node
	kind  *NodeKind
	home  *island
	// capacity is what it has, told what the scheduler is told.
	capacity, told ledger.Amounts
	pools          []ledger.Pool
	touch          func()
	touched        bool
	devices        []*device
	// queue waits for a slot, synthesizing has one.
	queue, synthesizing []*attempt
	// workedAt is until when the progress of syntheses is counted, version invalidates their planned ends.
	workedAt time.Duration
	version  int
	// assets by name and pool, the time they are loaded; loadFree is when the loader is free.
	assets   map[assetKey]loaded
	loadFree time.Duration
	held     map[ledger.Pool]*series
	booked   map[ledger.Pool]*series
	// synthTime is the sum of all syntheses' times, sealedMax the most partitions that waited for a feeder at once.
	synthTime time.Duration
	sealed    int
	sealedMax int
}

type assetKey struct{ name, pool string }

type loaded struct {
	bytes bytesize.Bytes
	at    time.Duration
}

// device is one device in simulated time.
type device struct {
	index   int
	name    job.Device
	kind    *DeviceKind
	ready   []*attempt // sealed, in order
	hands   []*attempt // taken by feeders, not proved yet
	proving *attempt
	busy    time.Duration
	count   int
	// provingAt is since when it proves what it proves.
	provingAt time.Duration
	// idleAt is since when it has nothing to prove.
	idleAt time.Duration
}

func newMachine(index int, kind *NodeKind, number int, policy *Policy) *machine {
	m := &machine{
		index: index, kind: kind, name: job.Node(fmt.Sprintf("%s-%d", kind.Name, number)), assets: map[assetKey]loaded{},
		held: map[ledger.Pool]*series{}, booked: map[ledger.Pool]*series{},
	}
	if kind.Count == 1 {
		m.name = job.Node(kind.Name)
	}
	ram := kind.RAM
	if policy.Name == PolicyRack {
		ram = max(0, ram-ram/20-512*bytesize.MiB)
	}
	m.capacity = ledger.Amounts{ledger.PoolRAM: ram}
	for pool, bytes := range map[ledger.Pool]bytesize.Bytes{
		ledger.PoolSHM: min(kind.SHM, ram), ledger.PoolPinned: min(kind.Pinned, ram), ledger.PoolDisk: kind.Disk,
	} {
		if bytes > 0 {
			m.capacity[pool] = bytes
		}
	}
	for i := range kind.Devices {
		d := &kind.Devices[i]
		for range d.Count {
			name := job.Device(fmt.Sprintf("gpu%02d", len(m.devices)))
			if d.VRAM > 0 {
				m.capacity[ledger.PoolVRAM(name)] = d.VRAM
			}
			m.devices = append(m.devices, &device{index: len(m.devices), name: name, kind: d})
		}
	}
	m.told = m.capacity
	if policy.Name == PolicyBox {
		m.told = ledger.Amounts{} // nobody counts
		for pool := range m.capacity {
			m.told[pool] = bytesize.Max
		}
	}
	m.pools = m.capacity.Pools()
	for _, pool := range m.pools {
		m.held[pool], m.booked[pool] = &series{}, &series{}
	}
	return m
}

// needs are what the scheduler is told of a circuit on a device.
func (m *machine) needs(c *Circuit, d *device) scheduler.Needs {
	needs := scheduler.Needs{Amounts: c.Sizes.booked()}
	for _, a := range c.Assets {
		named := ledger.Asset{Name: a.Name + ":" + c.Name, Pool: ledger.Pool(a.Pool), Bytes: a.Bytes}
		if a.PerDevice || a.Pool == vram {
			named.Name = fmt.Sprintf("%s:%s.%s", a.Name, d.name, c.Name)
		}
		if a.Pool == vram {
			named.Pool = ledger.PoolVRAM(d.name)
		}
		needs.Assets = append(needs.Assets, named)
	}
	return needs
}

// lacks tells which pool can't hold one partition and its assets, "" when all can.
func (m *machine) lacks(needs *scheduler.Needs) (pool ledger.Pool, need bytesize.Bytes) {
	sum := needs.Amounts.Clone()
	for _, a := range needs.Assets {
		sum[a.Pool] += a.Bytes
	}
	for _, pool := range sum.Pools() {
		if sum[pool] > m.capacity[pool] {
			return pool, sum[pool]
		}
	}
	return "", 0
}

// load makes sure that assets are there, and says when.
func (m *machine) load(assets []ledger.Asset, now time.Duration, warm bool) time.Duration {
	m.touch()
	var at time.Duration
	for _, a := range assets {
		key := assetKey{a.Name, string(a.Pool)}
		have, ok := m.assets[key]
		if !ok {
			have = loaded{bytes: a.Bytes, at: now}
			if !warm {
				m.loadFree = max(m.loadFree, now) + seconds(float64(a.Bytes)/float64(m.kind.LoadRate))
				have.at = m.loadFree
			}
			m.assets[key] = have
			m.held[a.Pool].add(now, a.Bytes)
			m.booked[a.Pool].add(now, a.Bytes)
		}
		at = max(at, have.at)
	}
	return at
}

// unload takes an asset out.
func (m *machine) unload(name string, now time.Duration) {
	m.touch()
	for key, have := range m.assets {
		if key.name == name {
			m.held[ledger.Pool(key.pool)].add(now, -have.bytes)
			m.booked[ledger.Pool(key.pool)].add(now, -have.bytes)
			delete(m.assets, key)
		}
	}
}

// book takes or gives back the bytes of an attempt's whole path.
func (m *machine) book(amounts ledger.Amounts, now time.Duration, sign bytesize.Bytes) {
	m.touch()
	for pool, bytes := range amounts {
		m.booked[pool].add(now, sign*bytes)
	}
}

// hold changes what an attempt really holds.
func (m *machine) hold(a *attempt, amounts ledger.Amounts, now time.Duration) {
	m.touch()
	for pool, bytes := range a.holding {
		m.held[pool].add(now, -bytes)
	}
	for pool, bytes := range amounts {
		m.held[pool].add(now, bytes)
	}
	a.holding = amounts
}

// pace is how much of its work a synthesis does per second, with all that run now.
func (m *machine) pace(a *attempt) float64 {
	return 1 / a.job.circuit.Synthesis.seconds(len(m.synthesizing), m.kind.Cores)
}

// work lets the syntheses go on until now.
func (m *machine) work(now time.Duration) {
	passed := (now - m.workedAt).Seconds()
	m.workedAt = now
	for _, a := range m.synthesizing {
		a.left = max(0, a.left-passed*m.pace(a))
	}
}

// nextSealed is when the first synthesis ends if nothing changes; false when there is none.
func (m *machine) nextSealed() (time.Duration, bool) {
	first := math.Inf(1)
	for _, a := range m.synthesizing {
		first = min(first, a.left/m.pace(a))
	}
	if math.IsInf(first, 1) {
		return 0, false
	}
	return m.workedAt + seconds(first), true
}

// sealedNow takes out the syntheses that are done. What is less than a nanosecond's work counts as nothing.
func (m *machine) sealedNow() []*attempt {
	var done []*attempt
	m.synthesizing = slices.DeleteFunc(m.synthesizing, func(a *attempt) bool {
		if a.left > 2e-9*m.pace(a) {
			return false
		}
		done = append(done, a)
		return true
	})
	return done
}

// seconds is a duration of so many seconds, rounded up to a nanosecond; what lasts longer than a plan may ends beyond
// it.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(min(s, 2*HorizonMax.Seconds()) * 1e9))
}
