package verb

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/cli/internal/gateway"
	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// gatewayTitle heads the example of a gateway's settings.
const gatewayTitle = "Gateway"

// gatewayFlags are the settings that have flags of their own.
type gatewayFlags struct {
	sources config.Sources

	listen, forward, server, creds, ca, tenant string
}

// gatewayCommand runs the door for clients of the protocol cuzk.v1.
func (a *app) gatewayCommand() *cobra.Command {
	flags := gatewayFlags{sources: config.Sources{
		Foreign: []string{"PROOFRACK_SERVER", "PROOFRACK_CREDS", "PROOFRACK_CA", "PROOFRACK_TENANT"},
	}}
	c := &cobra.Command{
		Use:   "gateway --listen unix:///PATH [--forward ADDRESS]",
		Short: "let software that speaks cuzk.v1 (Curio) use the rack as its prover",
		Long: "gateway serves the gRPC service cuzk.v1.ProvingEngine on a unix socket or a loopback port. PoRep is proved\n" +
			"by the rack; all other kinds are passed on to --forward, another server of the same protocol, and refused\n" +
			"without one. The first interrupt ends it when its calls have ended, the second ends the calls; jobs go on.\n" +
			`All settings: "gateway config example"; --config, --set and PROOFRACK_SECTION_KEY set them.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.gateway(c, &flags) },
	}
	flags.sources.Bind(c.PersistentFlags())
	f := c.PersistentFlags()
	for _, flag := range []struct {
		to         *string
		name, help string
	}{
		{&flags.listen, "listen", "gateway.listen: unix:///path, or address:port of loopback"},
		{&flags.forward, "forward", "forward.to: unix:///path or host:port of the upstream"},
		{&flags.server, "server", "nats.urls: NATS servers of the rack, separated by commas (PROOFRACK_SERVER)"},
		{&flags.creds, "creds", "nats.creds_file: credentials file of a tenant (PROOFRACK_CREDS)"},
		{&flags.ca, "ca", "nats.ca_file: CA certificates of the rack, PEM (PROOFRACK_CA)"},
		{&flags.tenant, "tenant", "gateway.tenant: tenant, when the credential does not say (PROOFRACK_TENANT)"},
	} {
		f.StringVar(flag.to, flag.name, "", flag.help)
	}
	c.AddCommand(a.gatewayConfigCommand(&flags))
	return c
}

// gatewayConfigCommand prints settings.
func (a *app) gatewayConfigCommand(flags *gatewayFlags) *cobra.Command {
	return a.group("config", "print the gateway's settings",
		&cobra.Command{
			Use: "print", Short: "print every setting and where it is from", Args: noArgs,
			RunE: func(*cobra.Command, []string) error {
				_, table, err := flags.load()
				if err != nil {
					return err
				}
				return table.Print(a.Out)
			},
		},
		&cobra.Command{
			Use: "example", Short: "print an annotated settings file with the defaults", Args: noArgs,
			RunE: func(*cobra.Command, []string) error {
				defaults := gateway.DefaultConfig()
				_, err := fmt.Fprint(a.Out, config.Example(gatewayTitle, &defaults))
				return err
			},
		})
}

// load puts the settings together: flags win over the environment and the file, and the variables that all verbs
// know are the weakest.
func (f *gatewayFlags) load() (*gateway.Config, *config.Table, error) {
	c := gateway.DefaultConfig()
	if server := os.Getenv("PROOFRACK_SERVER"); server != "" {
		c.NATS.URLs = strings.Split(server, ",")
	}
	c.NATS.CredsFile, c.NATS.CAFile = os.Getenv("PROOFRACK_CREDS"), os.Getenv("PROOFRACK_CA")
	c.Gateway.Tenant = os.Getenv("PROOFRACK_TENANT")
	sources := f.sources
	sources.Environ = os.Environ()
	for _, flag := range []struct{ key, value string }{
		{"gateway.listen", f.listen}, {"forward.to", f.forward}, {"nats.urls", f.server}, {"nats.creds_file", f.creds},
		{"nats.ca_file", f.ca}, {"gateway.tenant", f.tenant},
	} {
		if flag.value != "" {
			sources.Set = append(sources.Set, flag.key+"="+flag.value)
		}
	}
	table, err := config.Load(&c, sources)
	switch fault.KindOf(err) {
	case "":
		return &c, table, nil
	case fault.Invalid, fault.NotFound:
		return nil, nil, fail(usage, `see "proofrack gateway config example"`, "%w", err)
	}
	return nil, nil, err
}

func (a *app) gateway(c *cobra.Command, flags *gatewayFlags) error {
	settings, _, err := flags.load()
	if err != nil {
		return err
	}
	log := telemetry.NewLogger(settings.Logs, a.Err, time.Now)
	settings.Build = buildOf()
	settings.Log = log.With().Str("role", "gateway").Logger()
	ctx, stop := service.Notify(context.WithoutCancel(c.Context()), settings.Log)
	defer stop()
	settings.Log.Info().Str("build", settings.Build).Int("pid", os.Getpid()).Msg("gateway starts")
	settings.Tracer, err = telemetry.OpenTracer(ctx, settings.Traces,
		telemetry.Program{Name: "proofrack-gateway", Build: settings.Build, Instance: uuid.NewString()}, settings.Log)
	if err != nil {
		return fail(usage, fault.ReportOf("", err).Hint, "%w", err)
	}
	defer settings.Tracer.Close()
	err = gateway.Run(ctx, *settings)
	switch fault.KindOf(err) {
	case fault.Conflict, fault.Invalid:
		return fail(usage, fault.ReportOf("", err).Hint, "%w", err)
	default:
		return err
	}
}
