package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/shared/job"
)

// jobLines is one job in so many lines.
func (m *model) jobLines(room int) []line {
	o := m.opened
	if o.status.value == nil {
		return []line{nil, say(soft, "job %s: not known yet", o.id)}
	}
	r := o.status.value.Record
	head := m.jobHead(r)
	head = append(head, cellLines(r, m.width)...)
	if waits := m.waitLines(); len(waits) > 1 && m.why.id == o.id && !r.State.Ended() {
		head = append(head, waits[:min(len(waits), max(3, room/5))]...)
	}
	head = append(head, say(soft, "PARTITIONS"))
	var rows []line
	for i := range r.Partitions {
		rows = append(rows, m.partitionLines(i, &r.Partitions[i])...)
	}
	left := max(1, room-len(head))
	o.first = max(0, min(o.first, len(rows)-left))
	return append(head, rows[o.first:]...)
}

func (m *model) jobHead(r *job.Record) []line {
	lines := []line{say(strong, "JOB %s", r.ID)}
	took := "for "
	end := m.config.Now()
	if r.EndedAt != nil {
		took, end = "took ", *r.EndedAt
	}
	lines = append(lines,
		join(say(stateStyle(r.State), "  %s", r.State), say(plain, ": %d of %d partitions verified, %s%s", r.VerifiedCount(),
			len(r.Partitions), took, span(end.Sub(r.SubmittedAt)))),
		say(plain, "  %s, miner %s, sector %d", r.Circuit, r.Miner, r.SectorNumber),
		say(plain, "  tenant %s  key %s", r.Tenant, r.Key),
	)
	if r.Fault != nil {
		lines = append(lines, say(bad, "  %s", faultText(r.Fault)))
	}
	return lines
}

// cell is the letter of a stage.
func cell(s job.Stage) piece {
	switch s {
	case job.Waiting:
		return piece{".", soft}
	case job.Reserved:
		return piece{"r", busy}
	case job.Synthesizing:
		return piece{"s", busy}
	case job.Sealed:
		return piece{"S", busy}
	case job.Proving:
		return piece{"p", busy}
	case job.Proved:
		return piece{"P", busy}
	case job.Verified:
		return piece{"#", good}
	case job.StageFailed:
		return piece{"x", bad}
	case job.StageStopped:
		return piece{"-", bad}
	}
	return piece{"?", bad}
}

// cellLines have a cell for each partition, and what the letters mean.
func cellLines(r *job.Record, width int) (lines []line) {
	perLine := width - 4
	seen := map[job.Stage]int{}
	var all line
	for i := range r.Partitions {
		seen[r.Partitions[i].Stage]++
		all = append(all, cell(r.Partitions[i].Stage))
	}
	for some := range slices.Chunk(all, perLine) {
		lines = append(lines, join(say(plain, "  "), line(some)))
	}
	legend := say(plain, " ")
	for _, s := range slices.Sorted(maps.Keys(seen)) {
		legend = join(legend, line{{" ", plain}, cell(s)}, say(soft, " %d %s", seen[s], s))
	}
	return append(lines, legend)
}

func (m *model) partitionLines(index int, p *job.Partition) []line {
	where := ""
	if p.Stage.Running() {
		where = fmt.Sprintf("%s/%s for %s", p.Node, p.Device, m.config.since(p.StageAt))
	}
	tries := ""
	if n := p.AttemptCount(); n > 1 {
		tries = fmt.Sprintf(", %d attempts", n)
	}
	if p.FailedCount+p.LostCount > 0 {
		tries += fmt.Sprintf(" (%d failed, %d lost)", p.FailedCount, p.LostCount)
	}
	if p.NotBefore != nil {
		tries += ", next at " + m.config.clock(*p.NotBefore)
	}
	lines := []line{join(column(plain, 6, "  %d", index), line{cell(p.Stage)}, column(plain, 14, " %s", p.Stage),
		say(plain, "%s%s", where, tries))}
	if len(p.Attempts) == 0 {
		return lines
	}
	a := &p.Attempts[len(p.Attempts)-1]
	text := fmt.Sprintf("        %s/%s", a.Node, a.Device)
	if a.Outcome != "" {
		text += " " + string(a.Outcome)
	}
	if a.EndedAt != nil {
		text += " after " + span(a.EndedAt.Sub(a.StartedAt))
	}
	if times := secondsText(a.Seconds); times != "" {
		text += ": " + times
	}
	l := say(soft, "%s", text)
	if a.Fault != nil {
		l = join(l, say(bad, "  %s", a.Fault.Message))
	}
	return append(lines, l)
}

func secondsText(seconds map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(seconds)) {
		if seconds[name] >= 0.05 {
			parts = append(parts, fmt.Sprintf("%s %.1f s", name, seconds[name]))
		}
	}
	return strings.Join(parts, ", ")
}
