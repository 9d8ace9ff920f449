package webconfig

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// Comparisons of one host run one after another. A comparison of another host waits for at most one of them.
func TestHostsAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newFairQueue()
		queue.all = semaphore.NewWeighted(1)
		var all sync.WaitGroup
		var mu sync.Mutex
		done, refused := map[string][]time.Duration{}, 0
		begin := time.Now()
		guess := func(host string, n int) {
			for range n {
				all.Go(func() {
					err := queue.do(t.Context(), host, func() {
						time.Sleep(time.Second)
						mu.Lock()
						defer mu.Unlock()
						done[host] = append(done[host], time.Since(begin))
					})
					if err != nil {
						mu.Lock()
						defer mu.Unlock()
						refused++
					}
				})
			}
			synctest.Wait()
		}
		guess("a", maxGuesses+10)
		guess("b", 3)
		if refused != 10 {
			t.Errorf("%d are refused immediately, want 10", refused)
		}
		all.Wait()
		if last := done["b"][2]; last > 6*time.Second || len(done["a"]) != maxGuesses {
			t.Errorf("the last of b is compared after %v, and %d of a", last, len(done["a"]))
		}
		if len(queue.hosts) > 0 || !queue.all.TryAcquire(1) {
			t.Errorf("%d hosts are left, or a comparison is running", len(queue.hosts))
		}
	})
}

// A canceled request leaves the queue, in either of its two waits.
func TestCanceledRequestsLeaveTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newFairQueue()
		queue.all = semaphore.NewWeighted(1)
		end := make(chan struct{})
		go func() {
			if err := queue.do(t.Context(), "a", func() { <-end }); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		for _, host := range []string{"a", "b"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := queue.do(ctx, host, func() { t.Error(host) }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", host, err)
			}
			cancel()
		}
		close(end)
		for _, host := range []string{"a", "b"} {
			compared := false
			if err := queue.do(t.Context(), host, func() { compared = true }); err != nil || !compared {
				t.Fatal(err)
			}
		}
		if len(queue.hosts) > 0 {
			t.Error("hosts are left")
		}
	})
}
