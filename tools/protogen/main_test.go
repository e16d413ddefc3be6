package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The generated code in the tree is what the .proto file gives.
func TestGeneratedCodeIsUpToDate(t *testing.T) {
	t.Parallel()
	const kept = "../../cli/internal/gateway/cuzkv1"
	folder := t.TempDir()
	text, err := os.ReadFile(filepath.Join(kept, "cuzk.proto"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "cuzk.proto"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := generate(t.Context(), folder, "cuzk.proto"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cuzk.pb.go", "cuzk_grpc.pb.go"} {
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(kept, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: run go generate (-want +got):\n%s", name, diff)
		}
	}
}
