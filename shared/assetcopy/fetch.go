package assetcopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// FetcherConfig says where files go and how patient a fetch is.
type FetcherConfig struct {
	// Folder is where parameter files are.
	Folder string
	// RoomMargin is what must stay free on its file system.
	RoomMargin bytesize.Bytes
	// RetryMin is the pause before a fetch that was cut goes on; it doubles up to RetryMax.
	RetryMin, RetryMax time.Duration
	// StallMax is how long no byte may come before a connection is given up.
	StallMax time.Duration
	// TriesMax is how many times in a row nothing may come before the fetch is given up.
	TriesMax int
}

// DefaultFetcherConfig is for a folder.
func DefaultFetcherConfig(folder string) FetcherConfig {
	return FetcherConfig{
		Folder: folder, RoomMargin: bytesize.GiB, RetryMin: time.Second, RetryMax: 30 * time.Second,
		StallMax: 30 * time.Second, TriesMax: 20,
	}
}

// Validate demands a folder and positive times.
func (c *FetcherConfig) Validate() error {
	if c.Folder == "" || c.RoomMargin < 0 || c.RetryMin <= 0 || c.RetryMax < c.RetryMin || c.StallMax <= 0 ||
		c.TriesMax < 1 {
		return fault.New(fault.Invalid, "fetch files: %+v", *c)
	}
	return nil
}

// Want is a file that is wanted.
type Want struct {
	// URL is the giver's, without path; Circuit and Token are what it was granted for.
	URL, Circuit, Token string
	// Name is the file's own, Bytes its size, Digest what package srs calls one.
	Name   string
	Bytes  bytesize.Bytes
	Digest string
	// Development lists the file in the folder's manifest as a development one.
	Development bool
}

// Fetcher fetches files. Its methods may be called from several goroutines, for one file from one at a time: another
// one is refused.
type Fetcher struct {
	config FetcherConfig
	client *http.Client
}

