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

// contend simulates contention for the stripe st. It repeats this step, as often as the parameter meetings says: some
// calls find the lock free, and then one call finds the lock taken. The parameter others is the number of calls that
// find the lock free. Like a real call, contend then rebalances the stripes if necessary.
func contend(st *stripe, meetings, others int) {
	for range meetings {
		st.mu.Lock()
		st.entered.Add(uint64(others))
		st.exited += uint32(others)
		st.noteContention()
		st.unlock()
	}
}

func (s *Statistic) picked() []*stripe { return s.extra.Load().list() }

func TestContentionAddsStripes(t *testing.T) {
	for name, test := range map[string]struct {
		rounds, meetings, others int
		apart                    time.Duration // time from one round to the next
		want                     int
	}{
		"one call in five, as of two processors": {1, minContended, 4, 0, 2},
		"one call in two hundred":                {1, minContended, 200, 0, 2},
		"one call in a thousand, without end":    {1, 1000 * minContended, 1000, 0, 0},
		"half of the meetings in each hour":      {100, minContended / 2, 0, time.Hour, 0},
		"one meeting too few in each bucket":     {50, minContended - 1, 4, 500 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var now time.Duration
			s := newContended(t, &now)
			for range test.rounds {
				contend(&s.first, test.meetings, test.others)
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
	// Two goroutines may decide to grow the same set at the same time. Only one of them grows it.
	s = newContended(t, &now)
	s.grow(nil)
	s.grow(nil)
	if got := len(s.picked()); got != 2 {
		t.Errorf("%d stripes after two concurrent growths, want 2", got)
	}
}

// Each turn halves the raised threshold of contention, until the threshold is minContended again.
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
