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

// A host that asks a lot waits for itself; others do not wait behind it.
func TestPlacesAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(2)
		var mu sync.Mutex
		var order []string
		ask := func(who string) {
			go func() {
				leave, err := p.Take(t.Context(), who[:1])
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, who)
				mu.Unlock()
				time.Sleep(time.Second)
				leave()
				leave() // does nothing
			}()
			synctest.Wait()
		}
		for i := range 8 {
			ask(fmt.Sprint("a", i))
		}
		ask("b0")
		ask("c0")
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := []string{"a0", "a1", "a2", "b0", "a3", "c0", "a4", "a5", "a6", "a7"}; !slices.Equal(sortPairs(order), want) {
			t.Errorf("%v, want %v", order, want)
		}
		if p.free != 2 || p.all.Len() > 0 || p.all.Amount("a") != 0 {
			t.Errorf("%d places are free of 2", p.free)
		}
	})
}

// sortPairs sorts those that got their places at the same time.
func sortPairs(order []string) []string {
	for pair := range slices.Chunk(order, 2) {
		slices.Sort(pair)
	}
	return order
}

// Who cannot wait leaves, and takes no place with it.
func TestPlacesThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(1)
		leave, err := p.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		late, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if _, err := p.Take(late, "b"); !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Take(gone, "b"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		leave()
		if leave, err = p.Take(t.Context(), "c"); err != nil {
			t.Error(err)
		}
		leave()
	})
}

// The queue is bounded: a flood is refused at once, and others still get in.
func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(1)
		leave, err := p.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		refused, served := map[string]int{}, map[string]int{}
		ask := func(host string, n int) {
			for range n {
				go func() {
					leave, err := p.Take(t.Context(), host)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						refused[host]++
						return
					}
					defer leave()
					served[host]++
				}()
			}
			synctest.Wait()
		}
		ask("a", maxWaiting+100)
		if refused["a"] != 100 {
			t.Errorf("%d are refused, want 100", refused["a"])
		}
		ask("b", 10)
		leave()
		synctest.Wait()
		if refused["b"] > 0 || served["b"] != 10 || served["a"] != maxWaiting-10 {
			t.Errorf("refused %v, served %v", refused, served)
		}
	})
}
