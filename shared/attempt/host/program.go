package host

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/support"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// Exit codes of a worker program.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	// ExitNoDevice: there is nothing to prove on.
	ExitNoDevice = 3
)

// Program is what a worker program adds to what both have.
type Program struct {
	// Name is the program's, Title heads its example configuration.
	Name, Title string
	// Config points to the configuration, which holds the defaults.
	Config any
	// Logs and Traces give what was loaded about them; Set is told logger, tracer (nil for none) and build, once all is
	// loaded.
	Logs   func() telemetry.LogConfig
	Traces func() telemetry.TraceConfig
	Set    func(log zerolog.Logger, tracer *telemetry.Tracer, build string)
	// Flags adds flags of its own; they give assignments as --set does.
	Flags func(flags *flag.FlagSet, assign func(assignment string))
	Run   func(context.Context) error
}

// list is a flag that may be given again and again.
type list struct{ values *[]string }

func (l list) String() string         { return "" }
func (l list) Set(value string) error { *l.values = append(*l.values, value); return nil }

// flagSet has the flags of package config.
type flagSet struct{ *flag.FlagSet }

func (f flagSet) StringArrayVar(p *[]string, name string, _ []string, usage string) {
	f.Var(list{p}, name, usage)
}

// clientVariables are those of the program proofrack, which may be set in the same shell.
func clientVariables() []string {
	return []string{"PROOFRACK_SERVER", "PROOFRACK_CREDS", "PROOFRACK_CA", "PROOFRACK_TENANT"}
}

// Main is the program from its arguments to its exit code.
func (p *Program) Main(args []string, environ []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		//nolint:errcheck // nobody else to tell
		fmt.Fprintf(errs, "usage: %s [flags]\n       %s [flags] config print|example\n", p.Name, p.Name)
		flags.PrintDefaults()
	}
	sources := config.Sources{Environ: environ, Foreign: clientVariables()}
	sources.Bind(flagSet{flags})
	if p.Flags != nil {
		p.Flags(flags, func(assignment string) { sources.Set = append(sources.Set, assignment) })
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return ExitOK
	case err != nil:
		return ExitUsage
	}
	do, err := p.verb(flags.Args(), out)
	if err == nil && do == nil {
		return ExitOK
	}
	var table *config.Table
	if err == nil {
		table, err = config.Load(p.Config, sources)
	}
	if err == nil {
		err = do(table)
	}
	switch {
	case err == nil:
		return ExitOK
	case !errors.Is(err, errRun):
		fmt.Fprintf(errs, "%s: %v\n", p.Name, err) //nolint:errcheck // nobody else to tell
		if fault.KindOf(err) == fault.Internal {
			return ExitFailed
		}
		return ExitUsage
	}
	return p.run(errs, table)
}

// errRun says that the program is to run.
var errRun = errors.New("run")

// verb gives what to do with a loaded configuration; nothing when all is done already.
func (p *Program) verb(args []string, out io.Writer) (func(*config.Table) error, error) {
	switch {
	case len(args) == 0:
		return func(*config.Table) error { return errRun }, nil
	case len(args) == 2 && args[0] == "config" && args[1] == "print":
		return func(t *config.Table) error { return t.Print(out) }, nil
	case len(args) == 2 && args[0] == "config" && args[1] == "example":
		_, err := io.WriteString(out, config.Example(p.Title, p.Config))
		return nil, err
	}
	return nil, fault.New(fault.Invalid, "unknown arguments %q: see --help", args)
}

func (p *Program) run(errs io.Writer, table *config.Table) int {
	record := support.New(p.Name, Build())
	var settings strings.Builder
	if err := table.Print(&settings); err == nil {
		record.SetSettings(settings.String())
	}
	log := telemetry.NewLogger(p.Logs(), io.MultiWriter(errs, record), time.Now)
	tracer, err := telemetry.OpenTracer(context.Background(), p.Traces(),
		telemetry.Program{Name: "proofrack-" + p.Name, Build: Build(), Instance: uuid.NewString()}, log)
	if err != nil {
		log.Error().Err(err).Msg(p.Name + " cannot send traces")
		return ExitUsage
	}
	defer tracer.Close() // when all results are out
	p.Set(log, tracer, Build())
	ctx, stop := service.Notify(context.Background(), log)
	defer stop()
	procs, err := inventory.NewHost().LowerProcs()
	if err != nil {
		log.Warn().Err(err).Msg("processors are not to be counted")
	}
	log.Info().Str("build", Build()).Int("procs", procs).Int("pid", os.Getpid()).Msg(p.Name + " starts")
	if err := p.Run(support.With(ctx, record)); err != nil {
		log.Error().Err(err).Msg(p.Name + " ended with an error")
		if fault.KindOf(err) == fault.Device {
			return ExitNoDevice
		}
		return ExitFailed
	}
	log.Info().Msg(p.Name + " ends")
	return ExitOK
}

// Build names this program's build.
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	build := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			build += "+" + s.Value[:12]
		}
	}
	return build
}
