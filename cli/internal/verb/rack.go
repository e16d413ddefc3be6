package verb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// rackFlags say which rack is meant and who asks. Each has an environment variable, for shells that work with one
// rack.
type rackFlags struct {
	server, creds, ca, tenant string
	timeout                   time.Duration
}

// defaultServer is where "proofrack up" listens.
const defaultServer = "nats://127.0.0.1:4222"

// isServer tells whether a text is a server's address as the NATS library reads it.
func isServer(text string) bool {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" {
		return false
	}
	if u.Port() == "" {
		return true
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

// secretless is a server's address as it may be shown.
func secretless(server string) string { return oneLine(config.HideUserInfo(server)) }

// connectPause is between attempts to connect.
const connectPause = 300 * time.Millisecond

// answerTimeout bounds a question to the rack that has an answer at once.
const answerTimeout = 10 * time.Second

func (f *rackFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.server, "server", "", "NATS server of the rack (PROOFRACK_SERVER, else "+defaultServer+")")
	flags.StringVar(&f.creds, "creds", "", "credentials file (PROOFRACK_CREDS)")
	flags.StringVar(&f.ca, "ca", "", "CA certificates of the rack, PEM (PROOFRACK_CA)")
	flags.StringVar(&f.tenant, "tenant", "", "tenant (PROOFRACK_TENANT, else the credential's, else main)")
	spanVar(c, &f.timeout, "timeout", answerTimeout, "how long to wait for an answer")
}

// rack is a connection to one.
type rack struct {
	bus     bus.Bus
	client  *client.Client
	tenant  job.Tenant
	timeout time.Duration
}

func (r *rack) close() { r.bus.Close() }

// Kinds of credentials that verbs want.
const (
	asTenant   = "tenant"
	asOperator = "operator"
	asAnybody  = ""
)

// config is the connection's, for a verb that wants a kind of credential. What the credential says of itself needs no
// flag.
func (f *rackFlags) config(want string) (*natsbus.Config, job.Tenant, error) {
	settings := natsbus.DefaultConfig()
	settings.ConnectTimeout = min(settings.ConnectTimeout, max(f.timeout, time.Millisecond))
	settings.URLs = []string{cmp.Or(f.server, os.Getenv("PROOFRACK_SERVER"), defaultServer)}
	for server := range strings.SplitSeq(settings.URLs[0], ",") {
		if !isServer(server) {
			return nil, "", fail(usage, "write nats://host:port", "--server: %q is no address of a server", secretless(server))
		}
	}
	settings.CredsFile = cmp.Or(f.creds, os.Getenv("PROOFRACK_CREDS"))
	settings.CAFile = cmp.Or(f.ca, os.Getenv("PROOFRACK_CA"))
	settings.Name = "proofrack-cli"
	named := cmp.Or(f.tenant, os.Getenv("PROOFRACK_TENANT"))
	tenant, err := job.ParseTenant(cmp.Or(named, string(job.MainTenant)))
	if err != nil {
		return nil, "", misuse("--tenant: %w", err)
	}
	if settings.CredsFile == "" {
		return &settings, tenant, nil
	}
	identity, err := natsbus.ReadIdentity(settings.CredsFile)
	if err != nil {
		return nil, "", fail(badInput, fault.ReportOf("", err).Hint, "%w", err)
	}
	switch {
	case want != asAnybody && identity.Kind != "" && identity.Kind != want:
		return nil, "", fail(badInput, fmt.Sprintf("name %s credential with --creds or PROOFRACK_CREDS", article(want)),
			"this needs %s credential; %s is of %s %s", article(want), settings.CredsFile, identity.Kind, identity.Name)
	case identity.Kind == asTenant && named != "" && named != identity.Name:
		return nil, "", fail(badInput, "leave --tenant and PROOFRACK_TENANT out, or name the other tenant's credential",
			"tenant %s was named; credential %s is of tenant %s", named, settings.CredsFile, identity.Name)
	case identity.Kind == asTenant:
		if tenant, err = job.ParseTenant(identity.Name); err != nil {
			return nil, "", fail(badInput, "", "credential %s: %w", settings.CredsFile, err)
		}
	}
	return &settings, tenant, nil
}

// article is a kind of credential with its article.
func article(kind string) string {
	if kind == asOperator {
		return "an operator's"
	}
	return "a " + kind + "'s"
}

