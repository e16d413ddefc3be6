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
}

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
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return m.what.Load().(string) + " " })),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.Elapsed(decor.ET_STYLE_MMSS)),
	)
	return m
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
	m.bar.Abort(true)
	m.bars.Wait()
	m.bar = nil
}
