package webconfig

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Hosts take turns: many guesses of one wait for each other, and one of another host waits for a place at most.
func TestHostsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		turns.all = make(chan struct{}, 1)
		var all sync.WaitGroup
		var mu sync.Mutex
		done, refused := map[string][]time.Duration{}, 0
		begin := time.Now()
		guess := func(host string, n int) {
			for range n {
				all.Go(func() {
					end, err := turns.wait(t.Context(), host)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						refused++
						return
					}
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					done[host] = append(done[host], time.Since(begin))
					end()
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
		if len(turns.hosts) > 0 || len(turns.all) > 0 {
			t.Errorf("%d hosts and %d places are left", len(turns.hosts), len(turns.all))
		}
	})
}

// Who has gone takes no turn, wherever it waited.
func TestTurnsThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		turns.all = make(chan struct{}, 1)
		end, err := turns.wait(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"a", "b"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := turns.wait(ctx, host); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", host, err)
			}
			cancel()
		}
		end()
		for _, host := range []string{"a", "b"} {
			end, err := turns.wait(t.Context(), host)
			if err != nil {
				t.Fatal(err)
			}
			end()
		}
		if len(turns.hosts) > 0 {
			t.Error("hosts are left")
		}
	})
}
