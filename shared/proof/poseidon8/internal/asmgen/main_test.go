package main

import (
	"bytes"
	"os"
	"testing"
)

func TestAssemblyIsWhatTheGeneratorWrites(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../../lanes_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, generate()) {
		t.Error("lanes_amd64.s is out of date: run go generate in package poseidon8")
	}
}
