package node_test

import (
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// A reader that holds only stripe locks must unlock exactly the stripes that it has locked. As soon as it unlocks the
// first stripe, another goroutine may add stripes to the statistic.
func TestTrapReadersDuringGrowth(t *testing.T) {
	end := time.Now().Add(time.Second)
	for time.Now().Before(end) {
		r := newRig(t, node.Options{})
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for i := 0; i < 20_000 && r.Stripes() == 1; i++ {
					c := r.Enter(0, 1)
					c.Exit(0, false, 0)
					r.InFlight()
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				for i := 0; i < 20_000 && r.Stripes() == 1; i++ {
					r.Window(0)
					r.PassQPS(0)
					r.Block(0, 1)
				}
			})
		}
		wg.Wait()
		if n := r.InFlight(); n != 0 {
			t.Fatalf("%d calls in flight", n)
		}
	}
}