// connect connects to the rack, trying until the flags' timeout.
func (a *app) connect(ctx context.Context, f *rackFlags, want string) (*rack, error) {
	settings, tenant, err := f.config(want)
	if err != nil {
		return nil, err
	}
	b, err := dial(ctx, settings, f.timeout)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case fault.KindOf(err) == fault.Invalid: // a wrong credential, authority or address
		hint := strings.NewReplacer("nats.creds_file or nats.nkey_seed_file", "--creds", "nats.ca_file", "--ca",
			"nats.urls", "--server", "for this program", "for you").Replace(fault.ReportOf("", err).Hint)
		return nil, fail(badInput, hint, "%w", err)
	case err != nil:
		return nil, fail(noAnswer, `is the rack running, and is --server right? "proofrack up" starts one`,
			"%w", err)
	}
	return &rack{bus: b, client: client.New(b, tenant), tenant: tenant, timeout: f.timeout}, nil
}

// dial connects, trying until a time is over. The error is that of the last try that it did not cut short.
func dial(ctx context.Context, settings *natsbus.Config, limit time.Duration) (bus.Bus, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		b, err := natsbus.Connect(ctx, *settings)
		if err == nil || fault.KindOf(err) != fault.Transient {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(connectPause):
			if ctx.Err() != nil {
				return nil, err
			}
		}
	}
}

// within bounds a question that is answered at once.
func (r *rack) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.timeout)
}

// admin asks the leader as an operator.
func (r *rack) admin(ctx context.Context, verb string, body wire.Body, reply interface {
	wire.Body
	Err() error
}) error {
	ctx, cancel := r.within(ctx)
	defer cancel()
	return refused(client.Ask(ctx, r.bus, wire.AdminSubject(verb), body, reply, time.Second/2))
}

// paged asks the leader as an operator for what is answered in pages (package client follows them).
func paged[A any](
	ctx context.Context, r *rack, all func(context.Context, bus.Bus, time.Duration) (*A, error),
) (*A, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	reply, err := all(ctx, r.bus, time.Second/2)
	return reply, refused(err)
}

// refused gives an answer's fault the exit code of its kind.
func refused(err error) error {
	if err == nil {
		return nil
	}
	hint := fault.ReportOf("", err).Hint
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Conflict, fault.NotFound, fault.Corrupt:
		return fail(badInput, hint, "%w", err)
	case fault.Exhausted:
		return fail(noRoom, hint, "%w", err)
	case fault.Transient:
		return fail(noAnswer, cmp.Or(hint, "is a coordinator running, and has it time? --timeout waits longer"), "%w", err)
	case fault.Cancelled:
		if errors.Is(err, context.Canceled) {
			return err
		}
	case fault.Lost, fault.Device, fault.Internal:
	}
	return fail(internalFault, hint, "%w", err)
}

// verb is one that asks the rack.
type verb = func(c *cobra.Command, args []string, r *rack) error

// asked runs a tenant's verb with a connection.
func (a *app) asked(f *rackFlags, run verb) func(*cobra.Command, []string) error {
	return a.askedAs(f, func() string { return asTenant }, run)
}

// ordered runs an operator's verb with a connection.
func (a *app) ordered(f *rackFlags, run verb) func(*cobra.Command, []string) error {
	return a.askedAs(f, func() string { return asOperator }, run)
}

// askedAs runs a verb with a connection by the kind of credential that it wants.
func (a *app) askedAs(f *rackFlags, want func() string, run verb) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		r, err := a.connect(c.Context(), f, want())
		if err != nil {
			return err
		}
		defer r.close()
		return run(c, args, r)
	}
}

// jobArg reads the one argument of verbs about a job.
func jobArg(args []string) (job.ID, error) {
	id, err := job.ParseID(args[0])
	if err != nil {
		return "", fail(usage, `"proofrack jobs" lists them`, "%w", err)
	}
	return id, nil
}

// oneJob wants exactly one argument, which must look like a job's id.
func oneJob(hint string) cobra.PositionalArgs {
	one := oneArg("the job", hint)
	return func(c *cobra.Command, args []string) error {
		if err := one(c, args); err != nil {
			return err
		}
		_, err := jobArg(args)
		return err
	}
}

const jobHint = `"proofrack jobs" lists the jobs`

// ago is the time since a moment, for people.
func ago(at time.Time) string {
	d := time.Since(at)
	switch {
	case d < 0:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
