package engine

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"testing"
)

// pair is two ends of a socket pair.
func pair(t *testing.T) (a, b *conn) {
	t.Helper()
	mine, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]*conn, 2)
	for i, file := range []*os.File{mine, theirs} {
		if ends[i], err = newConn(file); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].socket.Close() })
	}
	return ends[0], ends[1]
}

func TestFramesCarryFiles(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	for id, with := range []*os.File{nil, file, nil, file} {
		if err := a.send(request{ID: uint64(id)}, with); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range []bool{false, true, false, true} {
		var r request
		got, err := b.receive(&r)
		if err != nil || r.ID != uint64(id) || (got != nil) != want {
			t.Fatalf("frame %d: %+v, file %v, %v", id, r, got != nil, err)
		}
		if got == nil {
			continue
		}
		content := make([]byte, 7)
		if _, err := got.ReadAt(content, 0); err != nil || string(content) != "content" {
			t.Errorf("frame %d: file holds %q, %v", id, content, err)
		}
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := a.send(request{Circuit: string(make([]byte, FrameBytesMax))}, nil); err == nil {
		t.Error("a frame over the limit was sent")
	}
	if err := a.socket.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.receive(&request{}); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// Whatever comes over the socket is a frame or an error, and never more memory than a frame's.
func FuzzReceive(f *testing.F) {
	frame := func(body string) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	f.Add(frame(`{"id":1,"do":"load","circuit":"toy"}`))
	f.Add(append(frame(`{}`), frame(`{"id":18446744073709551615}`)...))
	f.Add(binary.LittleEndian.AppendUint32(nil, FrameBytesMax+1))
	f.Add(frame(`{"id":"x"}`)[:6])
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return // more than the socket takes at once
		}
		a, b := pair(t)
		if _, err := a.socket.Write(data); err != nil && len(data) > 0 {
			t.Fatal(err)
		}
		if err := a.socket.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		for range len(data)/frameHeadBytes + 1 {
			var r request
			file, err := b.receive(&r)
			if file != nil {
				t.Fatal("a file out of nowhere")
			}
			if err != nil {
				return
			}
		}
		t.Fatal("more frames than fit")
	})
}
