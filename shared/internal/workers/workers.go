package workers

import (
	"sync"
	"sync/atomic"
)

// Each runs task(worker, i) for every i in 0..tasks-1 on up to workers goroutines, each with its own worker number
// from 0, and waits for them. Fewer than one worker is one. After an error no further task starts; of the errors, that
// of the lowest task is returned.
func Each(workers, tasks int, task func(worker, i int) error) error {
	workers = min(workers, tasks)
	if workers <= 1 {
		for i := range tasks {
			if err := task(0, i); err != nil {
				return err
			}
		}
		return nil
	}
	var (
		next   atomic.Int64
		failed atomic.Bool
		wg     sync.WaitGroup
		mu     sync.Mutex
		first  error
		at     int
	)
	for w := range workers {
		wg.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= tasks {
					return
				}
				if err := task(w, i); err != nil {
					failed.Store(true)
					mu.Lock()
					if first == nil || i < at {
						first, at = err, i
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}
