package workers_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/internal/workers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachTaskRunsOnceOnAWorkerOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, count := range []int{-1, 0, 1, 2, 7, 64} {
		for _, tasks := range []int{0, 1, 3, 100} {
			t.Run(fmt.Sprintf("%d workers, %d tasks", count, tasks), func(t *testing.T) {
				t.Parallel()
				ran := make([]atomic.Int32, tasks)
				busy := make([]atomic.Bool, max(1, count))
				err := workers.Each(count, tasks, func(worker, i int) error {
					if busy[worker].Swap(true) {
						t.Errorf("worker %d runs two tasks at once", worker)
					}
					ran[i].Add(1)
					busy[worker].Store(false)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				for i := range ran {
					if n := ran[i].Load(); n != 1 {
						t.Errorf("task %d ran %d times", i, n)
					}
				}
			})
		}
	}
}

func TestAnErrorStopsFurtherTasks(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, count := range []int{1, 4} {
		var started atomic.Int32
		err := workers.Each(count, 10_000, func(_, i int) error {
			started.Add(1)
			if i == 5 {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) {
			t.Errorf("%d workers: got %v", count, err)
		}
		if n := started.Load(); n == 10_000 {
			t.Errorf("%d workers: all tasks ran in spite of the error", count)
		}
	}
}
