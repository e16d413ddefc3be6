package handoff

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// FuzzDecodeHeader: no page makes the decoder panic, and what it accepts it writes back as the same head.
func FuzzDecodeHeader(f *testing.F) {
	h := Header{
		Attempt: job.Attempt{Job: "01900000-0000-7000-8000-000000000001", Partition: 3, Fence: 9}, Circuit: "porep-32GiB",
		BodyBytes: 100_000, FileBytes: 106_496, CreatedAt: time.Unix(0, 5), SealedAt: time.Unix(0, 7),
		Writer: Process{PID: 12, Start: 34, Boot: "2b1f6c1e-4f0a-4a43-8a52-3a4f0c1d2e3f"}, edgeCRC: 99,
	}
	for _, state := range []State{Created, Sealed, Void} {
		page := make([]byte, HeaderBytes)
		h.encodeHead(page)
		h.encodeSeal(page)
		copy(page[offState:], state.bytes())
		f.Add(page)
		f.Add(page[:600])
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		if _, err := decodeHeader(page); err != nil && len(page) >= sealEnd { // with right sums it gets further
			page = bytes.Clone(page)
			binary.LittleEndian.PutUint32(page[offHeadCRC:], crc32.Checksum(page[:offHeadCRC], castagnoli))
			binary.LittleEndian.PutUint32(page[offSealCRC:], sealCRC(page))
		}
		got, err := decodeHeader(page)
		if err != nil {
			return
		}
		again := make([]byte, HeaderBytes)
		got.encodeHead(again)
		if !bytes.Equal(again[:headEnd], page[:headEnd]) {
			t.Errorf("a head was accepted that is not written: %+v", got)
		}
		if err := checkAttempt(got.Attempt); err != nil {
			t.Error(err)
		}
	})
}

// TestHeaderSurvivesItsEncoding: every field comes back.
func TestHeaderSurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	h := Header{
		Attempt: job.Attempt{Job: "01900000-0000-7000-8000-000000000001", Partition: job.PartitionsMax - 1, Fence: 1<<64 - 1},
		Circuit: string(bytes.Repeat([]byte("c"), circuitBytesMax)), BodyBytes: 1, FileBytes: 8192, State: Sealed,
		Writer:    Process{PID: 1 << 30, Start: 1 << 60, Boot: "2b1f6c1e-4f0a-4a43-8a52-3a4f0c1d2e3f"},
		CreatedAt: time.Unix(1_700_000_000, 1), SealedAt: time.Unix(1_700_000_001, 2), edgeCRC: 0xdeadbeef,
	}
	page := bytes.Repeat([]byte{0xaa}, HeaderBytes) // what another segment left
	h.encodeHead(page)
	h.encodeSeal(page)
	copy(page[offState:], Sealed.bytes())
	got, err := decodeHeader(page)
	if err != nil || *got != h {
		t.Errorf("got %+v, %v\nwant %+v", got, err, h)
	}
	if !bytes.Equal(page[stateEnd:], make([]byte, HeaderBytes-stateEnd)) {
		t.Error("bytes of another segment are left in the header")
	}
	for i := range headEnd {
		changed := bytes.Clone(page)
		changed[i] ^= 0x10
		if _, err := decodeHeader(changed); err == nil {
			t.Errorf("byte %d of the head is not covered", i)
		}
	}
	for i := offSealed; i < sealEnd; i++ {
		changed := bytes.Clone(page)
		changed[i] ^= 0x10
		if _, err := decodeHeader(changed); err == nil {
			t.Errorf("byte %d of the seal is not covered", i)
		}
	}
}
