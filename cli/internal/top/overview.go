package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// overview is the rack in so many lines.
func (m *model) overview(room int) []line {
	nodes, nodeAt := m.nodeLines()
	jobs, jobAt := m.jobRows()
	waits, buffers := m.waitLines(), m.bufferLines()
	waits = waits[:min(len(waits), max(2, room/6))]
	buffers = buffers[:min(len(buffers), max(2, room/4))]
	if room < 16 { // what is chosen matters more
		waits, buffers = nil, nil
	}
	left := max(0, room-len(waits)-len(buffers)-2)
	forNodes := max(min(len(nodes), left/2), min(len(nodes), left-len(jobs)))
	all := []line{m.title(ofNodes, "NODES", m.nodesTitle())}
	all = append(all, window(nodes, forNodes, nodeAt)...)
	all = append(all, m.title(ofJobs, "JOBS", m.jobsTitle()))
	all = append(all, window(jobs, left-forNodes, jobAt)...)
	return append(append(all, waits...), buffers...)
}

func (m *model) title(part of, name, more string) line {
	look := soft
	if m.focus == part {
		look = strong
	}
	return join(say(look, "%s", name), say(soft, "  %s", more))
}

func (m *model) nodesTitle() string {
	r := m.nodes.value
	if r == nil {
		return "not known yet"
	}
	ready := 0
	for i := range r.Nodes {
		if r.Nodes[i].Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d of %d ready%s", ready, len(r.Nodes), ordered(nodeOrders()[m.sortNodes].name, m.turned[ofNodes]))
}

func (m *model) jobsTitle() string {
	r := m.jobs.value
	if r == nil {
		return "not known yet"
	}
	active := 0
	for i := range r.Jobs {
		if !r.Jobs[i].State.Ended() {
			active++
		}
	}
	more := ""
	if r.More {
		more = "+"
	}
	return fmt.Sprintf("%d%s, %d not ended%s", len(r.Jobs), more, active, ordered(jobOrders()[m.sortJobs].name,
		m.turned[ofJobs]))
}

func ordered(name string, turned bool) string {
	if turned {
		name += ", turned"
	}
	return ", by " + name
}

// nodeState is one word for how a node is.
func nodeState(n *wire.NodeView) string {
	switch {
	case n.Draining:
		return "draining"
	case n.Cordoned:
		return "cordoned"
	case !n.Ready:
		return "not ready"
	}
	return "ready"
}

// cellColumns is the width of a pool's or a device's cell.
const cellColumns = 42

// nodeLines are all nodes, and the line of the chosen one.
func (m *model) nodeLines() (lines []line, chosen int) {
	if m.nodes.value != nil && len(m.nodes.value.Nodes) == 0 {
		return []line{say(soft, "  none has joined yet")}, 0
	}
	for _, n := range m.shownNodes() {
		state := nodeState(n)
		look := good
		if state != "ready" {
			look = bad
		}
		l := join(say(plain, "  "), column(strong, 14, "%s", n.Node), say(plain, " "), column(look, 10, "%s", state),
			say(plain, "%d running  %d slots", n.Running, n.SynthSlots), say(soft, "  seen %s ago", m.config.since(n.SeenAt)))
		if n.Reason != "" {
			l = join(l, say(bad, "  %s", n.Reason))
		}
		if n.Node == m.node {
			chosen = len(lines)
			if m.focus == ofNodes {
				l = join(say(plain, ">"), l[:1].cutFirst(), l[1:]).mark(m.width)
			}
		}
		lines = append(append(lines, l), m.cells(n)...)
	}
	return lines, chosen
}

// cutFirst is a line without its first letter, which is a space.
func (l line) cutFirst() line { return line{{l[0].text[1:], l[0].style}} }

// cells are a node's pools and devices, as many beside each other as fit.
func (m *model) cells(n *wire.NodeView) []line {
	var cells []line
	for _, pool := range n.Capacity.Pools() {
		used, whole := n.Reserved[pool], n.Capacity[pool]
		cells = append(cells, join(column(soft, 7, "%s", pool), bar(used, whole, 12),
			say(plain, " %s", amounts(used, whole))))
	}
	var troubles []line // have a line of their own
	for i := range n.Devices {
		d := &n.Devices[i]
		name := column(soft, 7, "%s", d.Device)
		switch {
		case d.Quarantined:
			troubles = append(troubles, join(say(plain, "    "), name, say(bad, "quarantined: %s", d.Reason)))
		case !d.Healthy:
			troubles = append(troubles, join(say(plain, "    "), name, say(bad, "unhealthy: %s", d.Reason)))
		case len(d.Circuits) == 0:
			cells = append(cells, join(name, say(bad, "proves nothing yet"), say(soft, " %s", d.Name)))
		default:
			cells = append(cells, join(name, say(good, "healthy"), say(soft, " %s", d.Name)))
		}
	}
	perLine := max(1, (m.width-4)/cellColumns)
	var lines []line
	for some := range slices.Chunk(cells, perLine) {
		l := say(plain, "    ")
		for _, c := range some {
			if perLine > 1 {
				c = c.fit(cellColumns - 1).pad(cellColumns)
			}
			l = append(l, c...)
		}
		lines = append(lines, l)
	}
	return append(lines, troubles...)
}

// amounts says how much of a pool is booked.
func amounts(used, whole bytesize.Bytes) string {
	return fmt.Sprintf("%s of %s", size(used), size(whole))
}

// barColumns is the width of a job's bar.
const barColumns = 12

// jobRows are all jobs, and the line of the chosen one.
func (m *model) jobRows() (lines []line, chosen int) {
	if m.jobs.value != nil && len(m.jobs.value.Jobs) == 0 {
		return []line{say(soft, "  none: \"proofrack submit\" makes one")}, 0
	}
	for _, j := range m.shownJobs() {
		l := m.jobRow(j)
		if j.ID == m.job {
			chosen = len(lines)
			if m.focus == ofJobs {
				l = join(say(plain, ">"), l[:1].cutFirst(), l[1:]).mark(m.width)
			}
		}
		lines = append(lines, l)
	}
	return lines, chosen
}

// jobRow has those columns that fit: the more a screen has, the more of them.
func (m *model) jobRow(j *wire.JobSummary) line {
	end := m.config.Now()
	if j.EndedAt != nil {
		end = *j.EndedAt
	}
	count := fmt.Sprintf("%d/%d", j.Verified, j.Partitions)
	l := join(say(plain, "  "), column(plain, 14, "%s", short(j.ID)), say(plain, " "),
		column(stateStyle(j.State), 10, "%s", j.State), say(plain, " "), column(plain, 7, "%s", count), say(plain, " "))
	for _, c := range []line{
		join(jobBar(j), say(plain, " ")),
		column(plain, 7, "%s", span(end.Sub(j.SubmittedAt))),
		column(plain, 11, "%s", j.Tenant),
		column(plain, 22, "%s/%d", j.Miner, j.SectorNumber),
	} {
		if l.width()+c.width() > m.width {
			return l
		}
		l = join(l, c)
	}
	l = join(l, say(plain, "%s", j.Key))
	if j.Fault != nil {
		l = join(l, say(bad, "  %s", j.Fault.Message))
	}
	return l
}

func stateStyle(s job.State) style {
	switch s {
	case job.Done:
		return good
	case job.Failed, job.Cancelled:
		return bad
	case job.Active, job.Cancelling:
	}
	return busy
}

// jobBar draws what of a job is verified, runs and waits.
func jobBar(j *wire.JobSummary) line {
	inside := barColumns - 2
	share := func(n int) int {
		return int(float64(inside) * max(0, min(1, float64(n)/float64(max(1, j.Partitions)))))
	}
	verified, running := share(j.Verified), 0
	if n := j.Partitions - j.Verified - j.Waiting; n > 0 && !j.State.Ended() {
		running = min(inside-verified, max(1, share(n)))
	}
	return line{{"[", soft}, {strings.Repeat("#", verified), good}, {strings.Repeat("+", running), busy},
		{strings.Repeat(".", inside-verified-running), soft}, {"]", soft}}
}

// waitLines say why a job waits: the chosen one, or that which has waited longest.
func (m *model) waitLines() []line {
	r := m.why.reply.value
	if m.why.id == "" || r == nil && m.why.reply.err == nil {
		return nil
	}
	lines := []line{join(say(soft, "WAITS"), say(soft, "  job %s", short(m.why.id)))}
	if err := m.why.reply.err; err != nil {
		return append(lines, say(bad, "  not known: %v", err))
	}
	if len(r.Reasons) == 0 {
		return append(lines, say(soft, "  nothing of it waits"))
	}
	for i := range r.Reasons {
		lines = append(lines, m.reason(&r.Reasons[i])...)
	}
	return lines
}

func (m *model) reason(r *wire.Reason) []line {
	lines := []line{join(column(plain, 12, "  %s", ranges(r.Partitions)), say(plain, " %s", r.Text))}
	for _, h := range r.Holders {
		held := ""
		if h.Since != nil {
			held = " for " + m.config.since(*h.Since)
		}
		lines = append(lines, say(soft, "               %s holds %s%s", h.Name, size(h.Bytes), held))
	}
	return lines
}

// ranges names partitions: "0-3 5".
func ranges(indices []int) string {
	var b strings.Builder
	for i := 0; i < len(indices); {
		last := i
		for last+1 < len(indices) && indices[last+1] == indices[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteString(" ")
		}
		fmt.Fprint(&b, indices[i])
		if last > i {
			fmt.Fprintf(&b, "-%d", indices[last])
		}
		i = last + 1
	}
	return b.String()
}

// held is what processes have of one class.
type held struct {
	pieces      int64
	bytes, most bytesize.Bytes
	stages      map[flight.Stage]int64
}

// plus is a sum, without what no machine has.
func plus(a, b bytesize.Bytes) bytesize.Bytes {
	if sum, err := a.Add(b); err == nil {
		return sum
	}
	return a
}

// bufferLines are the large buffers: of the chosen node when one is chosen, else of all.
func (m *model) bufferLines() []line {
	r := m.flight.value
	if r == nil {
		return nil
	}
	scope := "all nodes"
	sums := map[ledger.Class]*held{}
	var pending, waiting int
	var beyond bytesize.Bytes
	var leaks []line
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if m.focus == ofNodes && m.node != "" {
			if scope = "node " + string(m.node); n.Node != m.node {
				continue
			}
		}
		for k := range n.Reports {
			report := &n.Reports[k]
			pending, waiting, beyond = pending+report.Pending, waiting+report.Waiting, plus(beyond, report.BeyondBytes)
			addHeld(sums, report)
		}
		for _, l := range n.Leaks {
			leaks = append(leaks, say(bad, "  LEAK on %s: %s has %s of %s %s: %s", n.Node, l.Process, size(l.Bytes), l.Class,
				l.Label, l.Why))
		}
		if n.Defects > 0 {
			leaks = append(leaks, say(bad, "  DEFECT on %s: %d buffers counted wrongly", n.Node, n.Defects))
		}
	}
	lines := []line{join(say(soft, "BUFFERS"), say(soft, "  of %s: %d proofs pending, %d waiting, %s beyond", scope,
		pending, waiting, size(beyond)))}
	lines = append(lines, leaks...)
	for _, class := range slices.Sorted(maps.Keys(sums)) {
		lines = append(lines, sums[class].line(class))
	}
	return lines
}

func addHeld(sums map[ledger.Class]*held, report *flight.Report) {
	for i := range report.Classes {
		c := &report.Classes[i]
		h := sums[c.Class]
		if h == nil {
			h = &held{stages: map[flight.Stage]int64{}}
			sums[c.Class] = h
		}
		h.pieces, h.bytes, h.most = h.pieces+c.Pieces, plus(h.bytes, c.Bytes), plus(h.most, c.HighBytes)
		for _, s := range c.Live {
			h.stages[s.Stage] += s.Pieces
		}
	}
}

func (h *held) line(class ledger.Class) line {
	var stages []string
	for _, s := range slices.Sorted(maps.Keys(h.stages)) {
		stages = append(stages, fmt.Sprintf("%d %s", h.stages[s], s))
	}
	return join(column(plain, 13, "  %s", class), column(plain, 5, "%d", h.pieces), column(plain, 11, "%s", size(h.bytes)),
		column(soft, 15, "most %s", size(h.most)), say(soft, "%s", strings.Join(stages, ", ")))
}

// faultText is a fault with its remedy.
func faultText(f *fault.Report) string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + " (" + f.Hint + ")"
}
