package srs

import (
	"context"
	"errors"
)

// Params is an open `.params` file, or an image of one.
type Params struct {
	Path        string
	Key         *VerifyingKey
	Counts      Counts
	Digest      string
	Development bool     // vouched for by a development manifest only: proofs convince nobody else
	Warnings    []string // what went wrong without harm

	H, L, A Section // G1 points
	B1      Section // G1 points
	B2      Section // G2 points

	decoded bool
	unmap   func() error
}

// Open maps a `.params` file after all checks (see the package documentation). expect are the circuit's counts; the
// zero value compares none. A file that must not be used gives a *Refusal; a missing one wraps fs.ErrNotExist.
func Open(ctx context.Context, path string, expect Counts, o Options) (*Params, error) {
	x, err := openFile(path, o)
	if err != nil {
		return nil, err
	}
	if err := x.examine(ctx, expect, depth{samples: sampleMax}); err != nil {
		return nil, errors.Join(err, x.close())
	}
	if x.isKey() {
		err := &Refusal{
			File: path, Err: ErrCounts, Expected: "a " + ParamsExtension + " file", Found: "a verifying key",
			Advice: adviceForeign,
		}
		return nil, errors.Join(err, x.close())
	}
	p := &Params{
		Path: path, Key: x.layout.key, Counts: x.layout.counts, Digest: x.digest,
		Development: x.origin == OriginDevelopment, Warnings: x.warnings,
		H: x.layout.sections[0], L: x.layout.sections[1], A: x.layout.sections[2],
		B1: x.layout.sections[3], B2: x.layout.sections[4],
		unmap: x.close,
	}
	for _, s := range x.layout.sections {
		s.Release(0, s.Len())
	}
	return p, nil
}

// Close unmaps the file; its sections must not be used any more.
func (p *Params) Close() error { return p.unmap() }

// Key is a `.vk` file's content.
type Key struct {
	*VerifyingKey

	Digest      string
	Development bool // see Params
}

// OpenKey reads a `.vk` file after all checks. icCount is the circuit's number of inputs with ONE; 0 compares none.
// Errors are as for Open.
func OpenKey(ctx context.Context, path string, icCount int, o Options) (*Key, error) {
	x, err := openFile(path, o)
	if err != nil {
		return nil, err
	}
	if err := x.examine(ctx, Counts{IC: icCount}, depth{}); err != nil {
		return nil, errors.Join(err, x.close())
	}
	key := &Key{VerifyingKey: x.layout.key, Digest: x.digest, Development: x.origin == OriginDevelopment}
	return key, x.close()
}

// Report says what a parameter file is.
type Report struct {
	File           string   `json:"file"`
	Kind           string   `json:"kind"` // the extension without its dot: params or vk
	Bytes          int64    `json:"bytes"`
	Counts         Counts   `json:"counts"` // of a vk only IC
	Digest         string   `json:"digest"` // "" when it was not determined
	DigestExpected []string `json:"digest_expected"`
	Origin         Origin   `json:"origin"`
	Warnings       []string `json:"warnings,omitempty"`
}

// checkSamples is the number of points of each section that Check and Import check fully.
const checkSamples = 1024

// Check examines a file of either kind, hashing it even if its digest is remembered, and checks more points than Open.
// The digest is remembered. Errors are as for Open.
func Check(ctx context.Context, path string, expect Counts, o Options) (Report, error) {
	return report(ctx, path, expect, o, depth{rehash: true, samples: checkSamples})
}

// Import prepares a file of either kind for use: it is examined as by Check, but hashed only if its digest is not
// remembered yet, so that a later Open need not hash it.
func Import(ctx context.Context, path string, expect Counts, o Options) (Report, error) {
	return report(ctx, path, expect, o, depth{samples: checkSamples})
}

func report(ctx context.Context, path string, expect Counts, o Options, d depth) (Report, error) {
	x, err := openFile(path, o)
	if err != nil {
		return Report{}, err
	}
	if err := x.examine(ctx, expect, d); err != nil {
		return Report{}, errors.Join(err, x.close())
	}
	return x.report(), x.close()
}

func (x *file) report() Report {
	kind := ParamsExtension[1:]
	if x.isKey() {
		kind = KeyExtension[1:]
	}
	return Report{
		File: x.path, Kind: kind, Bytes: x.id.Bytes, Counts: x.layout.counts, Digest: x.digest,
		DigestExpected: x.list.expected(), Origin: x.origin, Warnings: x.warnings,
	}
}

// Info says what a file is without hashing it: its digest and origin are given only if they are remembered or the file
// is below 64 MiB. Nothing is compared with a manifest; a file whose structure is not sound gives a *Refusal.
func Info(ctx context.Context, path string, o Options) (Report, error) {
	x, err := openFile(path, o)
	if err != nil {
		return Report{}, err
	}
	r, err := x.info(ctx)
	return r, errors.Join(err, x.close())
}

func (x *file) info(ctx context.Context) (Report, error) {
	if refusal := x.checkStructure(Counts{}, sampleMax); refusal != nil {
		refusal.File = x.path
		return Report{}, refusal
	}
	if x.id.Bytes < rememberBytesMin {
		if err := x.hash(ctx, false); err != nil {
			return Report{}, err
		}
	} else {
		x.digest = x.cache().lookup(x.id)
	}
	x.origin, _ = x.list.origin(x.digest)
	return x.report(), nil
}
