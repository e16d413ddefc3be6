package srs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Options tune how files are opened. The zero value is ready to use.
type Options struct {
	// DigestCache is the file that remembers digests; "" means parameter-digests.json in the folder proofrack of the
	// user's cache folder.
	DigestCache string
	// Progress, when set, is told how many bytes of the file are hashed. It is called from the calling goroutine.
	Progress func(done, total int64)
}

// KeyExtension and ParamsExtension end the names of the two kinds of files.
const (
	KeyExtension    = ".vk"
	ParamsExtension = ".params"
)

// depth is how thoroughly a file is examined.
type depth struct {
	rehash  bool // hash even if the digest is remembered
	samples int  // points of each section to check fully
}

// file is a parameter file being examined.
type file struct {
	path     string
	options  Options
	f        *os.File
	data     []byte // the mapping
	id       identity
	list     listings
	layout   *layout // of a key file: the key alone
	digest   string
	origin   Origin
	warnings []string
}

// openFile maps a file without looking into it. A named pipe does not block it.
func openFile(path string, o Options) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open parameter file: %w", err)
	}
	x := &file{path: path, options: o, f: f, origin: OriginUnknown}
	if err := x.prepare(); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *file) prepare() error {
	info, err := x.f.Stat()
	if err != nil {
		return fmt.Errorf("open parameter file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return &Refusal{File: x.path, Err: ErrKind, Advice: adviceForeign}
	}
	if x.list, err = listingsOf(x.path); err != nil {
		return fmt.Errorf("open parameter file %s: %w", x.path, err)
	}
	resolved, err := resolve(x.path)
	if err != nil {
		return fmt.Errorf("open parameter file: %w", err)
	}
	if x.id, err = identityOf(resolved, info); err != nil {
		return err
	}
	if info.Size() == 0 {
		return nil // nothing to map; an empty file is refused for its length
	}
	x.data, err = mapFile(x.f, info.Size())
	return err
}

func resolve(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}

// close unmaps and closes the file.
func (x *file) close() error {
	var err error
	if x.data != nil {
		err = unix.Munmap(x.data)
		x.data = nil
	}
	return errors.Join(err, x.f.Close())
}

func (x *file) isKey() bool { return filepath.Ext(x.path) == KeyExtension }

// examine does all checks. A file that must not be used gives a *Refusal.
func (x *file) examine(ctx context.Context, expect Counts, d depth) error {
	refusal := x.checkStructure(expect, d.samples)
	if err := x.hash(ctx, d.rehash); err != nil {
		return fmt.Errorf("hash parameter file %s: %w", x.path, err)
	}
	if refusal == nil {
		refusal = x.checkDigest()
	}
	if refusal == nil {
		return x.remember()
	}
	refusal.File = x.path
	refusal.DigestExpected = strings.Join(x.list.expected(), " or ")
	refusal.DigestFound = x.digest
	if owner := x.list.owner(x.digest); owner != "" {
		refusal.Advice = "its content is that of " + owner + ": put every file back under its own name"
	}
	return refusal
}

// checkStructure parses the file and compares it with the circuit's counts, where there are any.
func (x *file) checkStructure(expect Counts, samples int) *Refusal {
	err := x.parse()
	if err != nil {
		r := &Refusal{Err: err, Advice: adviceDamaged}
		if expect != (Counts{}) && int64(len(x.data)) != x.bytesExpected(expect) {
			r.Expected = fmt.Sprintf("%d bytes", x.bytesExpected(expect))
			r.Found = fmt.Sprintf("%d bytes", len(x.data))
		}
		return r
	}
	if x.isKey() {
		expect = Counts{IC: expect.IC}
	}
	if expect != (Counts{}) && expect != x.layout.counts {
		want, got := expect.differences(x.layout.counts)
		return &Refusal{Err: ErrCounts, Expected: want, Found: got, Advice: adviceForeign}
	}
	if err := x.layout.checkSample(samples); err != nil {
		return &Refusal{Err: err, Advice: adviceDamaged}
	}
	return nil
}

func (x *file) bytesExpected(expect Counts) int64 {
	if x.isKey() {
		return expect.KeyBytes()
	}
	return expect.ParamsBytes()
}

func (x *file) parse() error {
	if !x.isKey() {
		var err error
		x.layout, err = parseLayout(x.data)
		return err
	}
	key, err := ParseKey(x.data)
	if err != nil {
		return err
	}
	x.layout = &layout{key: key, counts: Counts{IC: len(key.IC)}}
	return nil
}

func (x *file) cache() digestCache {
	if x.options.DigestCache != "" {
		return digestCache{x.options.DigestCache}
	}
	return digestCache{defaultDigestCache()}
}

// hash determines the digest: remembered, or from the content, which must not change meanwhile.
func (x *file) hash(ctx context.Context, again bool) error {
	if x.id.Bytes >= rememberBytesMin && !again {
		if x.digest = x.cache().lookup(x.id); x.digest != "" {
			return nil
		}
	}
	content := io.NewSectionReader(x.f, 0, x.id.Bytes)
	digest, err := digestReader(ctx, content, x.id.Bytes, x.options.Progress)
	if err != nil {
		return err
	}
	info, err := x.f.Stat()
	if err != nil {
		return err
	}
	now, err := identityOf(x.id.Path, info)
	if err != nil {
		return err
	}
	if now != x.id {
		return fmt.Errorf("file changed while it was read: %w", ErrDigest)
	}
	x.digest = digest
	return nil
}

// checkDigest looks for a manifest that vouches for the file.
func (x *file) checkDigest() *Refusal {
	origin, ok := x.list.origin(x.digest)
	if ok {
		x.origin = origin
		return nil
	}
	if len(x.list.expected()) == 0 {
		return &Refusal{Err: ErrUnlisted, Advice: adviceDigest}
	}
	return &Refusal{Err: ErrDigest, Advice: adviceDigest}
}

// remember keeps the digest of a large, accepted file.
func (x *file) remember() error {
	if x.id.Bytes < rememberBytesMin || x.cache().lookup(x.id) == x.digest {
		return nil
	}
	if err := x.cache().store(x.id, x.digest); err != nil {
		x.warnings = append(x.warnings, fmt.Sprintf("digest is not remembered, the file will be hashed again: %v", err))
	}
	return nil
}
