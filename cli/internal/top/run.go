package top

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"
)

// Run shows the rack on a terminal until the operator quits or ctx ends, which is its error then. The environment says
// what the terminal can do (TERM, NO_COLOR).
func Run(ctx context.Context, config Config, source Source, in io.Reader, out io.Writer, environ []string) error {
	if err := config.Validate(); err != nil {
		return err
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	program := tea.NewProgram(newModel(asking, config, source), tea.WithContext(ctx), tea.WithInput(in),
		tea.WithOutput(out), tea.WithEnvironment(environ), tea.WithoutSignalHandler())
	_, err := program.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, tea.ErrInterrupted):
		return nil
	case err != nil:
		return fmt.Errorf("show rack: %w", err)
	}
	return nil
}
