package artifact

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/blake2b"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/internal/replace"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Format of an artifact file, all integers little-endian (docs/formats.md "Artifact"): magic, id length u32, id, six
// totals u64, the bitmaps of A aux, B aux and B inputs as u64 words, BLAKE2b-256 of all before.
const (
	magic       = "PRARTIF1"
	digestBytes = blake2b.Size256
	idBytesMax  = 64
)

// FileName is the name of a circuit's artifact file.
func FileName(circuitID string) string { return circuitID + ".artifact" }

// Load reads a circuit's artifact from a folder, or builds it and stores it there. Built tells which. When it can't be
// stored, the artifact is returned together with the error.
func Load(ctx context.Context, folder string, c circuit.Circuit, workers int) (a *Artifact, built bool, err error) {
	path := filepath.Join(folder, FileName(c.ID()))
	a, err = ReadFile(path, c)
	if err == nil {
		return a, false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrCorrupt) {
		return nil, false, err
	}
	if a, err = Build(ctx, c, workers); err != nil {
		return nil, false, err
	}
	return a, true, a.WriteFile(path)
}

// ReadFile reads a circuit's artifact.
func ReadFile(path string, c circuit.Circuit) (*Artifact, error) {
	totals := circuit.Totals(c)
	want := encodedBytes(c.ID(), totals)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read artifact of circuit %s: %w", c.ID(), err)
	}
	if info.Size() != int64(want) {
		return nil, fmt.Errorf("%w: %s has %d bytes, circuit %s needs %d", ErrCorrupt, path, info.Size(), c.ID(), want)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read artifact of circuit %s: %w", c.ID(), err)
	}
	a, err := decode(data, c.ID(), totals)
	if err != nil {
		return nil, fmt.Errorf("artifact %s: %w", path, err)
	}
	return a, nil
}

// WriteFile stores the artifact under a temporary name, then under its own, and makes its folder if there is none.
func (a *Artifact) WriteFile(path string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = replace.File(path, a.encode(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("store artifact of circuit %s: %w", a.CircuitID, err)
	}
	return nil
}

func encodedBytes(id string, totals r1cs.Position) int {
	words := 2*((totals.Aux+63)/64) + (totals.Inputs+63)/64
	return len(magic) + 4 + len(id) + 6*8 + 8*words + digestBytes
}

func (a *Artifact) encode() []byte {
	if len(a.CircuitID) > idBytesMax {
		panic(fmt.Sprintf("artifact: circuit id %q is longer than %d bytes", a.CircuitID, idBytesMax))
	}
	data := append(make([]byte, 0, encodedBytes(a.CircuitID, a.Totals)), head(a.CircuitID, a.Totals)...)
	for _, bitmap := range [][]uint64{a.Density.AAux, a.Density.BAux, a.Density.BInputs} {
		for _, w := range bitmap {
			data = binary.LittleEndian.AppendUint64(data, w)
		}
	}
	digest := blake2b.Sum256(data)
	return append(data, digest[:]...)
}

func head(id string, t r1cs.Position) []byte {
	data := binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(id)))
	data = append(data, id...)
	for _, n := range []int{t.Rows, t.Inputs, t.Aux, t.FullA, t.FullB, t.FullAux} {
		data = binary.LittleEndian.AppendUint64(data, uint64(n))
	}
	return data
}

func decode(data []byte, id string, totals r1cs.Position) (*Artifact, error) {
	if len(data) != encodedBytes(id, totals) {
		return nil, fmt.Errorf("%w: %d bytes, circuit %s needs %d", ErrCorrupt, len(data), id, encodedBytes(id, totals))
	}
	body := data[:len(data)-digestBytes]
	if digest := blake2b.Sum256(body); string(digest[:]) != string(data[len(body):]) {
		return nil, fmt.Errorf("%w: checksum differs", ErrCorrupt)
	}
	h := head(id, totals)
	if string(body[:len(h)]) != string(h) {
		return nil, fmt.Errorf("%w: not of circuit %s with its present totals", ErrCorrupt, id)
	}
	body = body[len(h):]
	a := &Artifact{CircuitID: id, Totals: totals, Density: r1cs.NewDensity(totals)}
	for _, bitmap := range [][]uint64{a.Density.AAux, a.Density.BAux, a.Density.BInputs} {
		for i := range bitmap {
			bitmap[i] = binary.LittleEndian.Uint64(body[8*i:])
		}
		body = body[8*len(bitmap):]
	}
	return a, nil
}
