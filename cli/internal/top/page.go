package top

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/proofrack/proofrack/shared/wire"
)

// linesMax bounds a page, which has all lines and is never scrolled.
const linesMax = 1 << 16

// Page is an overview as of one moment. What wasn't answered is nil.
type Page struct {
	Rack   *wire.NodesReply  `json:"rack,omitempty"`
	Jobs   *wire.JobsReply   `json:"jobs,omitempty"`
	Flight *wire.FlightReply `json:"flight,omitempty"`
	// Width is how many columns it has.
	Width int `json:"-"`
	lines []line
}

// Once makes a page of so many columns, at least ColumnsMin. The error is why something is missing from it; without
// nodes and jobs there is no page.
func Once(ctx context.Context, config Config, source Source, width int) (*Page, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	m := newModel(ctx, config, source)
	m.width, m.height, m.focus = max(width, ColumnsMin), linesMax, ofNothing
	m.await(ask(m, asksNodes, &m.nodes, source.Nodes), ask(m, asksJobs, &m.jobs, source.Jobs),
		ask(m, asksFlight, &m.flight, source.Flight))
	if m.nodes.err != nil && m.jobs.err != nil {
		return nil, m.nodes.err
	}
	m.await(m.askWhy())
	p := &Page{Rack: m.nodes.value, Jobs: m.jobs.value, Flight: m.flight.value, Width: m.width}
	for _, l := range append(m.head(), m.overview(linesMax)...) {
		p.lines = append(p.lines, l.fit(m.width))
	}
	return p, errors.Join(m.nodes.err, m.jobs.err, m.flight.err)
}

// await makes requests at once and waits for their answers.
func (m *model) await(requests ...tea.Cmd) {
	answers := make([]answerMsg, len(requests))
	var all sync.WaitGroup
	for i, request := range requests {
		if request != nil {
			all.Go(func() { answers[i], _ = request().(answerMsg) })
		}
	}
	all.Wait()
	for _, apply := range answers {
		if apply != nil {
			apply()
		}
	}
}

// Text writes it as plain text.
func (p *Page) Text(w io.Writer) error {
	if _, err := io.WriteString(w, plainText(p.lines)); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// Sizes of the drawing, px.
const (
	letterWidth, lineHeight, margin = 8.0, 18.0, 16.0
)

// fill is a style's colour in a drawing.
func (s style) fill() string {
	return [...]string{plain: "#d8dee9", soft: "#8a94a6", strong: "#ffffff", good: "#8fce7e", busy: "#6cc3d5",
		bad: "#f07a7a", marked: "#ffffff"}[s]
}

// SVG draws it as a terminal shows it.
func (p *Page) SVG(w io.Writer) error {
	var b strings.Builder
	width, height := float64(p.Width)*letterWidth+2*margin, float64(len(p.lines))*lineHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g">`, width, height,
		width, height)
	fmt.Fprintf(&b, "\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#1d2330\"/>\n")
	b.WriteString(`<g font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">` + "\n")
	for i, l := range p.lines {
		column := 0
		for _, piece := range l {
			columns := ansi.StringWidth(piece.text)
			if strings.TrimSpace(piece.text) != "" {
				fmt.Fprintf(&b, `<text x="%g" y="%g" fill="%s" textLength="%g" xml:space="preserve">`,
					margin+float64(column)*letterWidth, margin+float64(i)*lineHeight+13, piece.style.fill(),
					float64(columns)*letterWidth)
				if err := xml.EscapeText(&b, []byte(piece.text)); err != nil {
					return fmt.Errorf("draw page: %w", err)
				}
				b.WriteString("</text>\n")
			}
			column += columns
		}
	}
	b.WriteString("</g>\n</svg>\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}
