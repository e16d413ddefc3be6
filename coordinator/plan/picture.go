package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Limits of a picture: it shows the first nodes and the first partitions, and says so when there are more.
const (
	picturedNodes = 4
	picturedSpans = 2000
	picturedLanes = 48
)

// Measures of a picture, in pixels.
const (
	pictureWidth = 1280
	marginLeft   = 150
	marginRight  = 90
	laneHeight   = 11
	memoryHeight = 150
)

// picture draws one result.
type picture struct {
	out    bytes.Buffer
	end    time.Duration
	y      float64
	result *Result
}

// WriteSVG draws when each partition was synthesized and proved, and each node's memory over time, as one SVG file that
// needs nothing else. The title is for the reader.
func (r *Result) WriteSVG(w io.Writer, title string) error {
	body, height, note := r.draw()
	_, err := fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" role="img">
<title>%s</title>
<style>%s</style>
<rect width="100%%" height="100%%" fill="#fff"/>
<text x="10" y="22" class="head">%s</text>
<text x="10" y="40">%s</text>
%s</svg>
`, pictureWidth, height, pictureWidth, height, html.EscapeString(title), pictureStyle, html.EscapeString(title),
		html.EscapeString(note), body)
	if err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// WriteHTML is WriteSVG inside a page.
func (r *Result) WriteHTML(w io.Writer, title string) error {
	if _, err := fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title>\n<body>\n",
		html.EscapeString(title)); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	var svg bytes.Buffer
	if err := r.WriteSVG(&svg, title); err != nil {
		return err
	}
	_, rest, _ := bytes.Cut(svg.Bytes(), []byte("?>\n"))
	if _, err := fmt.Fprintf(w, "%s</body></html>\n", rest); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

const pictureStyle = `text{font:11px sans-serif;fill:#222}.head{font:bold 15px sans-serif}.axis{stroke:#888}` +
	`.grid{stroke:#e4e4e4}.r{text-anchor:end}.m{text-anchor:middle}.wait{opacity:.3}.held{fill:#9cc3e6}` +
	`.booked{fill:none;stroke:#1f4e79;stroke-width:1.3}.cap{stroke:#c00;stroke-dasharray:6 4}`

func (r *Result) draw() (body []byte, height float64, note string) {
	spans := slices.Clone(r.spans)
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Compare(a.Started, b.Started) })
	shown := min(len(r.machines), picturedNodes)
	spans = slices.DeleteFunc(spans, func(s Span) bool { return s.Node >= shown })
	p := &picture{y: 60, result: r}
	for _, s := range r.spans {
		p.end = max(p.end, s.Gone)
	}
	whole := p.end
	if len(spans) > picturedSpans {
		p.end = spans[picturedSpans].Started
		spans = spans[:picturedSpans]
	}
	if r.Killed != nil {
		p.end = seconds(r.Killed.At)
	}
	p.end = max(p.end, time.Millisecond)
	note = fmt.Sprintf("%d jobs in %.0f s, %.1f s a proof; devices idle %.0f %%; bottleneck: %s.", r.Jobs, r.Makespan,
		r.SecondsPerProof, 100*r.DeviceIdle, r.Bottleneck)
	if p.end < whole {
		note += fmt.Sprintf(" Shown: the first %.0f of %.0f s.", p.end.Seconds(), whole.Seconds())
	}
	if shown < len(r.machines) {
		note += fmt.Sprintf(" Shown: %d of %d nodes.", shown, len(r.machines))
	}
	note += " One colour per job; pale: waiting for the device."
	for i := range shown {
		p.node(r.machines[i], spans)
	}
	return p.out.Bytes(), p.y + 10, note
}

// node draws the lanes of a node and its memory.
func (p *picture) node(m *machine, spans []Span) {
	fmt.Fprintf(&p.out, "<text x=\"10\" y=\"%.1f\" class=\"head\">%s</text>\n", p.y, html.EscapeString(string(m.name)))
	p.y += 8
	top := p.y
	var bars bytes.Buffer
	for _, d := range m.devices {
		p.label(fmt.Sprintf("%s proves", d.name))
		for i := range spans {
			if s := &spans[i]; s.Node == m.index && s.Device == d.index {
				p.bar(&bars, s, s.Proving, s.Proved, "proving", "")
			}
		}
		p.y += laneHeight
	}
	var lanes []time.Duration // until when each is taken
	first := p.y
	hidden := 0
	for i := range spans {
		s := &spans[i]
		if s.Node != m.index {
			continue
		}
		lane := slices.IndexFunc(lanes, func(free time.Duration) bool { return free <= s.Started })
		if lane < 0 {
			if len(lanes) == picturedLanes {
				hidden++
				continue
			}
			lane = len(lanes)
			lanes = append(lanes, 0)
		}
		lanes[lane] = s.Taken
		p.y = first + float64(lane)*laneHeight
		p.bar(&bars, s, s.Started, s.Sealed, "synthesis", "")
		p.bar(&bars, s, s.Sealed, s.Taken, "waits for the device", "wait")
	}
	p.y = first
	p.label("synthesis, one row each")
	p.y += float64(len(lanes)) * laneHeight
	if hidden > 0 {
		p.y += laneHeight
		p.label(fmt.Sprintf("+ %d not shown", hidden))
	}
	p.timeAxis(top)
	p.out.Write(bars.Bytes())
	for _, pool := range m.pools {
		if m.booked[pool].peak > 0 || m.held[pool].peak > 0 {
			p.memory(m, pool)
		}
	}
	p.y += 24
}

