package residency_test

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// hold has a bench's parameters decoded into an image of images.
func (b *bench) hold(t *testing.T, images *residency.Images) (*os.File, func() error) {
	t.Helper()
	id := b.circuit.ID()
	res, release, err := b.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	size := res.Params.SRS.Counts.ImageBytes()
	release()
	file, giveBack, err := images.Hold(t.Context(), id, res.Params.SRS.Digest, size, func(f *os.File) error {
		return b.WriteImage(t.Context(), id, f)
	})
	if err != nil {
		t.Fatal(err)
	}
	return file, giveBack
}

func TestAnImageServesWithoutTheFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	id := b.circuit.ID()
	images := residency.NewImages(nil)
	file, giveBack := b.hold(t, images)
	if err := os.Remove(residency.ParamsPath(b.folder, b.circuit)); err != nil {
		t.Fatal(err)
	}
	other := residency.New(residency.Config{Params: b.folder, Find: func(string) (circuit.Circuit, error) {
		return b.circuit, nil
	}})
	res, release, err := other.Adopt(t.Context(), id, file)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Params.SRS.Decoded() || res.Params.SRS.H.Len() == 0 {
		t.Errorf("adopted %+v", res.Params.SRS)
	}
	if _, _, err := other.Adopt(t.Context(), id, file); fault.KindOf(err) != fault.Conflict {
		t.Errorf("adopted while it is used: %v", err)
	}
	if err := other.WriteImage(t.Context(), id, file); fault.KindOf(err) != fault.Conflict {
		t.Errorf("an image was decoded: %v", err)
	}
	release()
	_, release, err = other.Adopt(t.Context(), id, file) // in place of the first
	if err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := other.Evict(id, none); err != nil {
		t.Error(err)
	}
	if _, err := b.Evict(id, none); err != nil {
		t.Error(err)
	}
	if err := giveBack(); err != nil {
		t.Error(err)
	}
	if err := file.Sync(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the image stays after its last holder: %v", err)
	}
}

func TestASealedImageCannotBeChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	file, giveBack := b.hold(t, residency.NewImages(nil))
	if _, err := file.WriteAt([]byte("x"), 5000); !errors.Is(err, unix.EPERM) {
		t.Errorf("write: %v", err)
	}
	if err := file.Truncate(0); !errors.Is(err, unix.EPERM) {
		t.Errorf("truncate: %v", err)
	}
	if _, err := unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		t.Error("mapped for writing")
	}
	if _, err := b.Evict(b.circuit.ID(), none); err != nil {
		t.Error(err)
	}
	if err := giveBack(); err != nil {
		t.Error(err)
	}
}

// However many devices ask, one makes the image; the memory stays until the last of them lets go.
func TestAnImageIsMadeOnce(t *testing.T) {
	t.Parallel()
	images, goOn := residency.NewImages(nil), make(chan struct{})
	var made atomic.Int32
	var releases [8]func() error
	var files [8]*os.File
	var wg sync.WaitGroup
	for i := range releases {
		wg.Go(func() {
			var err error
			files[i], releases[i], err = images.Hold(t.Context(), "c", "digest", 4096, func(*os.File) error {
				made.Add(1)
				<-goOn
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(goOn)
	wg.Wait()
	if made.Load() != 1 {
		t.Fatalf("made %d times", made.Load())
	}
	for i, release := range releases {
		if _, err := files[i].Stat(); err != nil {
			t.Fatalf("gone before holder %d let go: %v", i, err)
		}
		if err := errors.Join(release(), release()); err != nil {
			t.Error(err)
		}
	}
	if _, err := files[0].Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it stays: %v", err)
	}
}

// Images of two parameters of one circuit are never held at once: only one is booked.
func TestAnImageOfOtherParametersWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	images := residency.NewImages(nil)
	fill := func(*os.File) error { return nil }
	_, first, err := images.Hold(t.Context(), "c", "old", 4096, fill)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := images.Hold(t.Context(), "c", "new", 4096, fill); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("beside the first: %v", err)
	}
	if err := first(); err != nil {
		t.Fatal(err)
	}
	_, second, err := images.Hold(t.Context(), "c", "new", 4096, fill)
	if err != nil {
		t.Fatal(err)
	}
	if err := second(); err != nil {
		t.Error(err)
	}
}

func TestAnImageThatFailsGivesItsMemoryBack(t *testing.T) {
	t.Parallel()
	images, broken := residency.NewImages(nil), errors.New("decoding failed")
	var file *os.File
	_, _, err := images.Hold(t.Context(), "c", "digest", 4096, func(f *os.File) error { file = f; return broken })
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if _, err := file.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("its memory stays: %v", err)
	}
	_, release, err := images.Hold(t.Context(), "c", "digest", 4096, func(*os.File) error { return nil }) // made anew
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	_, _, err = images.Hold(t.Context(), "c", "digest", -1, func(*os.File) error { return nil })
	if fault.KindOf(err) != fault.Exhausted {
		t.Errorf("memory that cannot be: %v", err)
	}
}
