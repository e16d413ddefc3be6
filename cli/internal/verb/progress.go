package verb

import (
	"os"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// meter shows how far long work has come.
type meter struct {
	bars *mpb.Progress
	bar  *mpb.Bar
	what atomic.Value // string: the words before the bar
	rows []*meterRow  // below it
}

// meterRow is one of several bars below a meter's own.
type meterRow struct {
	bar  *mpb.Bar
	what atomic.Value // string
}

// meterRowsMax is how many rows a meter has; what would need more has none.
const meterRowsMax = 16

// onTerminal says whether a stream is a terminal.
func onTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// startMeter shows a bar on standard error if that is a terminal; otherwise the meter does nothing.
func (a *app) startMeter(what string) *meter {
	if a.json || !onTerminal(a.Err) {
		return &meter{}
	}
	m := &meter{bars: mpb.New(mpb.WithOutput(a.Err), mpb.WithWidth(40))}
	m.what.Store(what)
	m.bar = m.bars.AddBar(0,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(words(&m.what)),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.Elapsed(decor.ET_STYLE_MMSS)),
	)
	return m
}

// words decorates a bar with a string that may change.
func words(what *atomic.Value) decor.Decorator {
	return decor.Any(func(decor.Statistics) string { return what.Load().(string) + " " }, decor.WCSyncWidthR)
}

// row moves a bar of its own below the meter's, of count ones.
func (m *meter) row(i, count int, what string, done, total int64) {
	if m.bar == nil || count > meterRowsMax {
		return
	}
	for len(m.rows) < count {
		r := &meterRow{}
		r.what.Store("")
		r.bar = m.bars.AddBar(0, mpb.BarRemoveOnComplete(), mpb.PrependDecorators(words(&r.what)))
		m.rows = append(m.rows, r)
	}
	r := m.rows[i]
	r.what.Store(what)
	r.bar.SetTotal(total, false)
	r.bar.SetCurrent(min(done, total))
}

// say changes the words before the bar.
func (m *meter) say(what string) { m.what.Store(what) }

// set moves the bar; it may be called from any goroutine.
func (m *meter) set(done, total int64) {
	if m.bar == nil || total <= 0 {
		return
	}
	m.bar.SetTotal(total, false)
	m.bar.SetCurrent(min(done, total))
}

// stop removes the bar. It may be called more than once.
func (m *meter) stop() {
	if m.bar == nil {
		return
	}
	for _, r := range m.rows {
		r.bar.Abort(true)
	}
	m.bar.Abort(true)
	m.bars.Wait()
	m.bar, m.rows = nil, nil
}
