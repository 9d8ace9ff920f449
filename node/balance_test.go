package node

import (
	"runtime"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// newContended returns a statistic with one stripe. Its clock shows the time in *now, which the test sets.
func newContended(t *testing.T, now *time.Duration) *Statistic {
	t.Helper()
	line := leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return *now },
		Wall: func() time.Time { return time.Unix(1_000_000, 0).Add(*now) },
	})
	config, err := NewConfig(line, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return New(config, 0)
}

// contend simulates calls through the stripe st. The parameter contended is the number of calls that find the lock of
// st taken. Before each of these calls, some other calls find the lock free. The parameter free is the number of these
// other calls. After each call that found the lock taken, contend rebalances the statistic if necessary, as a real call
// does.
func contend(st *stripe, contended, free int) {
	for range contended {
		st.mu.Lock()
		st.entered.Add(uint64(free))
		st.exited += uint32(free)
		st.noteContention()
		st.unlock()
	}
}

func (s *Statistic) picked() []*stripe { return s.extra.Load().list() }

func TestContentionAddsStripes(t *testing.T) {
	for name, test := range map[string]struct {
		rounds, contended, free int
		apart                   time.Duration // time from one round to the next
		want                    int
	}{
		"one call in five, as of two processors":    {1, minContended, 4, 0, 2},
		"one call in two hundred":                   {1, minContended, 200, 0, 2},
		"one call in a thousand, without end":       {1, 1000 * minContended, 1000, 0, 0},
		"half of minContended in each hour":         {100, minContended / 2, 0, time.Hour, 0},
		"one contended call too few in each bucket": {50, minContended - 1, 4, 500 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var now time.Duration
			s := newContended(t, &now)
			for range test.rounds {
				contend(&s.first, test.contended, test.free)
				now += test.apart
				s.Seal(leap.Reading(now))
			}
			if got := len(s.picked()); got != test.want {
				t.Errorf("%d stripes to pick from, want %d", got, test.want)
			}
			if contend(&s.first, 2*minContended, 4); len(s.picked()) < 2 {
				t.Error("no further stripes after two processors share the first one")
			}
		})
	}
}

func TestSeedChangesBeforeStripesAreAdded(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var now time.Duration
	s := newContended(t, &now)
	contend(&s.first, minContended, 0)
	seeds := map[uint64]bool{s.extra.Load().seed: true}
	for i, want := range []int{2, 2, 4, 4, 4, 4, 4} {
		more := s.extra.Load()
		contend(more.slots[0], minContended<<more.slots[0].backoff, 0)
		if got := len(s.picked()); got != want {
			t.Fatalf("round %d: %d stripes, want %d", i+1, got, want)
		}
		if s.extra.Load() == more {
			t.Fatalf("round %d: the set has not changed", i+1)
		}
		seeds[s.extra.Load().seed] = true
	}
	if len(seeds) < 5 {
		t.Errorf("%d seeds", len(seeds))
	}
}

func TestStripesAreLimitedOnManyProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	var now time.Duration
	s := newContended(t, &now)
	contend(&s.first, minContended, 0)
	for range 100 {
		for _, st := range s.picked() {
			contend(st, minContended<<st.backoff, 0)
		}
	}
	if got := len(s.picked()); got != 16 {
		t.Errorf("%d stripes to pick from, want 16", got)
	}
	// Two goroutines may decide to grow the same set of stripes. The first call of grow replaces the set. The second
	// call of grow finds that the set was replaced, and does nothing.
	s = newContended(t, &now)
	s.grow(nil)
	s.grow(nil)
	if got := len(s.picked()); got != 2 {
		t.Errorf("%d stripes after two concurrent growths, want 2", got)
	}
}

// The threshold of contention is minContended, doubled backoff times. Each turn reduces the field backoff by 1, until
// it is 0.
func TestBackoffEndsWithTheContention(t *testing.T) {
	var now time.Duration
	s := newContended(t, &now)
	s.first.backoff = 3
	for _, want := range []uint8{2, 1, 0, 0} {
		now += 500 * time.Millisecond
		s.Seal(leap.Reading(now))
		if got := s.first.backoff; got != want {
			t.Errorf("at %v the backoff is %d, want %d", now, got, want)
		}
	}
}
