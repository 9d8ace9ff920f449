package hammer_test

import (
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/bench/hammer"
)

func TestWindowstatLosesNothing(t *testing.T) {
	target, err := hammer.Windowstat(100)
	if err != nil {
		t.Fatal(err)
	}
	lossless(t, target, 1200*time.Millisecond)
}

// Windows with one lock for everything are slow or imprecise, but lose nothing. If the hammer reports losses, the
// hammer is wrong.
func TestLockedWindowsLoseNothing(t *testing.T) {
	lossless(t, hammer.Simple("fixed-window", bench.NewFixedWindow(), time.Second, 0), 1200*time.Millisecond)
	lossless(t, hammer.Simple("sub-window-list", bench.NewSubWindowListOf(200, 10*time.Millisecond),
		10*time.Millisecond, 50), 200*time.Millisecond)
	lossless(t, hammer.Simple("second-map", bench.NewSecondMap(), time.Second, 1), 1200*time.Millisecond)
}

func lossless(t *testing.T, target hammer.Target, length time.Duration) {
	t.Helper()
	for _, r := range hammer.Run(target, 4, length) {
		if r.Added == 0 || r.Lost != 0 || r.Wrong != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// The hammer must find, exactly, all additions that are lost, doubled or misplaced on purpose.
func TestHammerFindsWhatIsWrong(t *testing.T) {
	const length = 20 * time.Millisecond
	for name, c := range map[string]struct {
		bucket func(i, open int64) int64
		times  func(i int64) int64
		lost   func(added int64) int64
	}{
		"loses one in 100": {
			bucket: func(_, open int64) int64 { return open },
			times:  func(i int64) int64 { return min(i%100, 1) },
			lost:   func(added int64) int64 { return (added + 99) / 100 },
		},
		"counts one in 100 twice": {
			bucket: func(_, open int64) int64 { return open },
			times:  func(i int64) int64 { return 2 - min(i%100, 1) },
			lost:   func(added int64) int64 { return -((added + 99) / 100) },
		},
		"puts one in 100 too early": {
			bucket: func(i, open int64) int64 { return open - 1 + min(i%100, 1) },
			times:  func(int64) int64 { return 1 },
			lost:   func(int64) int64 { return 0 },
		},
	} {
		var mu sync.Mutex
		var i int64
		counts := map[int64]int64{}
		open := func() int64 { return int64(bench.Now() / length) }
		target := hammer.Target{
			Kinds: []string{"pass"}, Bucket: length, Lag: 5, Open: open,
			Add: func() {
				mu.Lock()
				counts[c.bucket(i, open())] += c.times(i)
				i++
				mu.Unlock()
			},
			Closed: func(from, to int64, take func(bucket int64, counts []int64)) {
				mu.Lock()
				defer mu.Unlock()
				for bucket, n := range counts {
					if bucket >= from && bucket < to {
						take(bucket, []int64{n})
					}
				}
			},
		}
		r := hammer.Run(target, 3, 200*time.Millisecond)[0]
		// The first bucket may precede the first bucket that is read.
		if r.Added < 1000 || r.Wrong == 0 || r.Lost-c.lost(r.Added) > r.Added/100 || r.Lost < c.lost(r.Added) {
			t.Errorf("%s: %+v, want %d lost", name, r, c.lost(r.Added))
		}
	}
}
