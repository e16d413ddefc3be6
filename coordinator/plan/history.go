package plan

import (
	"context"
	_ "embed" // the record's text
	"fmt"
	"io"
	"math"
	"strings"
	"text/template"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/bytesize"
)

// HistoryRow is a published run of the one-box system for 32 GiB, and what the planner makes of it.
type HistoryRow struct {
	// Workers are partitions in synthesis or waiting for the card at once, Feeders the threads that feed it, Jobs how
	// many proofs. Published figures of 0 were not published.
	Workers, Feeders, Jobs     int
	PublishedSeconds           float64
	PublishedRSS               float64 // GiB
	SecondsCause, MemoryCause  string
	Result                     *Result
	Seconds, HeldGiB, BookedGi float64
}

// within is the deviation that a row may have without a cause.
const within = 0.15

// causes of rows that deviate more, by what they are about.
const (
	causeFeeders = "For a moment after the first wave two feeders hold a partition while seven workers " +
		"synthesize again. The profile has each at its peak from its first second; really a synthesis that has " +
		"just begun holds little. Published with one feeder and with two: 208 and 204 GiB."
	causeGone = "The published memory per worker rises from 20 to 27.5 GiB in rows where the card is always " +
		"busy, although no stage holds more: most likely memory that was freed and has not gone back. No time for " +
		"that is published, so the profile gives it none. For the same permit 294.7 GiB were reported once."
	causeBandwidth = "Thirty syntheses starve the threads that prepare work for the card, so the card slows down too. " +
		"The profile has one time for the card, whatever else runs."
)

// historyRows are the published rows; causes are given for those that deviate, and tested against them.
func historyRows() []HistoryRow {
	return []HistoryRow{
		{Workers: 1, Feeders: 1, Jobs: 5, PublishedSeconds: 290, PublishedRSS: 104},
		{Workers: 2, Feeders: 1, Jobs: 5, PublishedSeconds: 152.0, PublishedRSS: 110},
		{Workers: 7, Feeders: 1, Jobs: 5, PublishedSeconds: 53.3, PublishedRSS: 208},
		{Workers: 7, Feeders: 2, Jobs: 5, PublishedSeconds: 51.2, PublishedRSS: 204, MemoryCause: causeFeeders},
		{Workers: 10, Feeders: 1, Jobs: 5, PublishedSeconds: 45.4, PublishedRSS: 310},
		{Workers: 10, Feeders: 2, Jobs: 5, PublishedSeconds: 42.5, PublishedRSS: 271},
		{Workers: 12, Feeders: 2, Jobs: 5, PublishedSeconds: 42.5, PublishedRSS: 373},
		{Workers: 12, Feeders: 2, Jobs: 20, PublishedSeconds: 37.7, PublishedRSS: 400, MemoryCause: causeGone},
		{Workers: 10, Feeders: 2, Jobs: 20, PublishedSeconds: 38.5, PublishedRSS: 321},
		{Workers: 14, Feeders: 2, Jobs: 20, PublishedSeconds: 37.8, PublishedRSS: 457, MemoryCause: causeGone},
		{Workers: 16, Feeders: 2, Jobs: 20, PublishedSeconds: 38.4, PublishedRSS: 510, MemoryCause: causeGone},
		{Workers: 30, Feeders: 2, Jobs: 5, PublishedSeconds: 60.4, SecondsCause: causeBandwidth},
	}
}

// SecondsOff and MemoryOff are the deviations of s/proof and of the bytes held from what was published, 0 where nothing
// was.
func (h *HistoryRow) SecondsOff() float64 { return off(h.Seconds, h.PublishedSeconds) }

// MemoryOff is that of the bytes held.
func (h *HistoryRow) MemoryOff() float64 { return off(h.HeldGiB, h.PublishedRSS) }

func off(value, published float64) float64 {
	if published == 0 {
		return 0
	}
	return value/published - 1
}

// oneBox is the published machine, or several of them.
func oneBox(count, workers, feeders int, ram bytesize.Bytes, permit string) *Rack {
	r := &Rack{
		Policy: Policy{Name: PolicyBox, Permit: permit, Warm: true},
		Nodes: []NodeKind{{
			Name: "box", Count: count, Cores: 96, RAM: ram, SynthSlots: workers,
			Devices: []DeviceKind{{Kind: "rtx-5070-ti", Count: 1, VRAM: 16 * bytesize.GiB, Feeders: feeders}},
		}},
	}
	r.fill()
	return r
}

// ourBox is a machine under this project's policy.
func ourBox(count, cores int, ram bytesize.Bytes, card string) *Rack {
	r := &Rack{
		Policy: Policy{Name: PolicyRack, Warm: true},
		Nodes: []NodeKind{{
			Name: "box", Count: count, Cores: cores, RAM: ram,
			Devices: []DeviceKind{{Kind: card, Count: 1, VRAM: 16 * bytesize.GiB, Feeders: 2}},
		}},
	}
	r.fill()
	return r
}

