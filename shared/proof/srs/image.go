package srs

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/internal/workers"
)

// An image is parameters whose points are decoded already: what processors compute with, in the memory layout of this
// build. It lies in a file without a name that one process made for others (docs/formats.md "Image"): magic, length of
// the description, description as JSON, the verifying key as its file has it, BLAKE2b-256 of all that, then the five
// sections, each from a page's start.
const (
	imageMagic       = "PRIMAGE1"
	imagePage        = 4096
	imageDescribed   = 4096 // bound of the description
	imagePrefix      = len(imageMagic) + 4
	imageBlockPoints = 1 << 14
)

// The points lie in an image as these types do in memory: without padding, six or twelve words per coordinate pair.
var (
	_ [G1Bytes]byte = [unsafe.Sizeof(bls12381.G1Affine{})]byte{}
	_ [G2Bytes]byte = [unsafe.Sizeof(bls12381.G2Affine{})]byte{}
)

// ErrImage is wrapped when a file is no image, or one of other parameters.
var ErrImage = errors.New("not an image of these parameters")

// imageDescription is what an image says of the file it was made from.
type imageDescription struct {
	Path        string `json:"path"`
	Digest      string `json:"digest"`
	Development bool   `json:"development,omitempty"`
	Counts      Counts `json:"counts"`
}

// imageOffsets gives where the sections begin in an image, and its size.
func imageOffsets(c Counts) (at [sectionCount]int64, size int64) {
	size = int64(imagePrefix+imageDescribed) + c.KeyBytes() + blake2b.Size256
	counts := [sectionCount]int{c.H, c.L, c.A, c.B, c.B}
	for i, n := range counts {
		size = (size + imagePage - 1) / imagePage * imagePage
		at[i] = size
		size += int64(n) * sectionPointBytes(i)
	}
	return at, size
}

func sectionPointBytes(section int) int64 {
	if section == sectionCount-1 {
		return G2Bytes
	}
	return G1Bytes
}

// ImageBytes is the size of the image of parameters with these counts.
func (c Counts) ImageBytes() int64 {
	_, size := imageOffsets(c)
	return size
}

// WriteImage decodes all points into a file of exactly Counts.ImageBytes, on count goroutines. Progress, when set, is
// told how many bytes of how many are done; calls may overlap. An error leaves a file that OpenImage refuses.
func (p *Params) WriteImage(ctx context.Context, f *os.File, count int, progress func(done, total int64)) (err error) {
	at, size := imageOffsets(p.Counts)
	if info, err := f.Stat(); err != nil || info.Size() != size {
		return fmt.Errorf("write image of %s: file is not of %d bytes (%v)", p.Path, size, err)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map image of %s: %w", p.Path, err)
	}
	defer func() { err = errors.Join(err, unix.Munmap(data)) }()
	tracker := newTracker(size-at[0], progress)
	for i, s := range []Section{p.H, p.L, p.A, p.B1, p.B2} {
		err := s.decodeInto(ctx, data[at[i]:at[i]+int64(s.Len())*sectionPointBytes(i)], count, tracker)
		if err != nil {
			return fmt.Errorf("write image of %s: %w", p.Path, err)
		}
	}
	return p.writeHead(data)
}

// writeHead comes last: without it a file is no image.
func (p *Params) writeHead(data []byte) error {
	text, err := json.Marshal(imageDescription{p.Path, p.Digest, p.Development, p.Counts})
	if err != nil || len(text) > imageDescribed {
		return fmt.Errorf("describe image of %s in %d bytes: %w", p.Path, len(text), errors.Join(err, ErrImage))
	}
	head := binary.LittleEndian.AppendUint32([]byte(imageMagic), uint32(len(text)))
	head = p.Key.Append(append(head, text...))
	sum := blake2b.Sum256(head)
	copy(data, append(head, sum[:]...))
	return nil
}

// decodeInto decodes a section.
func (s Section) decodeInto(ctx context.Context, to []byte, count int, tracker *tracker) error {
	blocks := (s.Len() + imageBlockPoints - 1) / imageBlockPoints
	return workers.Each(count, blocks, func(_, block int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		from, end := block*imageBlockPoints, min((block+1)*imageBlockPoints, s.Len())
		for i := from; i < end; i++ {
			if err := decodePoint(s.Points(i, i+1), elements(to[i*s.size:(i+1)*s.size])); err != nil {
				return fmt.Errorf("decode point %d of %s: %w", i, s.name, err)
			}
		}
		tracker.add(int64(end-from) * int64(s.size))
		s.Release(from, end)
		return nil
	})
}

