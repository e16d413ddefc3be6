package e2e_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// NATS loses its disk and Redis does not, in a rack that has seen thousands of terms: terms begin at 1 again, and the
// ledger refuses them all. The rack comes back empty and works at once, not after thousands of elections.
func TestNATSLosesItsDiskAndRedisDoesNot(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU()
	r.ready()
	r.submit(1)
	r.waitDone()
	r.nats.kill()
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.listen, Protocol: 2})
	defer rdb.Close()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	r.check(err)
	raised := 0
	for _, key := range keys {
		gate, err := rdb.HGet(t.Context(), key, "gate").Result()
		if err != nil {
			continue // no book
		}
		_, rest, _ := strings.Cut(gate, "|")
		r.check(rdb.HSet(t.Context(), key, "gate", "5000|"+rest).Err())
		raised++
	}
	if raised < 2 {
		t.Fatalf("raised the terms of %d of %v", raised, keys)
	}
	r.check(os.RemoveAll(r.nats.dir))
	r.nats.start(t)
	r.jobs = nil
	began := time.Now()
	r.submit(2)
	r.waitDone()
	t.Logf("done again after %s", time.Since(began))
	r.checkQuiet()
}
