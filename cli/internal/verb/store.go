package verb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/artifact"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// storeFlags say where parameters lie and where derived data is kept.
type storeFlags struct {
	params string
	cache  string
}

// registerParams adds --params to a command.
func (f *storeFlags) registerParams(c *cobra.Command) {
	c.Flags().StringVar(&f.params, "params", "", "folder with the parameter files")
}

// registerCache adds --cache to a command.
func (f *storeFlags) registerCache(c *cobra.Command) {
	c.Flags().StringVar(&f.cache, "cache", "",
		"folder for densities of circuits and digests of parameter files (default: proofrack in the user's cache folder)")
}

// cacheFolder is where derived data is kept, made if absent; "" if there is no place for it.
func (f *storeFlags) cacheFolder() (string, error) {
	if f.cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the user's cache folder: %w", err)
		}
		f.cache = filepath.Join(base, "proofrack")
	}
	if err := os.MkdirAll(f.cache, 0o755); err != nil {
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	return f.cache, nil
}

// options are how parameter files are opened; a meter shows the hashing.
func (f *storeFlags) options(m *meter) srs.Options {
	options := srs.Options{Progress: m.set}
	if folder, err := f.cacheFolder(); err == nil {
		options.DigestCache = filepath.Join(folder, "parameter-digests.json")
	}
	return options
}

// artifactOf gives a circuit's artifact, from the cache or by walking the circuit, which takes seconds for small
// circuits and minutes for large ones.
func (a *app) artifactOf(ctx context.Context, c circuit.Circuit, f *storeFlags) (*artifact.Artifact, error) {
	workers := runtime.GOMAXPROCS(0)
	folder, err := f.cacheFolder()
	if err != nil {
		a.warn("%v: the densities of %s are computed again each time", err, c.ID())
		return artifact.Build(ctx, c, workers)
	}
	known, _, err := artifact.Load(ctx, folder, c, workers)
	if known == nil {
		return nil, fmt.Errorf("load densities of %s: %w", c.ID(), err)
	}
	if err != nil {
		a.warn("%v", err)
	}
	return known, nil
}

// openParams maps a circuit's parameters from the folder, after all checks.
func (a *app) openParams(
	ctx context.Context, c circuit.Circuit, known *artifact.Artifact, f *storeFlags,
) (*srs.Params, error) {
	path := filepath.Join(f.params, c.ParamsName()+srs.ParamsExtension)
	meter := a.startMeter("checking parameters")
	defer meter.stop()
	params, err := srs.Open(ctx, path, srs.CountsOf(known.Totals, known.Density), f.options(meter))
	if err != nil {
		return nil, paramsFailure(err, c, path)
	}
	for _, w := range params.Warnings {
		a.warn("%s", w)
	}
	return params, nil
}

// openKey reads a circuit's verifying key: the .vk file, or else the head of the .params file.
func (a *app) openKey(ctx context.Context, c circuit.Circuit, f *storeFlags) (*srs.Key, error) {
	meter := a.startMeter("checking key")
	defer meter.stop()
	path := filepath.Join(f.params, c.ParamsName()+srs.KeyExtension)
	key, err := srs.OpenKey(ctx, path, circuit.Totals(c).Inputs, f.options(meter))
	if !errors.Is(err, fs.ErrNotExist) {
		return key, paramsFailure(err, c, path)
	}
	whole := filepath.Join(f.params, c.ParamsName()+srs.ParamsExtension)
	params, wholeErr := srs.Open(ctx, whole, srs.Counts{}, f.options(meter))
	if wholeErr != nil {
		if errors.Is(wholeErr, fs.ErrNotExist) {
			return nil, paramsFailure(err, c, path)
		}
		return nil, paramsFailure(wholeErr, c, whole)
	}
	defer params.Close()
	return &srs.Key{VerifyingKey: params.Key, Digest: params.Digest, Development: params.Development}, nil
}

// paramsFailure gives errors about a circuit's parameter file their kind; nil stays nil.
func paramsFailure(err error, c circuit.Circuit, path string) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fail(noParams, `put the published file there, or make development parameters with "proofrack params generate"`,
		"no parameters of %s: there is no %s", c.ID(), path)
}