// decodePoint reads the coordinates of a point that the file's digest vouches for.
func decodePoint(encoded []byte, to []fp.Element) error {
	if err := checkFlags(encoded[0]); err != nil {
		return err
	}
	swap := len(to) / 4 // in G2 the encoding has the second part of a coordinate first
	for i := range to {
		if err := to[i^swap].SetBytesCanonical(encoded[i*fp.Bytes : (i+1)*fp.Bytes]); err != nil {
			return fmt.Errorf("%w: %w", ErrEncoding, err)
		}
	}
	return nil
}

// tracker counts what is done of an image.
type tracker struct {
	done     atomic.Int64
	total    int64
	progress func(done, total int64)
}

func newTracker(total int64, progress func(done, total int64)) *tracker {
	return &tracker{total: total, progress: progress}
}

func (t *tracker) add(n int64) {
	done := t.done.Add(n)
	if t.progress != nil {
		t.progress(done, t.total)
	}
}

// elements views bytes of an image as field elements.
func elements(b []byte) []fp.Element {
	return unsafe.Slice((*fp.Element)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/fp.Bytes)
}

// OpenImage maps an image that WriteImage completed; the file stays the caller's. Nobody must be able to write to it
// (seal it first): its points are used as they are. expect are the circuit's counts; the zero value compares none.
func OpenImage(f *os.File, expect Counts) (*Params, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open image: %w", err)
	}
	if info.Size() < int64(imagePrefix) {
		return nil, fmt.Errorf("open image of %d bytes: %w", info.Size(), ErrImage)
	}
	data, err := mapFile(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("open image: %w", err)
	}
	p, err := parseImage(data, expect)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open image: %w", err), unix.Munmap(data))
	}
	p.unmap = func() error { return unix.Munmap(data) }
	return p, nil
}

func parseImage(data []byte, expect Counts) (*Params, error) {
	length := int64(binary.LittleEndian.Uint32(data[len(imageMagic):imagePrefix]))
	if string(data[:len(imageMagic)]) != imageMagic || length > imageDescribed ||
		int64(len(data)) < int64(imagePrefix)+length {
		return nil, ErrImage
	}
	var d imageDescription
	if err := json.Unmarshal(data[imagePrefix:int64(imagePrefix)+length], &d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrImage, err)
	}
	c := d.Counts
	if c.IC < 1 || c.IC > icCountMax || min(c.H, c.L, c.A, c.B) < 0 || max(c.H, c.L, c.A, c.B) > len(data)/G1Bytes {
		return nil, fmt.Errorf("%w: counts %s", ErrImage, c)
	}
	at, size := imageOffsets(c)
	if size != int64(len(data)) {
		return nil, fmt.Errorf("%w: %d bytes, %d expected", ErrImage, len(data), size)
	}
	if expect != (Counts{}) && expect != c {
		want, got := expect.differences(c)
		return nil, fmt.Errorf("%w: expected %s, found %s", ErrImage, want, got)
	}
	end := int64(imagePrefix) + length + c.KeyBytes()
	if sum := blake2b.Sum256(data[:end]); string(sum[:]) != string(data[end:end+blake2b.Size256]) {
		return nil, fmt.Errorf("%w: checksum differs", ErrImage)
	}
	key, err := ParseKey(data[int64(imagePrefix)+length : end])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrImage, err)
	}
	p := &Params{Path: d.Path, Key: key, Counts: c, Digest: d.Digest, Development: d.Development, decoded: true}
	for i, s := range []*Section{&p.H, &p.L, &p.A, &p.B1, &p.B2} {
		n := int64([sectionCount]int{c.H, c.L, c.A, c.B, c.B}[i]) * sectionPointBytes(i)
		*s = Section{
			name: sectionNames[i], data: data[at[i] : at[i]+n : at[i]+n], size: int(sectionPointBytes(i)), decoded: true,
		}
	}
	return p, nil
}

// Decoded tells that the parameters are an image.
func (p *Params) Decoded() bool { return p.decoded }

// Decoded tells that the points lie in an image: they are read with G1 or G2, and not with Points.
func (s Section) Decoded() bool { return s.decoded }

// G1 are the points from..to-1 of a decoded section of G1 points, in the mapping itself.
func (s Section) G1(from, to int) []bls12381.G1Affine {
	s.mustHold(G1Bytes)
	return unsafe.Slice((*bls12381.G1Affine)(unsafe.Pointer(unsafe.SliceData(s.data[from*s.size:to*s.size]))), to-from)
}

// G2 is G1 for G2 points.
func (s Section) G2(from, to int) []bls12381.G2Affine {
	s.mustHold(G2Bytes)
	return unsafe.Slice((*bls12381.G2Affine)(unsafe.Pointer(unsafe.SliceData(s.data[from*s.size:to*s.size]))), to-from)
}

func (s Section) mustHold(size int) {
	if !s.decoded || s.size != size {
		panic(fmt.Sprintf("srs: section %s is not decoded points of %d bytes", s.name, size))
	}
}
