package verb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/cli/internal/drill"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/wire"
)

// drillFlags are the flags of drill.
type drillFlags struct {
	rack                rackFlags
	operator            string
	job                 jobFlags
	store               storeFlags
	c1, kind            string
	up, means           string
	jobs                int
	within, pause       time.Duration
	yes, loseEverything bool
}

// drillResult is what was planned, or what came of it.
type drillResult struct {
	Rack     string          `json:"rack"`
	Done     bool            `json:"done"`
	Passed   bool            `json:"passed"`
	Steps    []drillStep     `json:"steps,omitempty"` // of a plan
	Verdicts []drill.Verdict `json:"verdicts,omitempty"`
}

// drillStep is one fault of a plan.
type drillStep struct {
	drill.Fault
	Do      string  `json:"do,omitempty"`
	Undo    string  `json:"undo,omitempty"`
	Hold    float64 `json:"hold_seconds,omitempty"`
	Lacking string  `json:"lacking,omitempty"`
}

func (r *drillResult) human(w io.Writer) {
	for _, s := range r.Steps {
		row(w, s.Name, "%s", s.What)
		if s.Lacking != "" {
			row(w, "", "is left out: %s", s.Lacking)
			continue
		}
		row(w, "  do", "%s", oneLine(s.Do))
		if s.Hold > 0 {
			row(w, "  hold", "%s", time.Duration(s.Hold*float64(time.Second)))
		}
		if s.Undo != "" {
			row(w, "  undo", "%s", oneLine(s.Undo))
		}
	}
	if !r.Done {
		row(w, "", "nothing was done: --yes does it")
		return
	}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		switch {
		case !v.Tried:
			row(w, v.Name, "not tried: %s", oneLine(v.Reason))
		case v.Passed():
			row(w, v.Name, "stood, %.0f s: %s", v.Seconds, v.What)
		default:
			row(w, v.Name, "NOT STOOD, %.0f s: %s", v.Seconds, v.What)
		}
		for _, text := range v.Wrong {
			row(w, "  wrong", "%s", oneLine(text))
		}
		for _, text := range v.Evidence {
			row(w, "", "%s", oneLine(text))
		}
	}
}

// drillCommand is the operator's fire drill.
func (a *app) drillCommand() *cobra.Command {
	var flags drillFlags
	var names []string
	for _, f := range drill.Faults() {
		names = append(names, fmt.Sprintf("  %-11s %s", f.Name, f.What))
	}
	c := &cobra.Command{
		Use:   "drill [FAULT...] --c1 C1 --miner MINER --sector-number NUMBER (--up DIR | --means FILE) --yes",
		Short: "bring faults about while jobs run, and see whether the rack stands them",
		Long: "drill submits jobs, brings a fault about while they run, and then looks whether all of them ended in a\n" +
			"proof, no finished partition was proved again, no pool ever held more than there is and nothing stays\n" +
			"booked. Without --yes it says what it would do and does nothing. The faults, all but the last by default:\n\n" +
			strings.Join(names, "\n") + "\n\n" +
			"It reaches what it is given the means to reach: with --up the rack in one process whose data are in that\n" +
			"folder, with --means what the commands in a file reach (deploy/examples/drill.toml).",
		RunE: func(c *cobra.Command, args []string) error { return a.drill(c, args, &flags) },
	}
	f := c.Flags()
	flags.rack.register(c)
	f.StringVar(&flags.operator, "operator-creds", "", "credentials file of an operator, where --creds is a tenant's")
	flags.job.register(c)
	flags.store.registerParams(c)
	flags.store.registerCache(c)
	f.StringVar(&flags.c1, "c1", "", "C1 output that the jobs are of")
	f.StringVar(&flags.kind, "kind", "", "kind of proof, when it is not the proof of replication")
	f.StringVar(&flags.up, "up", "", `data folder of a rack that "proofrack up" runs on this machine`)
	f.StringVar(&flags.means, "means", "", "TOML file with the commands that bring faults about and undo them")
	f.IntVar(&flags.jobs, "jobs", 2, "jobs that run during each fault")
	f.DurationVar(&flags.within, "within", 30*time.Minute, "how long one fault may take, to the last look")
	f.DurationVar(
		&flags.pause,
		"pause",
		25*time.Second,
		"with --up: how long the rack stands still, longer than its lease",
	)
	f.BoolVar(&flags.yes, "yes", false, "do it")
	f.BoolVar(&flags.loseEverything, "lose-everything", false,
		"allow the fault everything, which empties NATS and Redis, on a rack where nothing runs")
	return c
}

