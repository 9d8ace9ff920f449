package node_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// The oracle keeps the passes of every bucket. A quota must admit a call if and only if the call fits into every window
// that contains the bucket of the call. The quota must lend from the first bucket that can lend enough passes. No
// window may contain more passes than the count of the quota.
func TestQuotaAgainstOracle(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 9))
		buckets := []int{1, 2, 4, 10}[seed%4]
		strict := seed%3 == 0
		r := newRig(t, node.Options{SampleCount: buckets})
		length := time.Second / time.Duration(buckets)
		count := random.Int64N(40)
		q := node.NewQuota(r.config, count, strict)
		width, ahead := buckets, max(1, int(500*ms/length))
		if strict {
			width++
		}
		passes := map[int]int64{} // passes of each bucket, including borrowed ones
		window := func(last int) (n int64) {
			for b := last - width + 1; b <= last; b++ {
				n += passes[b]
			}
			return n
		}
		fits := func(b int, n int64) bool {
			for last := b; last < b+width; last++ {
				if window(last)+n > count {
					return false
				}
			}
			return true
		}
		base := time.Duration(1_700_000_000) * time.Second
		at := func(b int) time.Duration { return base + time.Duration(b)*length }
		forced := false
		for now := 0; now < 200; {
			n := 1 + random.Int64N(8)
			switch random.IntN(6) {
			case 0, 1:
				want := fits(now, n)
				if got := q.CanPass(at(now), n); got != want {
					t.Fatalf("seed %d, bucket %d: %d can pass: %t, want %t", seed, now, n, got, want)
				}
				if want {
					q.Pass(at(now), n)
					passes[now] += n
				}
			case 2:
				from := now + random.IntN(2)
				want, ok := 0, false
				for b := max(now+1, from); b <= now+ahead && !ok; b++ {
					if fits(b, n) {
						want, ok = b, true
					}
				}
				got, there := q.TryOccupyNext(at(now), at(from), n)
				if there != ok || ok && got != at(want) {
					t.Fatalf("seed %d, bucket %d: %d from %v (%t), want %v (%t)",
						seed, now, n, got, there, at(want), ok)
				}
				if ok {
					q.Borrow(at(now), got, n)
					passes[want] += n
				}
			case 3:
				b := now + random.IntN(ahead+1)
				if passes[b] > 0 {
					q.GiveBack(at(b), 1)
					passes[b]--
				}
			case 4:
				if random.IntN(20) == 0 { // Pass is called without CanPass
					q.Pass(at(now), n)
					passes[now] += n
					forced = true
				}
			case 5:
				now += 1 + random.IntN(2)
				if random.IntN(10) == 0 {
					now += 30
				}
			}
			if got, want := q.Passes(at(now)), window(now); got != want {
				t.Fatalf("seed %d, bucket %d: %d passes, want %d", seed, now, got, want)
			}
			var waiting int64
			for b := now + 1; b <= now+ahead; b++ {
				waiting += passes[b]
			}
			if got := q.Waiting(at(now)); got != waiting {
				t.Fatalf("seed %d, bucket %d: %d waiting, want %d", seed, now, got, waiting)
			}
			for last := now - width; last <= now+ahead && !forced; last++ {
				if window(last) > count {
					t.Fatalf("seed %d: the window that ends with bucket %d holds %d of %d",
						seed, last, window(last), count)
				}
			}
		}
	}
}

// The sum of the passes of huge batches stops at the largest int64.
func TestQuotaDoesNotOverflow(t *testing.T) {
	r := newRig(t, node.Options{})
	q := node.NewQuota(r.config, math.MaxInt64, false)
	for range 3 {
		q.Pass(0, math.MaxInt64)
	}
	if q.CanPass(0, 1) || q.Passes(0) != math.MaxInt64 {
		t.Errorf("%d passes", q.Passes(0))
	}
	if node.NewQuota(r.config, -5, false).CanPass(0, 1) {
		t.Error("a negative count admits a call")
	}
}

// Quotas can share their ring of passes, and the passes of one quota can be added to another quota.
func TestQuotasShareTheirPasses(t *testing.T) {
	r := newRig(t, node.Options{})
	const length = 500 * ms
	a := node.NewQuota(r.config, 5, false)
	strict := a.With(5, true)
	a.Pass(10*length, 3)
	strict.Pass(11*length, 2)
	a.Borrow(11*length, 12*length, 1)
	clone := node.NewQuota(r.config, 5, false)
	clone.Add(a)
	for _, tc := range []struct {
		at                     time.Duration
		passes, strict, cloned int64
	}{{11 * length, 5, 5, 5}, {12 * length, 3, 6, 3}, {13 * length, 1, 3, 1}, {15 * length, 0, 0, 0}} {
		p, s, c := a.Passes(tc.at), strict.Passes(tc.at), clone.Passes(tc.at)
		if p != tc.passes || s != tc.strict || c != tc.cloned {
			t.Errorf("at %v: %d passes, %d strict, %d cloned; want %+v", tc.at, p, s, c, tc)
		}
	}
	clone.Pass(15*length, 4)
	if a.Passes(15*length) != 0 || !strict.CanPass(15*length, 5) || clone.CanPass(15*length, 2) {
		t.Error("a copy counts for the original, or not for the copy")
	}
	clone.Add(node.NewQuota(r.config, 2, true))
	if got := clone.Passes(15 * length); got != 4 {
		t.Errorf("%d passes after adding none to 4", got)
	}
}