// NewFetcher makes one. Errors: kind Invalid.
func NewFetcher(config FetcherConfig) (*Fetcher, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Fetcher{config: config, client: &http.Client{
		Transport:     &http.Transport{ResponseHeaderTimeout: config.StallMax, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close ends idle connections.
func (f *Fetcher) Close() { f.client.CloseIdleConnections() }

// triesWhole is how often a file is fetched from its start when its digest is wrong.
const triesWhole = 2

// Fetch brings a file under its name and returns when it is there. Progress, when set, is told how much is. Errors:
// kind Exhausted when the disk has no room, Corrupt when what comes is not the file, Conflict when it is being fetched,
// Transient when the giver gave nothing for too long; the context's. What has come stays for the next Fetch.
func (f *Fetcher) Fetch(ctx context.Context, want Want, progress func(done bytesize.Bytes)) error {
	if filepath.Base(want.Name) != want.Name || want.Bytes <= 0 || strings.ContainsAny(want.Digest, "/.") {
		return fault.New(fault.Invalid, "fetch %q of %s with digest %q", want.Name, want.Bytes, want.Digest)
	}
	part, err := f.open(want)
	if err != nil {
		return err
	}
	defer part.Close()
	for try := 1; ; try++ {
		err := f.fill(ctx, part, want, progress)
		if err != nil {
			return fmt.Errorf("fetch %s: %w", want.Name, err)
		}
		right, err := f.check(ctx, part, want)
		switch {
		case err != nil:
			return fmt.Errorf("check %s: %w", want.Name, err)
		case right:
			return f.finish(part, want)
		case try == triesWhole:
			return fault.New(fault.Corrupt, "fetch %s: what came does not have digest %s", want.Name, want.Digest)
		}
		if err := part.Truncate(0); err != nil {
			return fmt.Errorf("fetch %s: %w", want.Name, err)
		}
	}
}

// open opens the part of a file, and locks it.
func (f *Fetcher) open(want Want) (*os.File, error) {
	if err := os.MkdirAll(f.config.Folder, 0o755); err != nil {
		return nil, fmt.Errorf("fetch %s: %w", want.Name, err)
	}
	path := filepath.Join(f.config.Folder, "."+want.Name+"."+want.Digest+".part")
	part, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", want.Name, err)
	}
	if err := unix.Flock(int(part.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fault.New(fault.Conflict, "fetch %s: it is being fetched already", want.Name), part.Close())
	}
	return part, nil
}

// room tells when the disk has none for what is missing.
func (f *Fetcher) room(part *os.File, missing bytesize.Bytes) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(part.Fd()), &s); err != nil {
		return fmt.Errorf("look for room: %w", err)
	}
	free := bytesize.Bytes(min(s.Bavail, 1<<50/uint64(s.Bsize))) * bytesize.Bytes(s.Bsize)
	if free < missing+f.config.RoomMargin {
		return fault.New(fault.Exhausted, "%s more are needed and %s must stay free, %s has %s",
			missing, f.config.RoomMargin, f.config.Folder, free)
	}
	return nil
}

// fill appends to the part until it is whole.
func (f *Fetcher) fill(ctx context.Context, part *os.File, want Want, progress func(bytesize.Bytes)) error {
	pause, tries := f.config.RetryMin, 0
	for {
		info, err := part.Stat()
		if err != nil {
			return err
		}
		have := bytesize.Bytes(info.Size())
		if progress != nil {
			progress(min(have, want.Bytes))
		}
		switch {
		case have == want.Bytes:
			return nil
		case have > want.Bytes:
			if err := part.Truncate(0); err != nil {
				return err
			}
			continue
		}
		if err := f.room(part, want.Bytes-have); err != nil {
			return err
		}
		got, err := f.more(ctx, part, have, want, progress)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if got > 0 {
			pause, tries = f.config.RetryMin, 0
		}
		var local *writeError
		switch {
		case err == nil:
			continue
		case errors.As(err, &local), fault.KindOf(err) == fault.Corrupt:
			return err
		}
		if tries++; tries >= f.config.TriesMax {
			return fault.As(fault.Transient, fmt.Errorf("nothing came %d times: %w", tries, err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, f.config.RetryMax)
	}
}

// writeError is one of the own disk, which trying again does not mend.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// FaultKind is fault.Exhausted for a full disk, else fault.Internal.
func (e *writeError) FaultKind() fault.Kind {
	if errors.Is(e.error, unix.ENOSPC) || errors.Is(e.error, unix.EDQUOT) {
		return fault.Exhausted
	}
	return fault.Internal
}

// more makes one request for what is missing and appends what comes.
func (f *Fetcher) more(
	ctx context.Context, part *os.File, have bytesize.Bytes, want Want, progress func(bytesize.Bytes),
) (got bytesize.Bytes, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive := time.AfterFunc(f.config.StallMax, cancel)
	defer alive.Stop()
	url := strings.TrimSuffix(want.URL, "/") + Path + want.Circuit
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+want.Token)
	request.Header.Set("Range", fmt.Sprintf("bytes=%d-", int64(have)))
	answer, err := f.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	expected := fmt.Sprintf("bytes %d-%d/%d", int64(have), int64(want.Bytes)-1, int64(want.Bytes))
	switch r := answer.Header.Get("Content-Range"); {
	case answer.StatusCode != http.StatusPartialContent:
		return 0, fault.New(fault.Transient, "giver answers %s", answer.Status)
	case r != expected:
		return 0, fault.New(fault.Corrupt, "giver has %q where %q was asked for", r, expected)
	}
	buffer := make([]byte, chunkBytes)
	for have+got < want.Bytes {
		n, err := answer.Body.Read(buffer[:min(chunkBytes, int64(want.Bytes-have-got))])
		if n > 0 {
			alive.Reset(f.config.StallMax)
			if _, err := part.WriteAt(buffer[:n], int64(have+got)); err != nil {
				return got, &writeError{err}
			}
			if got += bytesize.Bytes(n); progress != nil {
				progress(have + got)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return got, err
		}
	}
	if have+got < want.Bytes {
		return got, io.ErrUnexpectedEOF
	}
	return got, nil
}

// check compares the digest of the whole.
func (f *Fetcher) check(ctx context.Context, part *os.File, want Want) (bool, error) {
	digest := srs.NewDigest()
	buffer := make([]byte, 1<<20)
	content := io.NewSectionReader(part, 0, int64(want.Bytes))
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := content.Read(buffer)
		_, _ = digest.Write(buffer[:n])
		if err == io.EOF {
			return digest.Hex() == want.Digest, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// finish gives the part its name, when its bytes are on the disk.
func (f *Fetcher) finish(part *os.File, want Want) error {
	err := part.Sync()
	if err == nil && want.Development {
		err = srs.AddDevelopment(f.config.Folder, map[string]srs.Entry{want.Name: {Digest: want.Digest}})
	}
	if err == nil {
		err = os.Rename(part.Name(), filepath.Join(f.config.Folder, want.Name))
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", want.Name, err)
	}
	folder, err := os.Open(f.config.Folder)
	if err != nil {
		return fmt.Errorf("keep %s: %w", want.Name, err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}