func (p *picture) x(at time.Duration) float64 {
	return marginLeft + (pictureWidth-marginLeft-marginRight)*min(1, float64(at)/float64(p.end))
}

// label names the lane at y.
func (p *picture) label(text string) {
	fmt.Fprintf(&p.out, "<text x=\"%d\" y=\"%.1f\" class=\"r\">%s</text>\n", marginLeft-8, p.y+9, html.EscapeString(text))
}

// bar draws a stage of a partition.
func (p *picture) bar(out *bytes.Buffer, s *Span, from, to time.Duration, what, class string) {
	if to <= from || from >= p.end {
		return
	}
	x := p.x(from)
	fmt.Fprintf(out, "<rect class=%q x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%d,62%%,%d%%)\">"+
		"<title>job %d, partition %d: %s, %.2f to %.2f s</title></rect>\n",
		class, x, p.y+1, max(0.4, p.x(to)-x), laneHeight-2, s.Job*137%360, 42+s.Partition%3*8,
		s.Job, s.Partition, what, from.Seconds(), to.Seconds())
}

// timeAxis draws the grid from top down to y, and the seconds below.
func (p *picture) timeAxis(top float64) {
	step := niceStep(p.end.Seconds(), 12)
	for t := 0.0; t <= p.end.Seconds(); t += step {
		x := p.x(seconds(t))
		fmt.Fprintf(&p.out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"+
			"<text class=\"m\" x=\"%.1f\" y=\"%.1f\">%g s</text>\n", x, top, x, p.y, x, p.y+12, t)
	}
	p.y += 22
}

// memory draws a pool over time: held as an area, booked as a line, what there is as a dashed one.
func (p *picture) memory(m *machine, pool ledger.Pool) {
	capacity := m.capacity[pool]
	most := max(m.booked[pool].peak, m.held[pool].peak)
	roof := most
	if capacity <= 2*most {
		roof = max(roof, capacity)
	}
	step := niceStep(float64(roof)/float64(bytesize.GiB), 5)
	p.y += 16
	top, bottom := p.y, p.y+memoryHeight
	y := func(b bytesize.Bytes) float64 { return bottom - memoryHeight*float64(b)/float64(roof) }
	for v := 0.0; v <= float64(roof)/float64(bytesize.GiB); v += step {
		at := y(bytesize.Bytes(v * float64(bytesize.GiB)))
		fmt.Fprintf(&p.out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"+
			"<text class=\"r\" x=\"%d\" y=\"%.1f\">%g GiB</text>\n",
			marginLeft, at, pictureWidth-marginRight, at, marginLeft-8, at+4, v)
	}
	line := func(s *series, close bool) string {
		var path bytes.Buffer
		last, drawn := bottom, -1.0
		fmt.Fprintf(&path, "M%d %.1f", marginLeft, bottom)
		for _, pt := range s.points {
			if pt.At > p.end {
				break
			}
			x, to := p.x(pt.At), y(pt.Bytes)
			if x-drawn < 0.2 && math.Abs(to-last) < 0.3 {
				continue
			}
			fmt.Fprintf(&path, "H%.1fV%.1f", x, to)
			last, drawn = to, x
		}
		fmt.Fprintf(&path, "H%d", pictureWidth-marginRight)
		if close {
			fmt.Fprintf(&path, "V%.1fZ", bottom)
		}
		return path.String()
	}
	fmt.Fprintf(&p.out, "<path class=\"held\" d=%q/>\n<path class=\"booked\" d=%q/>\n", line(m.held[pool], true),
		line(m.booked[pool], false))
	if capacity <= roof {
		fmt.Fprintf(&p.out, "<line class=\"cap\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", marginLeft, y(capacity),
			pictureWidth-marginRight, y(capacity))
	}
	fmt.Fprintf(&p.out, "<line class=\"axis\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n"+
		"<text x=\"%d\" y=\"%.1f\">memory %s of %s: filled held (peak %s), line booked (peak %s)</text>\n",
		marginLeft, bottom, pictureWidth-marginRight, bottom, marginLeft+6, top-5, pool, capacity,
		m.held[pool].peak, m.booked[pool].peak)
	p.y = bottom
	p.timeAxis(bottom)
	p.y += 8
}

// niceStep is 1, 2 or 5 times a power of ten, so that at most so many steps fit.
func niceStep(whole float64, most int) float64 {
	if whole <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(whole/float64(most))))
	for _, f := range []float64{1, 2, 5, 10} {
		if whole/(f*power) <= float64(most) {
			return f * power
		}
	}
	return 10 * power
}
