package top

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// kind is a kind of request. Of each one at most is under way.
type kind int

const (
	asksNodes kind = iota
	asksJobs
	asksFlight
	asksStatus
	asksWhy
	changes
	kinds
)

// answer is what was answered last. value stays when a later request fails, and err is then why.
type answer[T any] struct {
	value *T
	at    time.Time // of value
	err   error
}

// of is a part of the screen that has a chosen line.
type of int

const (
	ofJobs of = iota
	ofNodes
	ofNothing // of a page that nobody moves on
)

// opened is the job that is looked at alone.
type opened struct {
	tenant job.Tenant
	id     job.ID
	status answer[wire.StatusReply]
	first  int // line of its partitions that is shown first
}

// waits is why a job waits.
type waits struct {
	id    job.ID
	reply answer[wire.WhyReply]
}

// question is asked before anything is changed.
type question struct {
	text string
	did  string // what is said when it is done
	do   func(context.Context) error
}

// model is all that the screen shows. It belongs to one goroutine, but for the answers' closures, which it runs itself.
type model struct {
	ctx           context.Context //nolint:containedctx // of the program that shows it
	config        Config
	source        Source
	width, height int

	under  [kinds]bool
	nodes  answer[wire.NodesReply]
	jobs   answer[wire.JobsReply]
	flight answer[wire.FlightReply]
	why    waits
	opened *opened // nil for the overview

	focus     of
	job       job.ID // that is chosen
	node      job.Node
	row       [2]int // where the chosen lines were, for when they are gone
	sortJobs  int
	sortNodes int
	turned    [2]bool // sorted the other way round
	filter    string
	typing    bool // the filter
	help      bool
	question  *question
	notice    line
}

func newModel(ctx context.Context, config Config, source Source) *model {
	return &model{ctx: ctx, config: config, source: source, width: 80, height: 24}
}

// Messages of the model: it is time to ask, and an answer that came.
type (
	tickMsg   struct{}
	answerMsg func()
)

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tea.Batch(append(m.due(), m.tick())...) }

func (m *model) tick() tea.Cmd {
	return tea.Tick(m.config.Every, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update implements tea.Model.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case tickMsg:
		return m, tea.Batch(append(m.due(), m.tick())...)
	case answerMsg:
		message()
		m.settle()
		return m, m.owed()
	case tea.KeyPressMsg:
		return m, m.press(message.String())
	case tea.PasteMsg:
		if m.typing {
			m.setFilter(m.filter + printable(message.Content))
		}
	}
	return m, nil
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(styledText(m.frame()))
	v.AltScreen = true
	v.WindowTitle = "proofrack top"
	return v
}

// due are the requests of a tick.
func (m *model) due() []tea.Cmd {
	all := []tea.Cmd{
		ask(m, asksNodes, &m.nodes, m.source.Nodes),
		ask(m, asksJobs, &m.jobs, m.source.Jobs),
		ask(m, asksFlight, &m.flight, m.source.Flight),
		m.askStatus(),
		m.askWhy(),
	}
	return all
}

// owed are requests that can't wait for the tick: of a job that was just opened.
func (m *model) owed() tea.Cmd {
	if m.opened != nil && m.opened.status.value == nil && m.opened.status.err == nil {
		return tea.Batch(m.askStatus(), m.askWhy())
	}
	return nil
}

// ask makes a request, unless one of its kind is under way.
func ask[T any](m *model, k kind, a *answer[T], get func(context.Context) (*T, error)) tea.Cmd {
	if m.under[k] {
		return nil
	}
	m.under[k] = true
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, m.config.Within)
		defer cancel()
		value, err := get(ctx)
		return answerMsg(func() {
			m.under[k] = false
			if a.err = err; err == nil {
				a.value, a.at = value, m.config.Now()
			}
		})
	}
}

func (m *model) askStatus() tea.Cmd {
	o := m.opened
	if o == nil || o.status.value != nil && o.status.value.Record.State.Ended() && o.status.err == nil {
		return nil
	}
	return ask(m, asksStatus, &o.status, func(ctx context.Context) (*wire.StatusReply, error) {
		return m.source.Status(ctx, o.tenant, o.id)
	})
}

