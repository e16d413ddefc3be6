package top

import (
	"context"
	"fmt"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// filterBytesMax bounds what is typed.
const filterBytesMax = 64

// keysHelp is the keys, for the help.
func keysHelp() [][2]string {
	return [][2]string{
		{"up down, k j", "move"},
		{"pgup pgdn, home end", "move far"},
		{"tab", "to the nodes, and back to the jobs"},
		{"enter", "open the chosen job; esc closes it"},
		{"/", "filter jobs and nodes by any text; enter keeps it, esc clears it"},
		{"s", "sort by the next order"},
		{"r", "sort the other way round"},
		{"c", "cancel the chosen job (asks)"},
		{"d", "drain the chosen node, or take that back (asks)"},
		{"?", "these keys"},
		{"q, ctrl+c", "quit"},
	}
}

// press does what a key is for.
func (m *model) press(key string) tea.Cmd {
	m.notice = nil
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case m.question != nil:
		q := m.question
		m.question = nil
		if key != "y" && key != "Y" {
			m.notice = say(plain, "nothing was changed")
			return nil
		}
		return m.change(q)
	case m.typing:
		m.edit(key)
		return nil
	case m.help:
		m.help = false
		return nil
	}
	return m.command(key)
}

// command does what a key is for when nothing is asked or typed.
func (m *model) command(key string) tea.Cmd {
	page := max(1, m.height/2)
	switch key {
	case "q":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "?", "h":
		m.help = true
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-page)
	case "pgdown", "space":
		m.move(page)
	case "home", "g":
		m.move(-1 << 20)
	case "end", "G":
		m.move(1 << 20)
	case "tab", "shift+tab", "left", "right":
		m.focus = ofNodes - m.focus
	case "/":
		m.typing = m.opened == nil
	case "s":
		m.sortNext()
	case "r":
		m.turned[m.focus] = !m.turned[m.focus]
		m.settle()
	case "enter":
		return m.open()
	case "esc", "backspace":
		if m.opened == nil {
			m.setFilter("")
		}
		m.opened = nil
	case "c":
		m.askCancel()
	case "d":
		m.askDrain()
	}
	return nil
}

// edit types the filter.
func (m *model) edit(key string) {
	switch key {
	case "enter":
		m.typing = false
	case "esc":
		m.typing = false
		m.setFilter("")
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.filter)
		m.setFilter(m.filter[:len(m.filter)-size])
	case "space":
		m.setFilter(m.filter + " ")
	default:
		if utf8.RuneCountInString(key) == 1 {
			m.setFilter(m.filter + printable(key))
		}
	}
}

func (m *model) setFilter(text string) {
	if len(text) <= filterBytesMax {
		m.filter = text
	}
	m.settle()
}

func (m *model) sortNext() {
	if m.focus == ofNodes {
		m.sortNodes = (m.sortNodes + 1) % len(nodeOrders())
	} else {
		m.sortJobs = (m.sortJobs + 1) % len(jobOrders())
	}
	m.settle()
}

// open opens the chosen job.
func (m *model) open() tea.Cmd {
	j := m.chosenJob()
	if m.opened != nil || m.focus != ofJobs || j == nil {
		return nil
	}
	m.opened = &opened{tenant: j.Tenant, id: j.ID}
	return m.owed()
}

func (m *model) askCancel() {
	j := m.chosenJob()
	switch {
	case j == nil || m.opened == nil && m.focus != ofJobs:
		m.notice = say(plain, "choose a job first: tab goes to the jobs")
	case j.State.Ended():
		m.notice = say(plain, "job %s is %s", short(j.ID), j.State)
	default:
		tenant, id := j.Tenant, j.ID
		m.question = &question{
			text: fmt.Sprintf("cancel job %s of %s?", short(id), tenant), did: "cancel job " + short(id),
			do: func(ctx context.Context) error { return m.source.Cancel(ctx, tenant, id) },
		}
	}
}

func (m *model) askDrain() {
	n := m.chosenNode()
	if n == nil || m.opened != nil || m.focus != ofNodes {
		m.notice = say(plain, "choose a node first: tab goes to the nodes")
		return
	}
	node, undo := n.Node, n.Draining || n.Cordoned
	q := &question{text: fmt.Sprintf("drain node %s? what runs there ends", node), did: fmt.Sprintf("drain node %s", node)}
	if undo {
		q.text, q.did = fmt.Sprintf("give node %s work again?", node), fmt.Sprintf("give node %s work again", node)
	}
	q.do = func(ctx context.Context) error { return m.source.Drain(ctx, node, undo) }
	m.question = q
}
