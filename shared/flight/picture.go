package flight

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// Measures of a picture, in pixels, and its limits: it shows the first processes, and says so when there are more.
const (
	pictureWidth   = 1100
	panelHeight    = 140
	panelGap       = 44
	leftMargin     = 90
	rightMargin    = 130
	headHeight     = 50
	picturedPanels = 32
	// columns bounds the steps of a panel: of several changes within one column the highest counts.
	columns = pictureWidth - leftMargin - rightMargin
)

const pictureStyle = `text{font:11px sans-serif;fill:#222}.head{font:bold 15px sans-serif}.name{font-weight:bold}` +
	`.r{text-anchor:end}.grid{stroke:#e4e4e4}.axis{stroke:#888}`

// classColors are in the order of the classes.
func classColors() [classCount]string {
	return [...]string{"#9cc3e6", "#c5b0d5", "#f4a261", "#2a9d8f", "#e9c46a", "#b0b0b0"}
}

// column is the most bytes by class within one column of a panel.
type column [classCount]int64

// Draw draws the bytes of every class over time, one panel for each process, as one SVG file that needs nothing else.
// Points of one process must be in the order of time. The title is for the reader.
func Draw(w io.Writer, title string, points []Point) error {
	panels := map[string][]Point{}
	var names []string
	var first, last time.Time
	for _, p := range points {
		if panels[p.Process] == nil {
			names = append(names, p.Process)
		}
		panels[p.Process] = append(panels[p.Process], p)
		if first.IsZero() || p.At.Before(first) {
			first = p.At
		}
		if p.At.After(last) {
			last = p.At
		}
	}
	slices.SortStableFunc(names, cmp.Compare[string])
	note := fmt.Sprintf("from %s for %s", first.Format(time.RFC3339), last.Sub(first).Round(time.Millisecond))
	if len(points) == 0 {
		note = "nothing was recorded"
	}
	if len(names) > picturedPanels {
		note += fmt.Sprintf("; the first %d of %d processes", picturedPanels, len(names))
		names = names[:picturedPanels]
	}
	var body bytes.Buffer
	for i, name := range names {
		top := headHeight + i*(panelHeight+panelGap)
		drawPanel(&body, top, name, columnsOf(panels[name], first, last))
	}
	height := headHeight + len(names)*(panelHeight+panelGap) + 10
	_, err := fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">
<title>%s</title>
<style>%s</style>
<rect width="100%%" height="100%%" fill="#fff"/>
<text x="10" y="20" class="head">%s</text>
<text x="10" y="38">%s</text>
%s</svg>
`, pictureWidth, height, pictureWidth, height, html.EscapeString(title), pictureStyle, html.EscapeString(title),
		html.EscapeString(note), body.String())
	if err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// columnsOf spreads a process's points over the columns of its panel.
func columnsOf(points []Point, first, last time.Time) []column {
	out := make([]column, columns)
	span := max(1, last.Sub(first))
	var cells [cellCount]int64
	var now column
	at := 0
	fill := func(to int) { // what is there now goes on
		for ; at < to; at++ {
			out[at+1] = now
		}
	}
	for _, p := range points {
		class := indexOf(p.Class)
		if class < 0 || p.Stage >= Gone {
			continue
		}
		fill(int(float64(columns-1) * float64(p.At.Sub(first)) / float64(span)))
		cell := &cells[cellOf(class, p.Stage)]
		now[class] += int64(p.Bytes) - *cell
		*cell = int64(p.Bytes)
		out[at][class] = max(out[at][class], now[class])
	}
	fill(columns - 1)
	return out
}

// drawPanel draws one process: areas of the classes, one upon the other.
func drawPanel(w *bytes.Buffer, top int, name string, all []column) {
	most := int64(1)
	var high column
	for _, c := range all {
		sum := int64(0)
		for class, n := range c {
			sum += n
			high[class] = max(high[class], n)
		}
		most = max(most, sum)
	}
	bottom := top + panelHeight
	y := func(n int64) float64 { return float64(bottom) - float64(panelHeight-16)*float64(n)/float64(most) }
	fmt.Fprintf(w, "<text x=\"%d\" y=\"%d\" class=\"name\">%s</text>\n", leftMargin, top+8, html.EscapeString(name))
	for _, part := range []int64{0, most / 2, most} {
		fmt.Fprintf(w, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
			leftMargin, leftMargin+columns, y(part), y(part))
		fmt.Fprintf(w, "<text class=\"r\" x=\"%d\" y=\"%.1f\">%s</text>\n", leftMargin-6, y(part)+4, bytesize.Bytes(part))
	}
	below := make([]int64, len(all))
	legend := top + 24
	for class, color := range classColors() {
		if high[class] == 0 {
			continue
		}
		drawArea(w, all, below, class, color, y)
		fmt.Fprintf(w, "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			leftMargin+columns+8, legend-9, color, leftMargin+columns+22, legend, classes()[class])
		legend += 15
	}
	fmt.Fprintf(w, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", leftMargin, leftMargin+columns,
		bottom, bottom)
}

// drawArea draws one class upon what is below it, in steps, and adds it to what is below the next one.
func drawArea(w *bytes.Buffer, all []column, below []int64, class int, color string, y func(int64) float64) {
	var upper, lower bytes.Buffer
	for i := 0; i < len(all); {
		k := i + 1
		for k < len(all) && all[k][class] == all[i][class] && below[k] == below[i] {
			k++
		}
		fmt.Fprintf(&upper, "%d,%.1f %d,%.1f ", leftMargin+i, y(below[i]+all[i][class]), leftMargin+k,
			y(below[i]+all[i][class]))
		i = k
	}
	for i := len(all); i > 0; {
		k := i - 1
		for k > 0 && below[k-1] == below[i-1] {
			k--
		}
		fmt.Fprintf(&lower, "%d,%.1f %d,%.1f ", leftMargin+i, y(below[i-1]), leftMargin+k, y(below[i-1]))
		i = k
	}
	fmt.Fprintf(w, "<polygon fill=\"%s\" points=\"%s%s\"/>\n", color, upper.String(), lower.String())
	for i := range below {
		below[i] += all[i][class]
	}
}