func porepJobs(count int) *Load {
	return &Load{Jobs: []JobKind{{Circuit: "porep-32GiB", Count: count}}}
}

// boxRAM is the published machine's memory.
const boxRAM = 755 * bytesize.GiB

func gib(b bytesize.Bytes) float64 { return float64(b) / float64(bytesize.GiB) }

// ramOf is the first node's ram.
func (r *Result) ramOf() *PoolResult {
	for i := range r.Nodes[0].Pools {
		if r.Nodes[0].Pools[i].Pool == "ram" {
			return &r.Nodes[0].Pools[i]
		}
	}
	panic("plan: a node without ram")
}

// History runs the published rows with the shipped profile, the same for all.
func History(ctx context.Context) ([]HistoryRow, error) {
	p, err := OpenShipped("one-box-32gib")
	if err != nil {
		return nil, err
	}
	rows := historyRows()
	for i := range rows {
		h := &rows[i]
		h.Result, err = Simulate(ctx, p, oneBox(1, h.Workers, h.Feeders, boxRAM, PermitDelivery), porepJobs(h.Jobs))
		if err != nil {
			return nil, err
		}
		ram := h.Result.ramOf()
		h.Seconds, h.HeldGiB, h.BookedGi = h.Result.SecondsPerProof, gib(ram.Held), gib(ram.Booked)
	}
	return rows, nil
}

// PileUp runs 20 proofs at once on a box with 12 workers and two feeders, the permit held until delivery or given back
// after synthesis.
func PileUp(ctx context.Context, permit string, ram bytesize.Bytes) (*Result, error) {
	p, err := OpenShipped("one-box-32gib")
	if err != nil {
		return nil, err
	}
	return Simulate(ctx, p, oneBox(1, 12, 2, ram, permit), porepJobs(20))
}

//go:embed history.md.tmpl
var historyText string

