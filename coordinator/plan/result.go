package plan

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// Result is what a rack does with a load. Times are in seconds of simulated time.
type Result struct {
	Jobs       int `json:"jobs"`
	Partitions int `json:"partitions"`
	// Makespan is from the first submission to the end of the last proof; SecondsPerProof and ProofsPerHour are jobs over
	// that, filling and emptying of the pipeline included.
	Makespan        float64 `json:"makespan_seconds"`
	SecondsPerProof float64 `json:"seconds_per_proof"`
	ProofsPerHour   float64 `json:"proofs_per_hour"`
	// LongestWait is how long a partition waited for admission at most, JobMedian and JobLongest from submission to proof.
	LongestWait float64 `json:"longest_wait_seconds"`
	JobMedian   float64 `json:"job_median_seconds"`
	JobLongest  float64 `json:"job_longest_seconds"`
	// DeviceIdle is the share of the makespan in which devices had nothing to prove, IdleBecause the same by cause.
	DeviceIdle  float64           `json:"device_idle_share"`
	IdleBecause map[Cause]float64 `json:"idle_because"`
	Bottleneck  string            `json:"bottleneck"`
	Nodes       []NodeResult      `json:"nodes"`
	// Killed tells how the run ended when a box held more than it has; then all figures are of the time up to there.
	Killed *Killed     `json:"killed,omitempty"`
	Cost   *CostResult `json:"cost,omitempty"`
	// Fingerprint is equal for equal runs: it covers every decision of the scheduler with its time.
	Fingerprint uint64 `json:"-"`

	spans    []Span
	machines []*machine
}

// Killed is a box that held more than it has.
type Killed struct {
	Node     string         `json:"node"`
	Pool     string         `json:"pool"`
	Held     bytesize.Bytes `json:"held_bytes"`
	Capacity bytesize.Bytes `json:"capacity_bytes"`
	// Sealed are the partitions that waited for the device then, At the second.
	Sealed int     `json:"sealed"`
	At     float64 `json:"at_seconds"`
}

// NodeResult is one node.
type NodeResult struct {
	Name    string         `json:"name"`
	Kind    string         `json:"kind"`
	Pools   []PoolResult   `json:"pools"`
	Devices []DeviceResult `json:"devices"`
	// SynthMean is how many syntheses ran at once on average, SealedMost how many partitions waited for a device at most.
	SynthMean  float64 `json:"synthesizing_mean"`
	SealedMost int     `json:"sealed_most"`
}

// PoolResult is the peak of a pool. Booked counts each attempt's whole path from admission until its bytes are gone, as
// the ledger does; Held counts what the stages really hold. Booked is at least Held.
type PoolResult struct {
	Pool     string         `json:"pool"`
	Capacity bytesize.Bytes `json:"capacity_bytes"`
	Booked   bytesize.Bytes `json:"booked_peak_bytes"`
	Held     bytesize.Bytes `json:"held_peak_bytes"`
}

// DeviceResult is one device.
type DeviceResult struct {
	Name       string  `json:"name"`
	Kind       string  `json:"kind"`
	Partitions int     `json:"partitions"`
	IdleShare  float64 `json:"idle_share"`
}

// CostResult is what proofs cost.
type CostResult struct {
	Currency string  `json:"currency"`
	PerProof float64 `json:"per_proof"`
	// MachinesPerProof is the part of prices, PowerPerProof that of electricity.
	MachinesPerProof float64 `json:"machines_per_proof"`
	PowerPerProof    float64 `json:"power_per_proof"`
	KWhPerProof      float64 `json:"kwh_per_proof"`
	PriceTotal       float64 `json:"price_total"`
	MeanWatts        float64 `json:"mean_watts"`
}

// Simulate runs a load once. Inputs must have been validated. Errors: fault.Exhausted when something can never fit,
// fault.Invalid when the profile does not know a circuit or device, and the context's.
func Simulate(ctx context.Context, p *Profile, r *Rack, l *Load) (*Result, error) {
	s, err := newSimulation(p, r, l)
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return s.result(), nil
}

func (s *simulation) result() *Result {
	end := s.lastAt
	if s.killed != nil {
		end = s.now
		s.cutOff(end)
	}
	jobs := len(s.latency)
	length := max(0, end-max(0, s.firstAt)).Seconds()
	r := &Result{
		Jobs: jobs, Partitions: s.proofs(), Makespan: round(length), LongestWait: round(s.waited.Seconds()),
		Killed: s.killed, IdleBecause: map[Cause]float64{}, Fingerprint: s.hash, spans: s.spans, machines: s.machines,
	}
	if jobs > 0 && length > 0 {
		r.SecondsPerProof = round(length / float64(jobs))
		r.ProofsPerHour = round(float64(jobs) * 3600 / length)
		slices.Sort(s.latency)
		r.JobMedian = round(s.latency[(jobs-1)/2].Seconds())
		r.JobLongest = round(s.latency[jobs-1].Seconds())
	}
	whole := time.Duration(0)
	busy := time.Duration(0)
	for _, m := range s.machines {
		n := NodeResult{Name: string(m.name), Kind: m.kind.Name, SealedMost: m.sealedMax}
		if end > 0 {
			n.SynthMean = round(m.synthTime.Seconds() / end.Seconds())
		}
		for _, pool := range m.pools {
			n.Pools = append(n.Pools, PoolResult{
				Pool: string(pool), Capacity: m.capacity[pool], Booked: m.booked[pool].peak, Held: m.held[pool].peak,
			})
		}
		for _, d := range m.devices {
			if d.proving != nil { // killed in mid-proof
				d.busy += end - d.provingAt
			} else {
				s.idle[CauseNoWork] += max(0, end-d.idleAt)
			}
			whole += end
			busy += d.busy
			n.Devices = append(n.Devices, DeviceResult{
				Name: string(d.name), Kind: d.kind.Kind, Partitions: d.count, IdleShare: share(end-d.busy, end),
			})
		}
		r.Nodes = append(r.Nodes, n)
	}
	r.DeviceIdle = share(whole-busy, whole)
	for cause, idle := range s.idle {
		if part := share(idle, whole); part > 0 {
			r.IdleBecause[cause] = part
		}
	}
	r.Bottleneck = bottleneck(r)
	r.Cost = s.rack.costs(r)
	return r
}

