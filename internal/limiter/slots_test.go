package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The requests of a busy host wait for each other. Requests of other hosts do not wait for the requests of the busy
// host.
func TestSlotsAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewSlots(2)
		var mu sync.Mutex
		var order []string
		acquire := func(request string) {
			go func() {
				release, err := p.Acquire(t.Context(), request[:1])
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, request)
				mu.Unlock()
				time.Sleep(time.Second)
				release()
				release() // has no effect
			}()
			synctest.Wait()
		}
		for i := range 8 {
			acquire(fmt.Sprint("a", i))
		}
		acquire("b0")
		acquire("c0")
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{"a0", "a1", "a2", "b0", "a3", "c0", "a4", "a5", "a6", "a7"}
		if !slices.Equal(sortPairs(order), want) {
			t.Errorf("%v, want %v", order, want)
		}
		if p.free != 2 || p.all.Len() > 0 || p.all.Amount("a") != 0 {
			t.Errorf("%d free slots, want 2", p.free)
		}
	})
}

// sortPairs sorts the requests that got slots at the same time.
func sortPairs(order []string) []string {
	for pair := range slices.Chunk(order, 2) {
		slices.Sort(pair)
	}
	return order
}

// A request that stops waiting holds no slot.
func TestCanceledWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewSlots(1)
		release, err := p.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		late, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if _, err := p.Acquire(late, "b"); !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Acquire(gone, "b"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		release()
		if release, err = p.Acquire(t.Context(), "c"); err != nil {
			t.Error(err)
		}
		release()
	})
}

// The queue is bounded: a flood is refused immediately, and other hosts get slots.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewSlots(1)
		release, err := p.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		refused, served := map[string]int{}, map[string]int{}
		acquire := func(host string, n int) {
			for range n {
				go func() {
					release, err := p.Acquire(t.Context(), host)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						refused[host]++
						return
					}
					defer release()
					served[host]++
				}()
			}
			synctest.Wait()
		}
		acquire("a", maxWaiting+100)
		if refused["a"] != 100 {
			t.Errorf("%d refused requests, want 100", refused["a"])
		}
		acquire("b", 10)
		release()
		synctest.Wait()
		if refused["b"] > 0 || served["b"] != 10 || served["a"] != maxWaiting-10 {
			t.Errorf("refused %v, served %v", refused, served)
		}
	})
}
