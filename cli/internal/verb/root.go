package verb

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Streams are the three standard streams of the program.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// app is what all verbs share.
type app struct {
	Streams
	json bool
}

// Run executes one command line, without the program's name, and gives the exit code of doc.go.
func Run(ctx context.Context, args []string, streams Streams) int {
	a := &app{Streams: streams}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	if err := root.ExecuteContext(ctx); err != nil {
		return reportFailure(streams.Err, a.json || slices.Contains(args, "--json"), err)
	}
	return 0
}

// root is the whole command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "proofrack",
		Short: "prove Filecoin's second commit phase: C1 output in, verified proof out",
		Long: "proofrack takes the output of a sector's first commit phase (C1) and gives the proof bytes that every\n" +
			"Filecoin verifier accepts. A path \"-\" is standard input or output.\n\n" +
			"Exit codes: 0 done, 1 fault of program or machine, 2 wrong usage, 3 bad input, 4 proof does not verify,\n" +
			"5 parameters missing, 6 parameters wrong, 7 out of room, 8 job failed, 9 not ready, 10 time is up (the job\n" +
			"goes on), 11 the rack does not answer, 130 interrupted.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          a.unknownVerb,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print the result, and errors, as JSON")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fail(usage, helpHint(c), "%w", err)
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		a.circuitCommand(),
		a.paramsCommand(),
		a.sectorCommand(),
		a.synthCommand(),
		a.inputsCommand(),
		a.proveCommand(),
		a.verifyCommand(),
		a.benchCommand(),
		a.devicesCommand(),
		a.upCommand(),
		a.gatewayCommand(),
		a.submitCommand(),
		a.jobsCommand(),
		a.jobCommand(),
		a.watchCommand(),
		a.whyCommand(),
		a.cancelCommand(),
		a.resultCommand(),
		a.nodesCommand(),
		a.flightCommand(),
		a.topCommand(),
		a.memoryCommand(),
		a.drainCommand(),
		a.intakeCommand(),
		a.dlqCommand(),
		a.assetsCommand(),
		a.ledgerCommand(),
		a.auditCommand(), a.doctorCommand(), a.supportCommand(), a.planCommand(), a.drillCommand(),
	)
	return root
}

// helpHint says where a command's usage is explained.
func helpHint(c *cobra.Command) string { return fmt.Sprintf("see \"%s --help\"", c.CommandPath()) }

// unknownVerb refuses arguments of a command that only holds others.
func (a *app) unknownVerb(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fail(usage, helpHint(c), "unknown command %q", args[0])
	}
	return nil
}

// group makes a command that only holds others.
func (a *app) group(name, short string, verbs ...*cobra.Command) *cobra.Command {
	var names []string
	for _, v := range verbs {
		names = append(names, v.Name())
	}
	group := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  a.unknownVerb,
		RunE: func(c *cobra.Command, _ []string) error {
			return fail(usage, helpHint(c), "%s needs one of: %s", name, strings.Join(names, ", "))
		},
	}
	group.AddCommand(verbs...)
	return group
}

// noArgs refuses every argument.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fail(usage, helpHint(c), "unexpected argument %q", args[0])
	}
	return nil
}

// oneArg wants exactly one argument; what names it.
func oneArg(what, hint string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fail(usage, hint, "%s is missing", what)
		case len(args) > 1:
			return fail(usage, helpHint(c), "unexpected argument %q", args[1])
		}
		return nil
	}
}

// required refuses a command line without one of the named flags.
func required(c *cobra.Command, names ...string) error {
	var missing []string
	for _, name := range names {
		if !c.Flags().Changed(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return fail(usage, helpHint(c), "%s is missing", strings.Join(missing, " and "))
	}
	return nil
}