// cutOff adds the attempts that were under way when a box was killed, as far as they had come.
func (s *simulation) cutOff(end time.Duration) {
	var cut []Span
	for _, is := range s.islands {
		for _, a := range is.live {
			at := &a.span
			steps := []*time.Duration{&at.Started, &at.Sealed, &at.Taken, &at.Proving, &at.Proved, &at.Ended, &at.Gone}
			for i := len(steps) - 1; i >= 0 && *steps[i] == 0; i-- {
				*steps[i] = end
			}
			cut = append(cut, *at)
		}
	}
	slices.SortFunc(cut, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Partition, b.Partition))
	})
	s.spans = append(s.spans, cut...)
}

// proofs counts the partitions that were proved.
func (s *simulation) proofs() int {
	count := 0
	for _, m := range s.machines {
		for _, d := range m.devices {
			count += d.count
		}
	}
	return count
}

// busyEnough is the share of its time from which on a device is the bottleneck.
const busyEnough = 0.85

// bottleneck is what keeps proofs from being made faster: the devices when they are busy, else the largest cause of
// their idleness.
func bottleneck(r *Result) string {
	if r.Killed != nil {
		return "memory: the box was killed"
	}
	if 1-r.DeviceIdle >= busyEnough {
		return "devices"
	}
	causes := slices.Sorted(maps.Keys(r.IdleBecause))
	if len(causes) == 0 {
		return "devices"
	}
	return string(slices.MaxFunc(causes, func(a, b Cause) int { return cmp.Compare(r.IdleBecause[a], r.IdleBecause[b]) }))
}

// hoursPerYear is the mean of the calendar.
const hoursPerYear = 8766

// costs spreads prices over years and counts power over the makespan; nil without cost.years.
func (r *Rack) costs(result *Result) *CostResult {
	if r.Cost.Years == 0 || result.ProofsPerHour == 0 {
		return nil
	}
	c := &CostResult{Currency: r.Cost.Currency}
	next := 0
	for i := range r.Nodes {
		n := &r.Nodes[i]
		for range n.Count {
			c.PriceTotal += n.Price
			c.MeanWatts += n.Watts
			device := 0
			for j := range n.Devices {
				d := &n.Devices[j]
				for range d.Count {
					idle := result.Nodes[next].Devices[device].IdleShare
					c.PriceTotal += d.Price
					c.MeanWatts += d.Watts*(1-idle) + d.IdleWatts*idle
					device++
				}
			}
			next++
		}
	}
	c.KWhPerProof = c.MeanWatts / 1000 / result.ProofsPerHour
	c.PowerPerProof = c.KWhPerProof * r.Cost.PerKWh
	c.MachinesPerProof = c.PriceTotal / (r.Cost.Years * hoursPerYear) / result.ProofsPerHour
	c.PerProof = c.PowerPerProof + c.MachinesPerProof
	for _, v := range []*float64{&c.KWhPerProof, &c.PowerPerProof, &c.MachinesPerProof, &c.PerProof, &c.MeanWatts} {
		*v = math.Round(*v*1e6) / 1e6
	}
	return c
}

// More is what one more node of a kind brings.
type More struct {
	Kind          string  `json:"kind"`
	ProofsPerHour float64 `json:"proofs_per_hour"`
	// Gain is in proofs per hour, PerProof the new cost of one (0 without costs).
	Gain     float64 `json:"gain"`
	PerProof float64 `json:"cost_per_proof,omitempty"`
}

// Report is a whole plan.
type Report struct {
	Profile string  `json:"profile"`
	Policy  Policy  `json:"policy"`
	Result  *Result `json:"result"`
	More    []More  `json:"one_more"`
}

// Make runs a load, and again with one more node of each kind.
func Make(ctx context.Context, p *Profile, r *Rack, l *Load) (*Report, error) {
	result, err := Simulate(ctx, p, r, l)
	if err != nil {
		return nil, err
	}
	report := &Report{Profile: p.Name, Policy: r.Policy, Result: result}
	for i := range r.Nodes {
		more, err := Simulate(ctx, p, r.plusOne(i), l)
		if err != nil {
			return nil, err
		}
		m := More{Kind: r.Nodes[i].Name, ProofsPerHour: more.ProofsPerHour,
			Gain: round(more.ProofsPerHour - result.ProofsPerHour)}
		if more.Cost != nil {
			m.PerProof = more.Cost.PerProof
		}
		report.More = append(report.More, m)
	}
	return report, nil
}

func share(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return round(part.Seconds() / whole.Seconds())
}

// round keeps what is worth reading and the same on every machine.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }
