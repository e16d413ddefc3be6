package handoff

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Version is the version of the header that this build writes and reads.
const Version = 1

// HeaderBytes is the size of the header page; the body follows it.
const HeaderBytes = 4096

// Sizes within the header.
const (
	magic           = "PRHANDOF"
	jobBytes        = 36
	circuitBytesMax = 64
	bootBytesMax    = 36
	// edgeBytes of the body's start and of its end are covered by the seal.
	edgeBytes = 64 << 10
)

// Offsets within the header, little-endian. The head is fixed from creation on, the seal part is written once, the
// state is eight characters of text that are stored as one word.
const (
	offVersion   = 8
	offHeader    = 12
	offJob       = 16
	offPartition = 56
	offFence     = 64
	offCircuit   = 72
	offBody      = 136
	offFile      = 144
	offBoot      = 152
	offPID       = 192
	offStart     = 200
	offCreated   = 208
	offEdge      = 216
	offHeadCRC   = 220
	headEnd      = 224

	offSealed  = 256
	offEdgeCRC = 264
	offSealCRC = 268
	sealEnd    = 272

	offState = 512
	stateEnd = 520
)

// State is where a segment is on its way.
type State string

// States of a segment.
const (
	Created State = "created"
	Sealed  State = "sealed"
	Void    State = "void"
)

// word is the state as the eight bytes that are stored at once.
func (s State) word() uint64 {
	var b [8]byte
	copy(b[:], s)
	return binary.NativeEndian.Uint64(b[:])
}

// bytes is the state as it is written to a file that is not mapped.
func (s State) bytes() []byte { return binary.NativeEndian.AppendUint64(nil, s.word()) }

// Header is what the header page says.
type Header struct {
	Attempt job.Attempt
	Circuit string
	// BodyBytes is the size of the body, FileBytes of the whole file.
	BodyBytes, FileBytes int64
	// Writer is the process that made it.
	Writer    Process
	CreatedAt time.Time
	State     State
	// SealedAt is set in state sealed.
	SealedAt time.Time

	edgeCRC uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeHead fills the part that is fixed from creation on, and clears the rest but the state.
func (h *Header) encodeHead(page []byte) {
	clear(page[:offState])
	clear(page[stateEnd:HeaderBytes])
	le := binary.LittleEndian
	copy(page, magic)
	le.PutUint32(page[offVersion:], Version)
	le.PutUint32(page[offHeader:], HeaderBytes)
	copy(page[offJob:offJob+jobBytes], h.Attempt.Job)
	le.PutUint32(page[offPartition:], uint32(h.Attempt.Partition))
	le.PutUint64(page[offFence:], h.Attempt.Fence)
	copy(page[offCircuit:offCircuit+circuitBytesMax], h.Circuit)
	le.PutUint64(page[offBody:], uint64(h.BodyBytes))
	le.PutUint64(page[offFile:], uint64(h.FileBytes))
	copy(page[offBoot:offBoot+bootBytesMax], h.Writer.Boot)
	le.PutUint32(page[offPID:], uint32(h.Writer.PID))
	le.PutUint64(page[offStart:], h.Writer.Start)
	le.PutUint64(page[offCreated:], uint64(h.CreatedAt.UnixNano()))
	le.PutUint32(page[offEdge:], edgeBytes)
	le.PutUint32(page[offHeadCRC:], crc32.Checksum(page[:offHeadCRC], castagnoli))
}

// encodeSeal fills the part that is known at the seal. It is bound to the head by its checksum.
func (h *Header) encodeSeal(page []byte) {
	le := binary.LittleEndian
	le.PutUint64(page[offSealed:], uint64(h.SealedAt.UnixNano()))
	le.PutUint32(page[offEdgeCRC:], h.edgeCRC)
	le.PutUint32(page[offSealCRC:], sealCRC(page))
}

func sealCRC(page []byte) uint32 {
	sum := crc32.Checksum(page[offHeadCRC:headEnd], castagnoli)
	return crc32.Update(sum, castagnoli, page[offSealed:offSealCRC])
}

// refuse makes the error for a header that is not what it should be.
func refuse(format string, args ...any) error {
	return fault.As(fault.Corrupt, fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...)))
}

