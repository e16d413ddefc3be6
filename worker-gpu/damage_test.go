//go:build toy

package workergpu_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// again has the record say that the attempt failed, as the leader does, and claims the partition again.
func (r *rack) again(id job.ID, result wire.Result) job.Attempt {
	r.t.Helper()
	r.change(id, func(record *job.Record) {
		if err := record.Fail(result.Attempt, result.Fault, job.DefaultPolicy(), time.Now()); err != nil {
			r.t.Fatal(err)
		}
	})
	return r.claim(id)
}

// B78: a sealed segment is shortened, damaged, swapped or gone when the device's worker comes: found before a proof is
// made of it, named, and only that partition is made again.
func TestB78DamagedSegmentIsFoundAndMadeAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(path, other string) error
		kinds  []fault.Kind
	}{
		"one byte short": {func(path, _ string) error { return shorten(path, func(n int64) int64 { return n - 1 }) },
			[]fault.Kind{fault.Corrupt}},
		"half": {func(path, _ string) error { return shorten(path, func(n int64) int64 { return n / 2 }) },
			[]fault.Kind{fault.Corrupt}},
		"empty": {func(path, _ string) error { return shorten(path, func(int64) int64 { return 0 }) },
			[]fault.Kind{fault.Transient}}, // as one that is not made yet
		"gone":       {func(path, _ string) error { return os.Remove(path) }, []fault.Kind{fault.Transient}},
		"not booked": {func(path, _ string) error { return unbook(path) }, []fault.Kind{fault.Transient}},
		"another's": {func(path, other string) error { return overwrite(path, other) },
			[]fault.Kind{fault.Corrupt, fault.Transient}}, // Transient if the agent came first and mended its book
		"a byte wrong": {func(path, _ string) error { return flip(path) }, []fault.Kind{fault.Corrupt, fault.Device}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			r.startSynth()
			gpu := r.startGPU("spill.seal_wait=300ms", "test.folder="+r.hooks,
				"test.hooks=pause@gpu.after-fetch#1,pause@gpu.after-fetch#2")
			r.ready(wire.RoleSynth)
			r.ready(wire.RoleGPU)
			id := r.job(1)
			a := r.claim(id)
			r.wait("the first is fetched", func() bool { return r.reached("gpu.after-fetch#1") })
			other := r.claim(r.job(2))
			r.wait("both are fetched", func() bool { return r.reached("gpu.after-fetch#2") })
			path := func(a job.Attempt) string { return filepath.Join(r.view, "seg", handoff.Name(a)) }
			if err := c.damage(path(a), path(other)); err != nil {
				t.Fatal(err)
			}
			r.letGo("gpu.after-fetch#1")
			result := r.result()
			text := faultText(result)
			if result.Attempt != a || result.Outcome != job.OutcomeFailed || !strings.Contains(text, a.String()) ||
				!hasKind(c.kinds, result.Fault.Kind) {
				t.Fatalf("result of %s: %s, %s; want a failure of kind %v that names it", result.Attempt, result.Outcome, text,
					c.kinds)
			}
			r.letGo("gpu.after-fetch#2")
			r.wantProof(r.result(), other, 2) // the other one is not touched
			next := r.again(id, result)
			r.wantProof(r.result(), next, 1)
			r.clean()
			select {
			case <-gpu.done:
				t.Error("the worker ended")
			default:
			}
		})
	}
}

func hasKind(kinds []fault.Kind, kind fault.Kind) bool {
	for _, k := range kinds {
		if k == kind {
			return true
		}
	}
	return false
}

func shorten(path string, to func(int64) int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, to(info.Size()))
}

// overwrite puts a copy of another file in a file's place.
func overwrite(path, other string) error {
	data, err := os.ReadFile(other)
	if err == nil {
		err = os.WriteFile(path+".copy", data, 0o600)
	}
	if err != nil {
		return err
	}
	return os.Rename(path+".copy", path)
}

// unbook takes an attempt's booking out of the node's book, as an agent does that found the segment damaged.
func unbook(path string) error {
	attempt := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return os.Remove(filepath.Join(filepath.Dir(filepath.Dir(path)), "book", attempt))
}

// flip changes a bit in the middle of the body.
func flip(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	at := handoff.HeaderBytes + (info.Size()-handoff.HeaderBytes)/3
	if _, err := f.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= 4
	_, err = f.WriteAt(b, at)
	return err
}

// B78: a stored slice is shortened, or another's lies under its name: found by length and digest, and named. It cannot
// be made again, so the second mismatch ends the job.
func TestB78DamagedSliceEndsTheJobAfterTheSecondMismatch(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startSynth()
	r.ready(wire.RoleSynth)
	whole := toy.Slice(1)
	for name, data := range map[string][]byte{
		"one byte short": whole[:len(whole)-1], "half": whole[:len(whole)/2], "empty": {}, "another's": toy.Slice(2),
	} {
		id := r.job(1)
		slice := wire.SliceName(id, 0)
		if _, err := r.slices.Put(context.WithoutCancel(t.Context()), slice, bytes.NewReader(data), nil); err != nil {
			t.Fatal(err)
		}
		a := r.claim(id)
		for try := 1; try <= 2; try++ {
			result := r.result()
			if result.Attempt != a || result.Fault == nil || result.Fault.Kind != fault.Corrupt ||
				!strings.Contains(result.Fault.Message, slice) {
				t.Fatalf("%s, try %d: %s, %s", name, try, result.Outcome, faultText(result))
			}
			if try == 1 {
				a = r.again(id, result)
				continue
			}
			r.change(id, func(record *job.Record) {
				if err := record.Fail(a, result.Fault, job.DefaultPolicy(), time.Now()); err != nil {
					t.Fatal(err)
				}
				if record.State != job.Failed || !strings.Contains(record.Fault.Message, slice) {
					t.Errorf("%s: the job is %s: %+v", name, record.State, record.Fault)
				}
			})
		}
	}
	r.clean()
}
