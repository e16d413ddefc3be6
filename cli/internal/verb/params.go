package verb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// paramsCommand holds the verbs about parameter files.
func (a *app) paramsCommand() *cobra.Command {
	return a.group("params", "make, import and check parameter files",
		a.paramsGenerateCommand(), a.paramsImportCommand(), a.paramsCheckCommand(), a.paramsInfoCommand())
}

// paramsReport is what a parameter file is.
type paramsReport struct {
	srs.Report
	Circuit string  `json:"circuit,omitempty"`
	Seconds float64 `json:"seconds"`
}

func (r *paramsReport) human(w io.Writer) {
	row(w, "file", "%s", r.File)
	if r.Circuit != "" {
		row(w, "circuit", "%s", r.Circuit)
	}
	row(w, "size", "%d bytes (%s)", r.Bytes, byteText(r.Bytes))
	row(w, "points", "%s", r.Counts)
	if r.Digest != "" {
		row(w, "digest", "%s", r.Digest)
	}
	if len(r.DigestExpected) > 0 {
		row(w, "listed digest", "%s", strings.Join(r.DigestExpected, " or "))
	}
	row(w, "origin", "%s", r.Origin)
	for _, warning := range r.Warnings {
		row(w, "warning", "%s", oneLine(warning))
	}
	row(w, "time", "%.2f s", r.Seconds)
}

// examination is one of srs.Check and srs.Import.
type examination func(context.Context, string, srs.Counts, srs.Options) (srs.Report, error)

// paramsImportCommand looks at a file once and remembers its digest.
func (a *app) paramsImportCommand() *cobra.Command {
	return a.examineCommand("import",
		"check a parameter file once and remember its digest, so that proving starts at once", srs.Import)
}

// paramsCheckCommand looks at a file again.
func (a *app) paramsCheckCommand() *cobra.Command {
	return a.examineCommand("check", "check a parameter file: structure, counts, a sample of points, digest", srs.Check)
}

// examineCommand is import or check.
func (a *app) examineCommand(name, short string, examine examination) *cobra.Command {
	var flags storeFlags
	c := &cobra.Command{
		Use:   name + " FILE",
		Short: short,
		Args:  oneArg("the parameter file", "it ends in .params or .vk"),
		RunE: func(c *cobra.Command, args []string) error {
			start := time.Now()
			circuitID, expect, err := a.expectedCounts(c.Context(), args[0], &flags)
			if err != nil {
				return err
			}
			meter := a.startMeter("hashing")
			defer meter.stop()
			report, err := examine(c.Context(), args[0], expect, flags.options(meter))
			if err != nil {
				return paramsFileFailure(err, args[0])
			}
			meter.stop()
			return a.emit(&paramsReport{Report: report, Circuit: circuitID, Seconds: seconds(time.Since(start))}, false)
		},
	}
	flags.registerCache(c)
	return c
}

// paramsInfoCommand says what a file is.
func (a *app) paramsInfoCommand() *cobra.Command {
	var flags storeFlags
	c := &cobra.Command{
		Use:   "info FILE",
		Short: "print the counts and size of a parameter file without hashing it",
		Args:  oneArg("the parameter file", "it ends in .params or .vk"),
		RunE: func(c *cobra.Command, args []string) error {
			start := time.Now()
			report, err := srs.Info(c.Context(), args[0], flags.options(&meter{}))
			if err != nil {
				return paramsFileFailure(err, args[0])
			}
			result := &paramsReport{Report: report, Circuit: circuitOfFile(args[0]), Seconds: seconds(time.Since(start))}
			return a.emit(result, false)
		},
	}
	flags.registerCache(c)
	return c
}

// circuitOfFile is the id of the circuit that a parameter file's name belongs to, "" if there is none.
func circuitOfFile(path string) string {
	name := filepath.Base(path)
	known, err := catalog.FindByParamsName(strings.TrimSuffix(name, filepath.Ext(name)))
	if err != nil {
		return ""
	}
	return known.ID()
}

// expectedCounts gives the counts that a file must have by its name; those of unknown names are not compared.
func (a *app) expectedCounts(ctx context.Context, path string, f *storeFlags) (string, srs.Counts, error) {
	if _, err := os.Stat(path); err != nil {
		return "", srs.Counts{}, paramsFileFailure(fmt.Errorf("look at %q: %w", path, reason(err)), path)
	}
	id := circuitOfFile(path)
	if id == "" {
		return "", srs.Counts{}, nil
	}
	known, err := catalog.Find(id)
	if err != nil {
		return "", srs.Counts{}, err
	}
	densities, err := a.artifactOf(ctx, known, f)
	if err != nil {
		return "", srs.Counts{}, err
	}
	return id, srs.CountsOf(densities.Totals, densities.Density), nil
}

// paramsFileFailure gives errors about a file named by the user their kind.
func paramsFileFailure(err error, path string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fail(noParams, "name a .params or .vk file", "there is no %q", path)
	}
	return err
}
