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

// Hosts take turns: many guesses of one wait for each other, and one of another host waits for a place at most.
func TestHostsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		turns.all = semaphore.NewWeighted(1)
		var all sync.WaitGroup
		var mu sync.Mutex
		done, refused := map[string][]time.Duration{}, 0
		begin := time.Now()
		guess := func(host string, n int) {
			for range n {
				all.Go(func() {
					err := turns.take(t.Context(), host, func() {
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
			t.Errorf("%d are refused at once, want 10", refused)
		}
		all.Wait()
		if last := done["b"][2]; last > 6*time.Second || len(done["a"]) != maxGuesses {
			t.Errorf("the last of b is compared after %v, and %d of a", last, len(done["a"]))
		}
		if len(turns.hosts) > 0 || !turns.all.TryAcquire(1) {
			t.Errorf("%d hosts are left, or a place is taken", len(turns.hosts))
		}
	})
}

// Who has gone takes no turn, wherever it waited.
func TestTurnsThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		turns.all = semaphore.NewWeighted(1)
		end := make(chan struct{})
		go func() {
			if err := turns.take(t.Context(), "a", func() { <-end }); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		for _, host := range []string{"a", "b"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := turns.take(ctx, host, func() { t.Error(host) }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", host, err)
			}
			cancel()
		}
		close(end)
		for _, host := range []string{"a", "b"} {
			compared := false
			if err := turns.take(t.Context(), host, func() { compared = true }); err != nil || !compared {
				t.Fatal(err)
			}
		}
		if len(turns.hosts) > 0 {
			t.Error("hosts are left")
		}
	})
}
