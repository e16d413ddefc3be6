package srs

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/proofrack/proofrack/shared/internal/replace"
)

// identity is one state of one file. Two equal identities are taken to be the same content.
type identity struct {
	Path          string `json:"path"` // absolute, links resolved
	Device        uint64 `json:"device"`
	Inode         uint64 `json:"inode"`
	Bytes         int64  `json:"bytes"`
	ModifiedNanos int64  `json:"modified_ns"`
	ChangedNanos  int64  `json:"changed_ns"`
}

// remembered is one line of the cache.
type remembered struct {
	identity
	Digest string `json:"digest"`
}

// Bounds of the cache file.
const (
	cacheEntriesMax = 256
	cacheBytesMax   = 1 << 20
	// rememberBytesMin is the size from which digests are remembered; smaller files are hashed each time.
	rememberBytesMin = 64 << 20
)

// digestCache is the file that remembers digests; an empty path remembers nothing.
type digestCache struct{ path string }

// defaultDigestCache is in the user's cache folder, or nowhere where there is none.
func defaultDigestCache() string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "proofrack", "parameter-digests.json")
}

// lookup gives the remembered digest of exactly this state of the file, or "".
func (c digestCache) lookup(id identity) string {
	for _, r := range c.load() {
		if r.identity == id {
			return r.Digest
		}
	}
	return ""
}

// load reads the cache; whatever is not a cache counts as an empty one.
func (c digestCache) load() []remembered {
	if c.path == "" {
		return nil
	}
	f, err := os.Open(c.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, cacheBytesMax+1))
	if err != nil || len(content) > cacheBytesMax {
		return nil
	}
	var all []remembered
	if json.Unmarshal(content, &all) != nil {
		return nil
	}
	return all
}

// store remembers a digest in place of any older one of the same path. Of two processes that store at the same time
// one wins; the other's file is hashed once more some day.
func (c digestCache) store(id identity, digest string) error {
	if c.path == "" {
		return nil
	}
	kept := []remembered{{id, digest}}
	for _, r := range c.load() {
		if r.Path != id.Path && len(kept) < cacheEntriesMax {
			kept = append(kept, r)
		}
	}
	content, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		return fmt.Errorf("encode digest cache: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("make folder of digest cache: %w", err)
	}
	return replace.File(c.path, content, 0o600)
}