// askWhy asks for the job that is open or chosen, else for the one that has waited longest.
func (m *model) askWhy() tea.Cmd {
	tenant, id := m.waiting()
	if id == "" {
		m.why = waits{}
		return nil
	}
	if m.under[asksWhy] {
		return nil
	}
	if m.why.id != id {
		m.why = waits{id: id}
	}
	fresh := &answer[wire.WhyReply]{value: m.why.reply.value, at: m.why.reply.at}
	command := ask(m, asksWhy, fresh, func(ctx context.Context) (*wire.WhyReply, error) {
		return m.source.Why(ctx, tenant, id)
	})
	return func() tea.Msg {
		apply, _ := command().(answerMsg)
		return answerMsg(func() {
			if apply(); m.why.id == id {
				m.why.reply = *fresh
			}
		})
	}
}

// waiting is the job whose reasons are shown, "" for none.
func (m *model) waiting() (job.Tenant, job.ID) {
	if m.opened != nil {
		if s := m.opened.status.value; s != nil && s.Record.State.Ended() {
			return "", ""
		}
		return m.opened.tenant, m.opened.id
	}
	var longest *wire.JobSummary
	for _, j := range m.shownJobs() {
		if j.State.Ended() || j.Waiting == 0 {
			continue
		}
		if j.ID == m.job {
			return j.Tenant, j.ID
		}
		if longest == nil || j.SubmittedAt.Before(longest.SubmittedAt) {
			longest = j
		}
	}
	if longest == nil {
		return "", ""
	}
	return longest.Tenant, longest.ID
}

// change does what was asked for and agreed to.
func (m *model) change(q *question) tea.Cmd {
	if m.under[changes] {
		m.notice = say(bad, "the change before is under way")
		return nil
	}
	m.notice = say(busy, "under way: %s", q.did)
	var done answer[struct{}]
	command := ask(m, changes, &done, func(ctx context.Context) (*struct{}, error) { return &struct{}{}, q.do(ctx) })
	return func() tea.Msg {
		apply, _ := command().(answerMsg)
		return answerMsg(func() {
			apply()
			m.notice = say(good, "%s", q.did)
			if done.err != nil {
				m.notice = say(bad, "%s: %v", q.did, done.err)
			}
		})
	}
}

// settle keeps the chosen lines on what they were on, or near where that was.
func (m *model) settle() {
	jobs, nodes := m.shownJobs(), m.shownNodes()
	m.row[ofJobs] = settled(len(jobs), m.row[ofJobs], func(i int) bool { return jobs[i].ID == m.job })
	m.row[ofNodes] = settled(len(nodes), m.row[ofNodes], func(i int) bool { return nodes[i].Node == m.node })
	m.job, m.node = "", ""
	if len(jobs) > 0 {
		m.job = jobs[m.row[ofJobs]].ID
	}
	if len(nodes) > 0 {
		m.node = nodes[m.row[ofNodes]].Node
	}
}

func settled(count, row int, is func(int) bool) int {
	for i := range count {
		if is(i) {
			return i
		}
	}
	return max(0, min(row, count-1))
}

// move moves the chosen line.
func (m *model) move(by int) {
	if m.opened != nil {
		m.opened.first = max(0, m.opened.first+by)
		return
	}
	jobs, nodes := m.shownJobs(), m.shownNodes()
	count := map[of]int{ofJobs: len(jobs), ofNodes: len(nodes)}[m.focus]
	if count == 0 {
		return
	}
	m.row[m.focus] = max(0, min(m.row[m.focus]+by, count-1))
	if m.focus == ofJobs {
		m.job = jobs[m.row[ofJobs]].ID
	} else {
		m.node = nodes[m.row[ofNodes]].Node
	}
}

// chosenJob is the job that is open, or chosen.
func (m *model) chosenJob() *wire.JobSummary {
	id := m.job
	if m.opened != nil {
		id = m.opened.id
	}
	if m.jobs.value == nil {
		return nil
	}
	for i := range m.jobs.value.Jobs {
		if j := &m.jobs.value.Jobs[i]; j.ID == id {
			return j
		}
	}
	return nil
}

// chosenNode is the node that is chosen.
func (m *model) chosenNode() *wire.NodeView {
	for _, n := range m.shownNodes() {
		if n.Node == m.node {
			return n
		}
	}
	return nil
}

// short is a job's id as it fits into a list.
func short(id job.ID) string {
	if len(id) < 12 {
		return string(id)
	}
	return fmt.Sprintf("%s..%s", id[:8], id[len(id)-4:])
}
