package srs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPublishedManifestHasTheTenPoRepFiles(t *testing.T) {
	t.Parallel()
	if len(published()) != 10 {
		t.Errorf("%d entries", len(published()))
	}
	e, ok := Published("v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-8-2-sha256_hasher-" +
		"96f1b4a04c5c51e4759bbf224bbc2ef5a42c7100f16ec0637123f16a845ddfb2.params")
	want := Entry{
		CID: "QmS7ye6Ri2MfFzCkcUJ7FQ6zxDKuJ6J6B8k5PN7wzSR9sX", Digest: "1801f8a6e1b00bceb00cc27314bb5ce3",
		SectorSize: 68719476736,
	}
	if diff := cmp.Diff(want, e); !ok || diff != "" {
		t.Error(ok, diff)
	}
	for name, e := range published() {
		if len(e.Digest) != digestHexLength || e.Development {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestAddDevelopmentKeepsOtherEntries(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, ManifestName)
	if err := os.WriteFile(path, []byte(`{"x.vk": {"cid": "Qm", "digest": "00", "extra": [1]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, name := range []string{"a.vk", "b.vk", "c.vk", "d.vk"} {
		wg.Go(func() {
			if err := AddDevelopment(folder, map[string]Entry{name: {Digest: "11", SectorSize: 2048}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	added := map[string]any{"cid": "", "digest": "11", "sector_size": 2048.0, "development": true}
	want := map[string]any{
		"x.vk": map[string]any{"cid": "Qm", "digest": "00", "extra": []any{1.0}},
		"a.vk": added, "b.vk": added, "c.vk": added, "d.vk": added,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBrokenManifestIsAnError(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	content := sampleKey(2)
	path := place(t, folder, "a.vk", content, digestOf(content))
	if err := os.WriteFile(filepath.Join(folder, ManifestName), []byte(`{"a.vk": [`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKey(t.Context(), path, 2, options(t)); err == nil {
		t.Error("key was taken")
	}
	if err := AddDevelopment(folder, map[string]Entry{"a.vk": {}}); err == nil {
		t.Error("broken manifest was overwritten")
	}
}
