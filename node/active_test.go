package node_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// LastActive returns the last active second before the given one. The result is exact if the given second can be read
// or is not sealed yet, even if the record of the last active second was dropped. The second after a burst has a
// record, because sliding windows that end in this second contain passes of the burst. LastActive does not count this
// second as active.
func TestLastActive(t *testing.T) {
	const history = 2 * time.Minute
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, node.Options{History: history})
		other := node.New(r.config, r.at(0))
		r.view.Add(other)
		quiet, inFlight, began := 0, []call(nil), r.zero-1
		active := map[int64]bool{}
		lastBefore := func(i int64) int64 {
			for i--; i >= r.zero && !active[i]; i-- {
			}
			return max(i, began)
		}
		for i := range int64(1500) {
			at := time.Duration(i) * time.Second
			switch {
			case quiet > 0:
				quiet--
			case len(inFlight) > 0:
				inFlight[0].Exit(at+ms, false, 0)
				inFlight = nil
			case rnd.IntN(3) == 0:
				quiet = rnd.IntN(200)
			case rnd.IntN(3) == 0:
				inFlight = append(inFlight, r.Enter(at+time.Duration(rnd.IntN(1000))*ms, 1))
				quiet = rnd.IntN(3)
			case rnd.IntN(2) == 0:
				other.Block(r.at(at+time.Duration(rnd.IntN(1000))*ms), 1)
			default:
				r.call(at+time.Duration(rnd.IntN(999))*ms, 0, false)
			}
			r.Seal(at + time.Second)
			r.open(at + time.Second)
			m, ok := r.Second(r.zero + i)
			if !ok {
				t.Fatalf("second %d cannot be read", i)
			}
			active[r.zero+i] = !m.Idle()
			for _, back := range []int64{-5, -1, 0, 1, 2, 59, 60, 61, 62, rnd.Int64N(120)} {
				before := r.zero + i - back
				if _, ok := r.Second(before); back >= 0 && !ok || before < r.zero {
					continue
				}
				if got, want := r.view.LastActive(before), lastBefore(min(before, r.zero+i+1)); got != want {
					t.Fatalf("seed %d, at %d: last active second before %d: %d, want %d",
						seed, i, before-r.zero, got-r.zero, want-r.zero)
				}
			}
		}
	}
}

// LastActive includes the activity of leaves that were removed from the view.
func TestLastActiveOfARetiredLeaf(t *testing.T) {
	r := newRig(t, node.Options{})
	r.call(5*time.Second+900*ms, ms, false)
	if !r.Retire(100*time.Second, r.zero+7) {
		t.Fatal("not retired")
	}
	r.view.Remove(r.zero + 7)
	if got := r.view.LastActive(r.zero + 90); got != r.zero+5 {
		t.Errorf("last active second %d, want 5", got-r.zero)
	}
	if got := r.view.Clone().LastActive(r.zero + 90); got != r.zero+5 {
		t.Errorf("the last active second of the clone is %d, want 5", got-r.zero)
	}
}