func (a *app) drill(c *cobra.Command, names []string, flags *drillFlags) error {
	steps, err := a.planDrill(names, flags)
	if err != nil {
		return err
	}
	plan := &drillResult{Rack: cmp.Or(flags.up, flags.rack.server, os.Getenv("PROOFRACK_SERVER"), defaultServer)}
	for _, s := range steps {
		plan.Steps = append(plan.Steps, drillStep{
			Fault: s.Fault, Do: s.Means.Do.Text, Undo: s.Means.Undo.Text, Hold: s.Means.Hold.Seconds(),
			Lacking: s.Means.Lacking,
		})
	}
	if !flags.yes {
		return a.emit(plan, false)
	}
	if slices.ContainsFunc(steps, func(s drill.Step) bool { return s.Empties }) && !flags.loseEverything {
		return fail(usage, "--lose-everything allows it", "all jobs and proofs of the rack would be lost")
	}
	config, err := a.drillConfig(c, flags)
	if err != nil {
		return err
	}
	verdicts, err := drill.Run(c.Context(), *config, steps)
	done := &drillResult{Rack: plan.Rack, Done: true, Passed: err == nil, Verdicts: verdicts}
	tried := 0
	for i := range verdicts {
		if verdicts[i].Tried {
			tried++
			done.Passed = done.Passed && verdicts[i].Passed()
		}
	}
	done.Passed = done.Passed && tried > 0
	if printErr := a.emit(done, false); printErr != nil {
		return printErr
	}
	switch {
	case err != nil:
		return err
	case tried == 0:
		return fail(notReady, "", "no fault was tried")
	case !done.Passed:
		return fail(jobFailed, "docs/drill.md says what to look at", "the rack did not stand the drill")
	}
	return nil
}

// planDrill finds the faults and the means.
func (a *app) planDrill(names []string, flags *drillFlags) ([]drill.Step, error) {
	if (flags.up == "") == (flags.means == "") {
		return nil, fail(usage, "", "give either --up or --means")
	}
	var means map[string]drill.Means
	if flags.up != "" {
		means = drill.Up(flags.up, flags.pause)
	} else {
		file, err := a.openInput(flags.means, "file of means", "deploy/examples/drill.toml is one")
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if means, err = drill.Commands(file); err != nil {
			return nil, refused(err)
		}
	}
	steps, err := drill.Plan(names, means)
	if err != nil {
		return nil, misuse("%w", err)
	}
	return steps, nil
}

// drillConfig is what a drill works with.
func (a *app) drillConfig(c *cobra.Command, flags *drillFlags) (*drill.Config, error) {
	if flags.c1 == "" || !flags.job.miner.set {
		return nil, fail(usage, sampleHint, "--c1 and --miner are needed")
	}
	if flags.up != "" {
		if _, err := drill.ReadUp(flags.up); err != nil {
			return nil, refused(err)
		}
	}
	input, err := a.readAll(flags.c1, "C1 output", sampleHint, wire.ReferenceBytesMax)
	if err != nil {
		return nil, err
	}
	config := &drill.Config{
		Jobs: flags.jobs, Within: flags.within,
		Say: func(text string) { fmt.Fprintf(a.Err, "%s %s\n", time.Now().Format(time.TimeOnly), text) },
	}
	if flags.store.params != "" {
		if config.Verify, err = a.drillVerifier(c, flags); err != nil {
			return nil, err
		}
	}
	config.Connect = func(ctx context.Context) (drill.Rack, error) {
		return a.drillRack(ctx, flags, input)
	}
	return config, nil
}