// WriteHistory writes the record docs/bench/plan-history.md.
func WriteHistory(ctx context.Context, w io.Writer) error {
	record, err := template.New("history").Parse(historyText)
	if err != nil {
		panic("plan: the embedded template is broken: " + err.Error())
	}
	t := &tables{ctx: ctx}
	parts := map[string]string{}
	for _, part := range []struct {
		name  string
		write func()
	}{{"Rows", t.rows}, {"PileUp", t.pileUp}, {"Ours", t.ours}, {"Rival", t.rival}} {
		t.out.Reset()
		part.write()
		parts[part.name] = t.out.String()
	}
	if t.err != nil {
		return t.err
	}
	if err := record.Execute(w, parts); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

type tables struct {
	ctx context.Context
	out strings.Builder
	err error
}

func (t *tables) linef(f string, a ...any) { fmt.Fprintf(&t.out, f+"\n", a...) }

// need keeps the first error and stands in for a result then.
func (t *tables) need(r *Result, err error) *Result {
	if err == nil {
		return r
	}
	if t.err == nil {
		t.err = err
	}
	return &Result{Nodes: []NodeResult{{Pools: []PoolResult{{Pool: "ram"}}}}}
}

// open is a shipped profile, or an empty one and an error that is kept.
func (t *tables) open(name string) *Profile {
	p, err := OpenShipped(name)
	if err != nil {
		t.need(nil, err)
		return &Profile{}
	}
	return p
}

func (t *tables) rows() {
	rows, err := History(t.ctx)
	if err != nil {
		t.err = err
		return
	}
	for i := range rows {
		h := &rows[i]
		rss, deviation := "–", "–"
		if h.PublishedRSS > 0 {
			rss, deviation = fmt.Sprintf("%.0f", h.PublishedRSS), percent(h.MemoryOff())
		}
		t.linef("| %d | %d | %d | %.1f | %.1f | %s | %s | %.0f | %s | %.0f | %.0f %% |", h.Workers, h.Feeders, h.Jobs,
			h.PublishedSeconds, h.Seconds, percent(h.SecondsOff()), rss, h.HeldGiB, deviation, h.BookedGi,
			100*h.Result.DeviceIdle)
	}
	t.linef("\nRows beyond 15 %%, each with its cause:\n")
	for i := range rows {
		h := &rows[i]
		for _, d := range []struct {
			what, cause string
			off         float64
		}{{"s/proof", h.SecondsCause, h.SecondsOff()}, {"memory", h.MemoryCause, h.MemoryOff()}} {
			if math.Abs(d.off) > within {
				t.linef("- workers %d, feeders %d, %d proofs: %s %s. %s", h.Workers, h.Feeders, h.Jobs, d.what, percent(d.off),
					d.cause)
			}
		}
	}
}

func (t *tables) pileUp() {
	for _, c := range []struct {
		permit, name string
		ram          bytesize.Bytes
	}{
		{PermitSynthesis, "given back after synthesis", boxRAM},
		{PermitSynthesis, "given back after synthesis", 4 * bytesize.TiB},
		{PermitDelivery, "held until delivery", boxRAM},
	} {
		r := t.need(PileUp(t.ctx, c.permit, c.ram))
		end := "all proofs made"
		if r.Killed != nil {
			end = fmt.Sprintf("killed after %.0f s, %d partitions waiting", r.Killed.At, r.Killed.Sealed)
		}
		t.linef("| %s | %.0f GiB | %d | %.0f GiB | %s |", c.name, gib(c.ram), r.Nodes[0].SealedMost, gib(r.ramOf().Held), end)
	}
}

func (t *tables) ours() {
	theirs := t.open("one-box-32gib")
	own := t.open("proofrack-card-32gib")
	line := func(name string, p *Profile, r *Rack) {
		got := t.need(Simulate(t.ctx, p, r, porepJobs(20)))
		n := &r.Nodes[0]
		t.linef("| %s | %d | %.0f | %.1f | %.0f | %.1f | %.0f %% | %s |", name, n.Cores, gib(n.RAM), got.SecondsPerProof,
			got.ProofsPerHour, gib(got.ramOf().Booked), 100*got.DeviceIdle, got.Bottleneck)
	}
	line("one-box system, 12 workers, 2 feeders", theirs, oneBox(1, 12, 2, boxRAM, PermitDelivery))
	for _, ahead := range []time.Duration{0, time.Minute} {
		r := oneBox(1, 24, 2, boxRAM, "")
		r.Policy = Policy{Name: PolicyRack, Warm: true, WorkAhead: Duration(ahead)}
		name := fmt.Sprintf("full-width vectors under our scheduler, default look-ahead of %.0f s",
			scheduler.DefaultConfig().WorkAhead.Seconds())
		if ahead > 0 {
			name = "the same, look-ahead of a minute"
		}
		line(name, theirs, r)
	}
	line("ours, card as in the one-box system (3.75 s)", own, ourBox(1, 96, boxRAM, "rtx-5070-ti-3.75s"))
	line("ours, card at 1.8 s", own, ourBox(1, 96, boxRAM, "rtx-5070-ti"))
	line("ours, card at 0.95 s", own, ourBox(1, 96, boxRAM, "rtx-5070-ti-low"))
	line("ours, a small box, card at 3.75 s", own, ourBox(1, 8, 64*bytesize.GiB, "rtx-5070-ti-3.75s"))
	line("ours, a small box, card at 1.8 s", own, ourBox(1, 8, 64*bytesize.GiB, "rtx-5070-ti"))
	line("ours, a small box, card at 0.95 s", own, ourBox(1, 8, 64*bytesize.GiB, "rtx-5070-ti-low"))
}

func (t *tables) rival() {
	theirs := t.open("one-box-32gib")
	own := t.open("proofrack-card-32gib")
	for _, jobs := range []int{1, 4, 6, 40, 200} {
		a := t.need(Simulate(t.ctx, theirs, oneBox(4, 12, 2, boxRAM, PermitDelivery), porepJobs(jobs)))
		b := t.need(Simulate(t.ctx, own, ourBox(4, 96, boxRAM, "rtx-5070-ti-3.75s"), porepJobs(jobs)))
		c := t.need(Simulate(t.ctx, own, ourBox(4, 96, boxRAM, "rtx-5070-ti"), porepJobs(jobs)))
		t.linef("| %d | %.0f / %.0f / %.0f | %.0f / %.0f / %.0f | %.0f / %.0f / %.0f |", jobs, a.Makespan, b.Makespan,
			c.Makespan, a.ProofsPerHour, b.ProofsPerHour, c.ProofsPerHour, a.JobMedian, b.JobMedian, c.JobMedian)
	}
}

// HistoryPictures are drawings for the record by file name, each a function that writes it.
func HistoryPictures(ctx context.Context) (map[string]func(io.Writer) error, error) {
	t := &tables{ctx: ctx}
	theirs, own := t.open("one-box-32gib"), t.open("proofrack-card-32gib")
	pictures := map[string]func(io.Writer) error{}
	add := func(name, title string, p *Profile, r *Rack, jobs int) {
		result := t.need(Simulate(ctx, p, r, porepJobs(jobs)))
		pictures[name] = func(w io.Writer) error { return result.WriteSVG(w, title) }
	}
	add("plan-history-held.svg", "One-box system, 12 workers, 2 feeders, permit held until delivery, 5 proofs", theirs,
		oneBox(1, 12, 2, boxRAM, PermitDelivery), 5)
	add("plan-history-piled.svg", "One-box system, 12 workers, 2 feeders, permit given back after synthesis, 20 proofs",
		theirs, oneBox(1, 12, 2, boxRAM, PermitSynthesis), 20)
	add("plan-history-ours.svg", "Ours, 8 cores, 64 GiB, card assumed at 3.75 s, 5 proofs", own,
		ourBox(1, 8, 64*bytesize.GiB, "rtx-5070-ti-3.75s"), 5)
	return pictures, t.err
}

func percent(v float64) string { return strings.Replace(fmt.Sprintf("%+.1f %%", 100*v), "-", "−", 1) }
