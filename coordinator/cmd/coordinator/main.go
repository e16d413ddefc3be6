package main

import (
	"context"
	"os"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/telemetry"
)

func main() {
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
	os.Exit(program.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
