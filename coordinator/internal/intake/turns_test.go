package intake

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/job"
)

// A tenant that floods intake has its requests behind each other, not before everybody else's.
func TestTurnsGoRoundTheTenants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		if err := turns.acquire(t.Context(), "flood"); err != nil {
			t.Fatal(err)
		}
		got := make(chan job.Tenant, 200)
		ask := func(name job.Tenant) {
			go func() {
				if err := turns.acquire(t.Context(), name); err == nil {
					got <- name
				}
			}()
			synctest.Wait()
		}
		for range 100 {
			ask("flood")
		}
		ask("b")
		ask("c")
		ask("b")
		var order []job.Tenant
		for range 6 {
			turns.release()
			order = append(order, <-got)
		}
		if want := "[flood b c flood b flood]"; fmt.Sprint(order) != want {
			t.Errorf("turns of %v, want %s", order, want)
		}
		for range 100 - 3 {
			turns.release()
			<-got
		}
		turns.release()
		if turns.free != 1 || len(turns.order)+len(turns.waiting) != 0 {
			t.Errorf("left: %d free, %v, %v", turns.free, turns.order, turns.waiting)
		}
	})
}

// Whoever gives up waiting loses nobody a turn.
func TestTurnsAreNeitherLostNorMade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			count := rapid.IntRange(1, 3).Draw(rt, "count")
			turns := newTurns(count)
			held := 0
			var ends []context.CancelFunc
			results := make(chan error, 100)
			asked := 0
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				switch rapid.IntRange(0, 2).Draw(rt, "step") {
				case 0:
					ctx, cancel := context.WithCancel(context.Background())
					ends = append(ends, cancel)
					name := job.Tenant(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "tenant"))
					asked++
					go func() { results <- turns.acquire(ctx, name) }()
				case 1:
					if len(ends) > 0 {
						ends[rapid.IntRange(0, len(ends)-1).Draw(rt, "end")]()
					}
				case 2:
					if held > 0 {
						held--
						turns.release()
					}
				}
				synctest.Wait()
				for len(results) > 0 {
					asked--
					if <-results == nil {
						held++
					}
				}
				if waits := asked; held+turns.free != count || waits > 0 && turns.free > 0 {
					rt.Fatalf("%d held, %d free of %d, %d wait", held, turns.free, count, waits)
				}
			}
			for _, end := range ends {
				end()
			}
			synctest.Wait()
			for len(results) > 0 {
				if <-results == nil {
					held++
				}
			}
		})
	})
}