// decodeHeader reads a header page. It refuses everything that encodeHead and encodeSeal do not write.
func decodeHeader(page []byte) (*Header, error) {
	if len(page) < HeaderBytes {
		return nil, refuse("header of %d bytes", len(page))
	}
	page = page[:HeaderBytes]
	le := binary.LittleEndian
	if string(page[:len(magic)]) != magic {
		return nil, refuse("no %s mark", magic)
	}
	if v, n := le.Uint32(page[offVersion:]), le.Uint32(page[offHeader:]); v != Version || n != HeaderBytes {
		return nil, refuse("version %d with a header of %d bytes, this build reads %d", v, n, Version)
	}
	if got, want := crc32.Checksum(page[:offHeadCRC], castagnoli), le.Uint32(page[offHeadCRC:]); got != want {
		return nil, refuse("header checksum %08x, expected %08x", got, want)
	}
	h := &Header{
		Attempt: job.Attempt{
			Job:       job.ID(page[offJob : offJob+jobBytes]),
			Partition: int(le.Uint32(page[offPartition:])),
			Fence:     le.Uint64(page[offFence:]),
		},
		BodyBytes: int64(le.Uint64(page[offBody:])),
		FileBytes: int64(le.Uint64(page[offFile:])),
		Writer:    Process{PID: int(le.Uint32(page[offPID:])), Start: le.Uint64(page[offStart:])},
		CreatedAt: time.Unix(0, int64(le.Uint64(page[offCreated:]))),
	}
	var ok bool
	if h.Circuit, ok = decodeText(page[offCircuit : offCircuit+circuitBytesMax]); !ok || h.Circuit == "" {
		return nil, refuse("circuit name")
	}
	if h.Writer.Boot, ok = decodeText(page[offBoot : offBoot+bootBytesMax]); !ok || h.Writer.Boot == "" {
		return nil, refuse("boot id")
	}
	if _, err := job.ParseAttempt(h.Attempt.String()); err != nil {
		return nil, refuse("%w", err)
	}
	if h.BodyBytes <= 0 || h.BodyBytes > bodyBytesMax || h.FileBytes < HeaderBytes+h.BodyBytes ||
		h.FileBytes > bodyBytesMax+2*pageBytesMax || le.Uint32(page[offEdge:]) != edgeBytes {
		return nil, refuse("body of %d bytes in a file of %d", h.BodyBytes, h.FileBytes)
	}
	again := make([]byte, HeaderBytes)
	h.encodeHead(again)
	if !bytes.Equal(again[:headEnd], page[:headEnd]) {
		return nil, refuse("header with bytes that mean nothing")
	}
	return h, h.decodeState(page)
}

func (h *Header) decodeState(page []byte) error {
	le := binary.LittleEndian
	switch word := binary.NativeEndian.Uint64(page[offState:]); word {
	case Created.word():
		h.State = Created
	case Void.word():
		h.State = Void
	case Sealed.word():
		h.State = Sealed
		if got, want := sealCRC(page), le.Uint32(page[offSealCRC:]); got != want {
			return refuse("checksum of the seal %08x, expected %08x", got, want)
		}
		h.SealedAt = time.Unix(0, int64(le.Uint64(page[offSealed:])))
		h.edgeCRC = le.Uint32(page[offEdgeCRC:])
	default:
		return refuse("state %016x", word)
	}
	return nil
}

// decodeText reads a text padded with zeros.
func decodeText(field []byte) (string, bool) {
	text, rest, _ := bytes.Cut(field, []byte{0})
	return string(text), len(bytes.Trim(rest, "\x00")) == 0
}

// edgeSum is the checksum of both ends of a body.
func edgeSum(body []byte) uint32 {
	n := min(len(body), edgeBytes)
	sum := crc32.Checksum(body[:n], castagnoli)
	return crc32.Update(sum, castagnoli, body[len(body)-n:])
}
