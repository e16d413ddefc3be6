package main

import (
	"context"
	"os"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/telemetry"
	workersynth "github.com/proofrack/proofrack/worker-synth"
)

func main() {
	config := workersynth.DefaultConfig()
	config.Alone = true
	program := host.Program{
		Name: "worker-synth", Title: "Synthesis worker", Config: &config,
		Logs:   func() telemetry.LogConfig { return config.Logs },
		Traces: func() telemetry.TraceConfig { return config.Traces },
		Set: func(log zerolog.Logger, tracer *telemetry.Tracer, build string) {
			config.Log, config.Tracer, config.Build = log, tracer, build
		},
		Run: func(ctx context.Context) error { return workersynth.Run(ctx, config) },
	}
	os.Exit(program.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
