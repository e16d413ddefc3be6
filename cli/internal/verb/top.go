package verb

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/proofrack/proofrack/cli/internal/top"
)

// topColumns is the width of a page where no terminal says another one.
const topColumns = 100

// topResult is the overview of one moment.
type topResult struct{ *top.Page }

func (r *topResult) human(w io.Writer) {
	_ = r.Text(w) // as everything that is printed for people
}

// topFlags are the flags of top.
type topFlags struct {
	rack    rackFlags
	once    bool
	every   time.Duration
	picture string
	columns int
}

func (a *app) topCommand() *cobra.Command {
	var flags topFlags
	c := &cobra.Command{
		Use:   "top",
		Short: "look at the rack full-screen as it changes: nodes, pools, devices, jobs, what they wait for, buffers",
		Long: "top shows the rack full-screen: nodes with their pools as bars, devices, jobs, why one waits, and the\n" +
			"large buffers. \"?\" lists its keys: open, cancel, drain, sort, filter. Where standard output is no terminal\n" +
			"it writes a line for each change instead. With --once it prints one overview.",
		Args: noArgs,
		PreRunE: func(c *cobra.Command, _ []string) error {
			switch {
			case !flags.once && (a.json || flags.picture != ""):
				return fail(usage, helpHint(c), "--json and --svg go with --once")
			case flags.every < flightEveryMin || flags.every > time.Hour:
				return misuse("--every: must be %s to 1h, is %s", flightEveryMin, flags.every)
			case flags.columns != 0 && (flags.columns < top.ColumnsMin || flags.columns > 1000):
				return misuse("--columns: must be %d to 1000, is %d", top.ColumnsMin, flags.columns)
			}
			return nil
		},
		RunE: a.ordered(&flags.rack, func(c *cobra.Command, _ []string, r *rack) error { return a.top(c, r, &flags) }),
	}
	flags.rack.register(c)
	f := c.Flags()
	f.BoolVar(&flags.once, "once", false, "print one overview, and end")
	f.DurationVar(&flags.every, "every", time.Second, "how often to look")
	f.StringVar(&flags.picture, "svg", "", "with --once: draw it")
	f.IntVar(&flags.columns, "columns", 0, "with --once: the width (the terminal's, else 100)")
	return c
}

func (a *app) top(c *cobra.Command, r *rack, flags *topFlags) error {
	config := top.DefaultConfig()
	config.Every, config.Within = flags.every, min(config.Within, max(r.timeout, time.Millisecond))
	source := top.NewRack(r.bus)
	switch {
	case flags.once:
		config.Within = max(r.timeout, time.Millisecond)
		page, err := top.Once(c.Context(), config, source, cmp.Or(flags.columns, columnsOf(a.Out)))
		if page == nil {
			return refused(err)
		}
		if flags.picture != "" {
			if err := a.writeOutput(flags.picture, page.SVG); err != nil {
				return err
			}
		}
		if err := a.emit(&topResult{page}, flags.picture == "-"); err != nil {
			return err
		}
		return refused(err)
	case onTerminal(a.In) && onTerminal(a.Out):
		return top.Run(c.Context(), config, source, a.In, a.Out, os.Environ())
	}
	return top.Follow(c.Context(), config, source, a.Out)
}

// columnsOf is the width of a terminal, or what is told of it.
func columnsOf(stream any) int {
	if file, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= top.ColumnsMin && n <= 1000 {
		return n
	}
	return topColumns
}
