package generate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/proofrack/proofrack/shared/internal/replace"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// Files are generated parameter files.
type Files struct {
	Result

	ParamsPath, KeyPath string
}

// ToFolder generates the two parameter files of a circuit in an existing folder and lists them as development in its
// manifest. An error leaves nothing behind; beside those of Write it may wrap ErrExists or ErrSpace.
func ToFolder(ctx context.Context, folder string, c Circuit, s Scalars, o Options) (Files, error) {
	base := filepath.Join(folder, c.ParamsName())
	t := target{
		folder: folder, params: base + srs.ParamsExtension, key: base + srs.KeyExtension, options: o.serialized(),
		freeBytes: freeBytes, wrap: func(w io.Writer) io.Writer { return w },
	}
	r, err := t.generate(ctx, c, s)
	if err != nil {
		return Files{}, fmt.Errorf("generate parameters of %s in %s: %w", c.ID(), folder, err)
	}
	return Files{Result: r, ParamsPath: t.params, KeyPath: t.key}, nil
}

// target is where a generation's files go.
type target struct {
	folder, params, key string
	options             Options
	freeBytes           func(folder string) (int64, error)
	wrap                func(io.Writer) io.Writer // around the parameter file; tests fail writes with it
}

func (t *target) generate(ctx context.Context, c Circuit, s Scalars) (Result, error) {
	if err := t.checkVacant(); err != nil {
		return Result{}, err
	}
	sections := c.Sections()
	totals := sections[len(sections)-1]
	// Before the walk A and B are unknown; all inputs are in A.
	least := srs.Counts{IC: totals.Inputs, H: 1<<totals.DomainBits() - 1, L: totals.Aux, A: totals.Inputs}
	if err := t.checkSpace(least, "at least "); err != nil {
		return Result{}, err
	}
	e, err := evaluate(ctx, c, s, t.options)
	if err != nil {
		return Result{}, err
	}
	defer e.free()
	if err := t.checkSpace(e.counts, ""); err != nil {
		return Result{}, err
	}
	temporary, r, err := t.writeTemporary(ctx, e)
	if err != nil {
		return Result{}, err
	}
	if err := t.publish(temporary, r); err != nil {
		return Result{}, errors.Join(err, removeIfThere(temporary))
	}
	return r, nil
}

// checkVacant refuses to overwrite files, but for development ones when that is asked for.
func (t *target) checkVacant() error {
	if _, err := srs.ListedAsDevelopment(t.params); err != nil {
		return err // a broken manifest is found before the work, not after it
	}
	for _, path := range []string{t.params, t.key} {
		_, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for earlier parameters: %w", err)
		}
		if !t.options.Replace {
			return fmt.Errorf("%s: %w: remove them first, or ask to replace them", path, ErrExists)
		}
		development, err := srs.ListedAsDevelopment(path)
		if err != nil {
			return err
		}
		if !development {
			return fmt.Errorf("%s: %w and are not listed as development: they are not replaced", path, ErrExists)
		}
	}
	return nil
}

// checkSpace compares the free space with what the files need.
func (t *target) checkSpace(c srs.Counts, qualifier string) error {
	free, err := t.freeBytes(t.folder)
	if err != nil {
		return err
	}
	if need := c.ParamsBytes() + c.KeyBytes(); free < need {
		return fmt.Errorf("%w: %s%d bytes needed in %s, %d are free", ErrSpace, qualifier, need, t.folder, free)
	}
	return nil
}

// writeTemporary writes and syncs the parameter file under a temporary name.
func (t *target) writeTemporary(ctx context.Context, e *evaluation) (name string, r Result, err error) {
	f, err := os.CreateTemp(t.folder, "."+filepath.Base(t.params)+".*.tmp")
	if err != nil {
		return "", Result{}, fmt.Errorf("create temporary file: %w", err)
	}
	r, err = e.write(ctx, t.wrap(f), t.options)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", Result{}, errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), r, nil
}

// publish gives the files their names and lists them. Without Options.Replace the parameter file is linked, which fails
// if another process was faster; whoever gets that name also writes the key.
func (t *target) publish(temporary string, r Result) error {
	if t.options.Replace {
		if err := os.Rename(temporary, t.params); err != nil {
			return fmt.Errorf("publish parameters: %w", err)
		}
	} else {
		if err := os.Link(temporary, t.params); err != nil {
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s: %w since a moment ago", t.params, ErrExists)
			}
			return fmt.Errorf("publish parameters: %w", err)
		}
		if err := os.Remove(temporary); err != nil {
			return fmt.Errorf("publish parameters: %w", err)
		}
	}
	if err := t.publishKey(r); err != nil {
		return errors.Join(err, removeIfThere(t.params), removeIfThere(t.key))
	}
	return nil
}

// publishKey writes the key and the manifest and makes all names durable.
func (t *target) publishKey(r Result) error {
	content := r.Key.Append(nil)
	if err := replace.File(t.key, content, 0o644); err != nil {
		return err
	}
	digest := srs.NewDigest()
	_, _ = digest.Write(content)
	entry := func(digest string) srs.Entry { return srs.Entry{Digest: digest, SectorSize: t.options.SectorSize} }
	err := srs.AddDevelopment(t.folder, map[string]srs.Entry{
		filepath.Base(t.params): entry(r.Digest),
		filepath.Base(t.key):    entry(digest.Hex()),
	})
	if err != nil {
		return err
	}
	return syncFolder(t.folder)
}

func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