// drillVerifier verifies proofs of the input under the key in the parameters' folder.
func (a *app) drillVerifier(c *cobra.Command, flags *drillFlags) (func([]byte) error, error) {
	read, err := a.readJob(c, flags.c1, &flags.job)
	if err != nil {
		return nil, err
	}
	inputs, err := publicInputs(read)
	if err != nil {
		return nil, err
	}
	key, err := a.openKey(c.Context(), read.Circuit(), &flags.store)
	if err != nil {
		return nil, err
	}
	prepared, err := groth16.Prepare(key.VerifyingKey)
	if err != nil {
		return nil, err
	}
	return func(proof []byte) error { return verifyBytes(prepared, inputs, proof) }, nil
}

// drilled is a rack as a drill asks it: as a tenant and as an operator.
type drilled struct {
	tenant, operator *rack
	request          client.Request
	input            []byte
}

// drillRack connects once, with whatever address the rack has now.
func (a *app) drillRack(ctx context.Context, flags *drillFlags, input []byte) (drill.Rack, error) {
	asked := flags.rack
	if flags.up != "" {
		state, err := drill.ReadUp(flags.up)
		if err != nil {
			return nil, err
		}
		asked.server = state.URL
	}
	r, err := a.connect(ctx, &asked, asTenantOrAnybody(flags))
	if err != nil {
		return nil, err
	}
	d := &drilled{tenant: r, operator: r, input: input, request: client.Request{
		Kind: flags.kind, Miner: strconv.FormatUint(flags.job.miner.id, 10),
	}}
	if flags.job.number.set {
		d.request.SectorNumber = &flags.job.number.number
	}
	if flags.operator != "" {
		asked.creds = flags.operator
		if d.operator, err = a.connect(ctx, &asked, asOperator); err != nil {
			r.close()
			return nil, err
		}
	}
	return d, nil
}

func asTenantOrAnybody(flags *drillFlags) string {
	if flags.operator != "" {
		return asTenant
	}
	return asAnybody
}

// Close implements drill.Rack.
func (d *drilled) Close() {
	d.tenant.close()
	if d.operator != d.tenant {
		d.operator.close()
	}
}

// Submit implements drill.Rack.
func (d *drilled) Submit(ctx context.Context, key string) (job.ID, error) {
	request := d.request
	request.Key, request.Input = key, bytes.NewReader(d.input)
	submitted, err := d.tenant.client.Submit(ctx, request)
	if err != nil {
		return "", err
	}
	return submitted.Job, nil
}

// Record implements drill.Rack.
func (d *drilled) Record(ctx context.Context, id job.ID) (*job.Record, error) {
	status, err := d.tenant.client.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	return status.Record, nil
}

// Result implements drill.Rack.
func (d *drilled) Result(ctx context.Context, r *job.Record) ([]byte, error) {
	return d.tenant.client.Result(ctx, r)
}

// Nodes implements drill.Rack.
func (d *drilled) Nodes(ctx context.Context) (*wire.NodesReply, error) {
	return paged(ctx, d.operator, client.Nodes)
}

// Books implements drill.Rack.
func (d *drilled) Books(ctx context.Context) ([]wire.LedgerNode, error) {
	reply, err := paged(ctx, d.operator, client.Ledger)
	if err != nil {
		return nil, err
	}
	return reply.Nodes, nil
}

// Letters implements drill.Rack.
func (d *drilled) Letters(ctx context.Context) ([]wire.DeadLetter, error) {
	reply, err := paged(ctx, d.operator, client.Letters)
	if err != nil {
		return nil, err
	}
	return reply.Letters, nil
}

// Buffers implements drill.Rack.
func (d *drilled) Buffers(ctx context.Context) (none bool, wrong []string, err error) {
	var reply wire.FlightReply
	if err := d.operator.admin(ctx, wire.AdminFlight, &wire.FlightRequest{}, &reply); err != nil {
		return false, nil, err
	}
	busy := slices.ContainsFunc(reply.Nodes, func(n wire.FlightNode) bool { return !n.Idle })
	wrong = leaksOf(&reply)
	return !busy && len(wrong) == 0, wrong, nil
}
