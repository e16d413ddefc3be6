package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// runNATS runs "natsserver DIR FILE": a NATS server with JetStream, whose address is in the file when it is up.
func runNATS(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: args[0], Listen: "127.0.0.1:0"})
	if err == nil {
		defer s.Stop()
		err = os.WriteFile(args[1], []byte(s.URL()+"\n"), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-ctx.Done()
	return 0
}

// runCoordinator is the program coordinator.
func runCoordinator(args []string) int {
	config := coordinator.DefaultConfig()
	program := host.Program{
		Name: "coordinator", Title: "Coordinator", Config: &config,
		Logs:   func() telemetry.LogConfig { return config.Logs },
		Traces: func() telemetry.TraceConfig { return config.Traces },
		Set: func(log zerolog.Logger, tracer *telemetry.Tracer, build string) {
			config.Log, config.Tracer, config.Build = log, tracer, build
		},
		Run: func(ctx context.Context) error { return coordinator.Run(ctx, config) },
	}
	return program.Main(args, os.Environ(), os.Stdout, os.Stderr)
}
