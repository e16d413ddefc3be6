package top

import (
	"strings"
	"time"
)

// frame is the whole screen: at most height lines, none wider than width.
func (m *model) frame() []line {
	if m.width < ColumnsMin {
		return []line{say(bad, "%d columns are too few: widen to %d", m.width, ColumnsMin).fit(m.width)}
	}
	head := m.head()
	room := max(0, m.height-len(head)-1)
	var body []line
	switch {
	case m.help:
		body = helpLines()
	case m.opened != nil:
		body = m.jobLines(room)
	default:
		body = m.overview(room)
	}
	body = body[:min(len(body), room)]
	for len(body) < room {
		body = append(body, nil)
	}
	all := append(append(head, body...), m.foot())
	all = all[:min(len(all), max(1, m.height))]
	for i := range all {
		all[i] = all[i].fit(m.width)
	}
	return all
}

// sides puts one part to the left of a line and one to its right, if both fit.
func (m *model) sides(left, right line) line {
	room := m.width - right.width()
	if room < 20 {
		return left.fit(m.width)
	}
	return join(left.fit(room-1).pad(room), right)
}

// head is the title, and what is wrong.
func (m *model) head() []line {
	left := say(strong, "proofrack")
	r := m.nodes.value
	if r != nil {
		state := say(good, "  ready")
		if !r.Ready {
			state = say(bad, "  not ready")
		}
		running := 0
		for i := range r.Nodes {
			running += r.Nodes[i].Running
		}
		left = join(left, state, say(plain, "  %d waiting, %d running", r.Waiting, running))
		if r.Paused {
			left = join(left, say(bad, "  intake paused"))
		}
		leader := r.Leader[:min(len(r.Leader), 8)]
		left = join(left, say(soft, "  leader %s, term %d", leader, r.Term))
	}
	lines := []line{m.sides(left, m.asOf())}
	if err := m.wrong(); err != "" {
		lines = append(lines, say(bad, "%s", err))
	}
	if r != nil && !r.Ready {
		lines = append(lines, say(bad, "not ready: %s", r.Reason))
	}
	return lines
}

// asOf is the time of the oldest answer that is on the screen.
func (m *model) asOf() line {
	var at time.Time
	for _, a := range []time.Time{m.nodes.at, m.jobs.at} {
		if at.IsZero() || !a.IsZero() && a.Before(at) {
			at = a
		}
	}
	switch {
	case at.IsZero() && m.wrong() != "":
		return say(bad, "no answer yet")
	case at.IsZero():
		return say(soft, "asking")
	case m.wrong() != "":
		return say(bad, "as of %s", m.config.clock(at))
	}
	return say(soft, "as of %s", m.config.clock(at))
}

// wrong is why something on the screen is old or missing, "" when nothing is.
func (m *model) wrong() string {
	switch {
	case m.nodes.err != nil:
		return m.away("nodes", m.nodes.at, m.nodes.err)
	case m.jobs.err != nil:
		return m.away("jobs", m.jobs.at, m.jobs.err)
	case m.opened != nil && m.opened.status.err != nil:
		return m.away("this job", m.opened.status.at, m.opened.status.err)
	case m.flight.err != nil:
		return m.away("buffers", m.flight.at, m.flight.err)
	}
	return ""
}

func (m *model) away(what string, at time.Time, err error) string {
	if at.IsZero() {
		return "no answer about " + what + ": " + err.Error()
	}
	return "no answer about " + what + " for " + m.config.since(at) + ": " + err.Error()
}

// foot is the last line: a question, what is typed, what happened, or the keys.
func (m *model) foot() line {
	switch {
	case m.question != nil:
		return say(strong, "%s (y/n)", m.question.text)
	case m.typing:
		return join(say(strong, "/"), say(plain, "%s_", m.filter))
	case m.notice != nil:
		return m.notice
	case m.help:
		return say(soft, "any key: back")
	case m.opened != nil:
		return say(soft, "esc back  up/down move  c cancel  ? help  q quit")
	}
	keys := say(soft, "? help  tab  enter open  / filter  s sort  c cancel  d drain  q quit")
	if m.filter != "" {
		keys = join(say(busy, "filter %q (esc clears)  ", m.filter), keys)
	}
	return keys
}

func helpLines() []line {
	lines := []line{nil, say(strong, "Keys")}
	for _, k := range keysHelp() {
		lines = append(lines, join(say(plain, "  "), column(busy, 20, "%s", k[0]), say(plain, " %s", k[1])))
	}
	return lines
}

// window shows so many lines of a list that a chosen one is among them.
func window(lines []line, room, chosen int) []line {
	if len(lines) <= room {
		return lines
	}
	first := max(0, min(chosen-room/3, len(lines)-room))
	return lines[first : first+max(0, room)]
}

// styledText is lines with their escape sequences, plainText without.
func styledText(lines []line) string {
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.styled()
	}
	return strings.Join(texts, "\n")
}

func plainText(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text() + "\n")
	}
	return b.String()
}
