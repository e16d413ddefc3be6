package srs

import (
	_ "embed" // for published.json
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/internal/replace"
)

// ManifestName is the file beside parameter files that lists the development ones among them.
const ManifestName = "parameters.json"

// manifestBytesMax bounds a manifest; the published one of all Filecoin circuits has 13 kB.
const manifestBytesMax = 1 << 20

// Entry is what a manifest says of one file. Readers that know the published form only see its first three fields.
type Entry struct {
	CID         string `json:"cid"`
	Digest      string `json:"digest"`      // see Digest
	SectorSize  uint64 `json:"sector_size"` // bytes; 0 where there is no sector
	Development bool   `json:"development,omitempty"`
}

//go:embed published.json
var publishedJSON []byte

// published is the part of the published manifest that is known here: PoRep (spec c2-circuit.md 7.3).
var published = sync.OnceValue(func() map[string]Entry {
	var m map[string]Entry
	if err := json.Unmarshal(publishedJSON, &m); err != nil {
		panic(fmt.Sprintf("srs: embedded manifest: %v", err)) // a build with a broken manifest must not run
	}
	return m
})

// Published gives the published manifest's entry for a file name.
func Published(name string) (Entry, bool) {
	e, ok := published()[name]
	return e, ok
}

// readManifest reads the manifest of a folder; a missing one is empty.
func readManifest(folder string) (map[string]Entry, error) {
	content, err := manifestContent(folder)
	if err != nil || content == nil {
		return nil, err
	}
	var m map[string]Entry
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, fmt.Errorf("parse %s: %w", filepath.Join(folder, ManifestName), err)
	}
	return m, nil
}

// manifestContent is the text of a folder's manifest, nil where there is none.
func manifestContent(folder string) ([]byte, error) {
	path := filepath.Join(folder, ManifestName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, manifestBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", path, err)
	}
	if len(content) > manifestBytesMax {
		return nil, fmt.Errorf("read manifest %s: more than %d bytes: %w", path, manifestBytesMax, ErrLength)
	}
	return content, nil
}

// AddDevelopment lists files of a folder in its manifest as development ones. Other entries keep their content,
// unknown fields too. Processes that do so at the same time wait for each other.
func AddDevelopment(folder string, entries map[string]Entry) error {
	unlock, err := lockFolder(folder)
	if err != nil {
		return err
	}
	defer unlock()
	content, err := manifestContent(folder)
	if err != nil {
		return err
	}
	all := map[string]json.RawMessage{}
	if content != nil {
		if err := json.Unmarshal(content, &all); err != nil {
			return fmt.Errorf("parse %s: %w", filepath.Join(folder, ManifestName), err)
		}
	}
	for name, e := range entries {
		e.Development = true
		if all[name], err = json.Marshal(e); err != nil {
			return fmt.Errorf("encode manifest entry %s: %w", name, err)
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	return replace.File(filepath.Join(folder, ManifestName), append(text, '\n'), 0o644)
}

// lockFolder holds an advisory lock on a folder until the returned function is called; the kernel drops it with the
// process.
func lockFolder(folder string) (func(), error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("lock folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock folder %s: %w", folder, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing a folder that was only read from loses nothing
}

// Origin tells which manifest vouches for a file.
type Origin string

// The origins.
const (
	OriginPublished   Origin = "published"
	OriginDevelopment Origin = "development"
	OriginUnknown     Origin = "unknown" // the digest was not determined
)

// listings are the manifests that apply to one file.
type listings struct {
	name   string
	beside map[string]Entry
}

func listingsOf(path string) (listings, error) {
	beside, err := readManifest(filepath.Dir(path))
	return listings{name: filepath.Base(path), beside: beside}, err
}

// expected are the digests that the file's name may have, published first.
func (l listings) expected() []string {
	var all []string
	if e, ok := Published(l.name); ok {
		all = append(all, e.Digest)
	}
	if e, ok := l.beside[l.name]; ok && e.Development {
		all = append(all, e.Digest)
	}
	return all
}

// origin tells who vouches for a digest under the file's name; false if nobody does.
func (l listings) origin(digest string) (Origin, bool) {
	if e, ok := Published(l.name); ok && e.Digest == digest {
		return OriginPublished, true
	}
	if e, ok := l.beside[l.name]; ok && e.Development && e.Digest == digest {
		return OriginDevelopment, true
	}
	return OriginUnknown, false
}

// owner names another file that has this digest, "" if there is none.
func (l listings) owner(digest string) string {
	for _, m := range []map[string]Entry{published(), l.beside} {
		for name, e := range m {
			if e.Digest == digest && name != l.name {
				return name
			}
		}
	}
	return ""
}

// ListedAsDevelopment tells whether the manifest beside a file lists it as a development one.
func ListedAsDevelopment(path string) (bool, error) {
	l, err := listingsOf(path)
	return l.beside[l.name].Development, err
}
