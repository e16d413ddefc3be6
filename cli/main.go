package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/proofrack/proofrack/cli/internal/verb"
	workergpu "github.com/proofrack/proofrack/worker-gpu"
)

func main() {
	os.Exit(run())
}

// run ends at the first interrupt with everything half-made removed; a second one kills as usual.
func run() int {
	// A worker in this process starts the program again for each device.
	if len(os.Args) == 2 && os.Args[1] == workergpu.EngineArgument {
		return workergpu.Engine()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return verb.Run(ctx, os.Args[1:], verb.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
