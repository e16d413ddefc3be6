package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// add has a node's own book and its segments looked at.
func (w *watch) add(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = append(w.nodes, n)
}

// watchHoldings sees to it that what nodes with a bounded room hold fits into it, whatever Redis says or has lost
// (invariant 1): by their own books, and by the files of their segments.
func (w *watch) watchHoldings(ctx context.Context, t *testing.T) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	before := map[job.Node][]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		w.mu.Lock()
		nodes := slices.Clone(w.nodes)
		w.mu.Unlock()
		for _, n := range nodes {
			wrong, over := overfull(n.spill, n.shm(), before[n.name])
			if before[n.name] = over; wrong != "" {
				t.Errorf("node %s: %s (invariant 1)", n.name, wrong)
				return
			}
		}
	}
}

// overfull tells what a spill folder holds beyond the room there is, 0 for any. A look at many files is none at one
// moment: too many segments count only when two looks show the same ones; over names those of this look.
func overfull(spill string, room bytesize.Bytes, before []string) (wrong string, over []string) {
	if room == 0 {
		return "", nil
	}
	if sum, err := ownBook(spill); err != nil {
		return err.Error(), nil
	} else if sum[ledger.PoolSHM] > room {
		return fmt.Sprintf("%s of %s of shared memory are in its own book", sum[ledger.PoolSHM], room), nil
	}
	sum, names := segmentFiles(spill)
	switch {
	case sum <= room:
		return "", nil
	case slices.Equal(names, before):
		return fmt.Sprintf("it holds segments of %s, the room is %s: %v", sum, room, names), names
	}
	return "", names
}

// The watch of what nodes hold sees a booking, an asset and a segment too many, and none where all fits.
func TestWatchSeesANodeThatHoldsTooMuch(t *testing.T) {
	t.Parallel()
	const room = 2 * roomSegment
	a := job.Attempt{Job: "01890a5d-ac96-774b-bcce-b302099a8057", Partition: 0, Fence: 1}
	b := a
	b.Partition = 1
	text := func(content any) string {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	booking := func(a job.Attempt) string {
		return text(agent.Booking{Attempt: a, Amounts: ledger.Amounts{ledger.PoolSHM: roomSegment}})
	}
	asset := text(ledger.Asset{Name: "srs:toy", Pool: ledger.PoolSHM, Class: ledger.ClassSRS, Bytes: roomSegment})
	segment := strings.Repeat("x", int(roomSegment))
	for name, test := range map[string]struct {
		files map[string]string
		wrong string
	}{
		"all fits": {files: map[string]string{
			"book/" + a.String(): booking(a), "book/" + b.String(): booking(b), "seg/a": segment, "pool/b": segment,
		}},
		"a booking": {wrong: "in its own book", files: map[string]string{
			"book/" + a.String(): booking(a), "book/" + b.String(): booking(b), "book/asset~shm~srs:toy": asset,
		}},
		"a segment": {wrong: "it holds segments", files: map[string]string{
			"seg/a": segment, "seg/b": segment, "pool/c": segment,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spill := t.TempDir()
			test.files["book/lock"] = ""
			for path, text := range test.files {
				path = filepath.Join(spill, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			wrong, over := overfull(spill, room, nil)
			if wrong == "" {
				wrong, _ = overfull(spill, room, over)
			}
			if wrong == "" != (test.wrong == "") || !strings.Contains(wrong, test.wrong) {
				t.Errorf("%q, want %q", wrong, test.wrong)
			}
		})
	}
}

// ownBook adds up a node's own book. It is empty while somebody changes it, before it is there, and when it goes.
func ownBook(spill string) (sum ledger.Amounts, err error) {
	folder := filepath.Join(spill, "book")
	lock, err := os.Open(filepath.Join(folder, "lock"))
	if err != nil {
		return nil, nil
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil {
		return nil, nil
	}
	bookings, assets, err := readOwnBook(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	sum = ledger.Amounts{}
	for _, b := range bookings {
		for pool, bytes := range b.Amounts {
			sum[pool] += bytes
		}
	}
	for _, a := range assets {
		sum[a.Pool] += a.Bytes
	}
	return sum, nil
}

func readOwnBook(folder string) (bookings []agent.Booking, assets []ledger.Asset, err error) {
	list, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range list {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		if strings.HasPrefix(e.Name(), "asset~") {
			var a ledger.Asset
			if err := json.Unmarshal(text, &a); err != nil {
				return nil, nil, fmt.Errorf("asset %s: %w", e.Name(), err)
			}
			assets = append(assets, a)
		} else if _, err := job.ParseAttempt(e.Name()); err == nil {
			var b agent.Booking
			if err := json.Unmarshal(text, &b); err != nil {
				return nil, nil, fmt.Errorf("booking %s: %w", e.Name(), err)
			}
			bookings = append(bookings, b)
		}
	}
	return bookings, assets, nil
}

// segmentFiles adds up the bytes that a node's segments have in memory, those that wait to be reused among them, and
// names the files by their numbers, which they keep when they move from one folder to the other.
func segmentFiles(spill string) (sum bytesize.Bytes, names []string) {
	seen := map[uint64]bool{}
	for _, folder := range []string{"seg", "pool"} {
		list, err := os.ReadDir(filepath.Join(spill, folder))
		if err != nil {
			continue
		}
		for _, e := range list {
			var st syscall.Stat_t
			if syscall.Lstat(filepath.Join(spill, folder, e.Name()), &st) != nil || seen[st.Ino] {
				continue
			}
			seen[st.Ino] = true
			sum += bytesize.Bytes(st.Blocks) * 512
			names = append(names, fmt.Sprint(st.Ino))
		}
	}
	slices.Sort(names)
	return sum, names
}
