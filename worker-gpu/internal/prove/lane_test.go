package prove

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLaneStartsOneAtATimeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		var order []int
		for i := range 4 {
			go func() {
				if err := l.enter(t.Context(), false); err != nil {
					t.Error(err)
				}
				order = append(order, i) // the turn orders the writes
				time.Sleep(time.Second)
				l.pass()
				time.Sleep(10 * time.Second) // finishes while others start
				l.leave()
			}()
			synctest.Wait()
		}
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if diff := cmp.Diff([]int{0, 1, 2, 3}, order); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Minute)
	})
}

func TestLaneAloneWaitsUntilAllHaveLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		for range 2 {
			if err := l.enter(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			l.pass()
		}
		alone, next := make(chan struct{}), make(chan struct{})
		go func() {
			if err := l.enter(t.Context(), true); err != nil {
				t.Error(err)
			}
			close(alone)
			time.Sleep(time.Minute)
			l.pass()
			l.leave()
		}()
		synctest.Wait()
		go func() {
			if err := l.enter(t.Context(), false); err != nil {
				t.Error(err)
			}
			close(next)
			l.pass()
			l.leave()
		}()
		l.leave()
		synctest.Wait()
		select {
		case <-alone:
			t.Fatal("entered beside another")
		default:
		}
		l.leave()
		<-alone
		synctest.Wait()
		select {
		case <-next:
			t.Fatal("entered beside the one that is to be alone")
		default:
		}
		<-next
	})
}

func TestLaneWaitsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	l := newLane()
	if err := l.enter(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.enter(ended, false); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for the turn: %v", err)
	}
	l.pass()
	if err := l.enter(ended, true); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for company to leave: %v", err)
	}
	l.leave()
	if err := l.enter(t.Context(), true); err != nil { // the turn was given back
		t.Error(err)
	}
}
