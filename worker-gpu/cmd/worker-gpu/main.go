package main

import (
	"context"
	"flag"
	"os"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/telemetry"
	workergpu "github.com/proofrack/proofrack/worker-gpu"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == workergpu.EngineArgument {
		os.Exit(workergpu.Engine())
	}
	config := workergpu.DefaultConfig()
	program := host.Program{
		Name: "worker-gpu", Title: "GPU worker", Config: &config,
		Logs:   func() telemetry.LogConfig { return config.Logs },
		Traces: func() telemetry.TraceConfig { return config.Traces },
		Set: func(log zerolog.Logger, tracer *telemetry.Tracer, build string) {
			config.Log, config.Tracer, config.Build = log, tracer, build
		},
		Flags: func(flags *flag.FlagSet, assign func(string)) {
			const usage = "devices to drive, separated by commas: cpu, names or UUIDs of GPUs; or cuda, or auto"
			flags.Func("device", usage, func(names string) error {
				assign("prove.devices=" + names)
				return nil
			})
		},
		Run: func(ctx context.Context) error { return workergpu.Run(ctx, config) },
	}
	os.Exit(program.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
