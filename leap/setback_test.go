package leap_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// uniqueNames fails the test unless the names of the seconds with the indexes from first to last ascend. It leaves out
// seconds for which WallTime returns no name, such as repeats.
func uniqueNames(t *testing.T, l *leap.Timeline, first, last int64) {
	t.Helper()
	var latest time.Time
	for i := first; i <= last; i++ {
		name, ok := l.WallTime(i)
		if !ok {
			continue
		}
		if !name.After(latest) {
			t.Fatalf("second %d has the name %v, an earlier second has %v", i-first, name, latest)
		}
		latest = name
	}
}

// In an idle gap no goroutine calls At, but the seconds of the gap have names. If the wall clock is set back into the
// gap, by more than five minutes, later seconds get the names of seconds in the gap again. The Timeline marks these
// seconds as repeats.
func TestClockSetBackIntoAnIdleGap(t *testing.T) {
	c := &clocks{mono: time.Hour}
	l := newLine(c)
	first := l.At(c.now()).Index
	c.pass(800 * time.Second)
	c.step(-400 * time.Second)
	for range 500 {
		last := l.At(c.now())
		uniqueNames(t, l, first, last.Index)
		c.pass(time.Second)
	}
	last := l.At(c.now())
	if name, ok := l.WallTime(last.Index); !ok || last.Repeat || name.Unix() != last.Name {
		t.Errorf("%+v has the name %v, %v", last, name, ok)
	}
	// The wall clock was set back by 400 s, so about 400 later seconds get names of the gap again.
	if h := l.Health(); h.Repeated < 390 || h.Repeated > 402 {
		t.Errorf("%d seconds are repeated", h.Repeated)
	}
}

// No two seconds have the same valid name, whatever the movements of the wall clock and the lengths of idle gaps.
func TestNamesAscendAtRandom(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		c := &clocks{mono: time.Hour}
		l := newLine(c)
		first := l.At(c.now()).Index
		for range 40 {
			switch random.IntN(4) {
			case 0:
				c.step(time.Duration(random.Int64N(int64(1200*time.Second))) - 600*time.Second)
			case 1:
				c.pass(time.Duration(random.Int64N(int64(1000 * time.Second))))
			case 2:
				c.pass(time.Duration(random.Int64N(int64(3 * time.Second))))
			}
			s := l.At(c.now())
			if name, ok := l.WallTime(s.Index); ok == s.Repeat || ok && name.Unix() != s.Name {
				t.Fatalf("seed %d: %+v has the name %v, %v", seed, s, name, ok)
			}
			if s.Index-first < 6000 { // names are kept for at least 7200 s, so WallTime still finds all names
				uniqueNames(t, l, first, s.Index)
			}
		}
	}
}

// Current returns how much of the open second remains, and never more than MaxSecond. If a goroutine is suspended
// within Current after it has read the clock, Current subtracts an old reading from the end of a later second. Without
// the limit, the result would be too long by the suspension.
func TestCurrentAfterASuspension(t *testing.T) {
	for name, jump := range map[string]func(*clocks, time.Duration){
		"both clocks":     (*clocks).pass,
		"wall clock":      (*clocks).step,
		"monotonic clock": func(c *clocks, d time.Duration) { c.mono += d },
	} {
		for _, d := range []time.Duration{11 * time.Minute, 800 * time.Millisecond, 0} {
			c := &clocks{wall: start}
			var l *leap.Timeline
			suspend := false
			l = leap.NewTimeline(leap.Clock{
				Mono: func() time.Duration {
					read := c.mono
					if suspend {
						suspend = false
						jump(c, d)
						l.At(l.Now()) // during the suspension, another goroutine opens a later second
					}
					return read
				},
				Wall: func() time.Time { return c.wall },
			})
			suspend = true
			s, left := l.Current()
			if left <= 0 || left > leap.MaxSecond {
				t.Errorf("%s, %v: %v are left of the second", name, d, left)
			}
			if open := l.At(l.Now()); s != open {
				t.Errorf("%s, %v: %+v, open is %+v", name, d, s, open)
			}
		}
	}
}

// After random steps of the wall clock, WallTimeAtOrAfter returns the first valid name from each second on, and
// IndexAtOrAfter returns the second of this name.
func TestFirstValidNames(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		c := &clocks{}
		l := newLine(c)
		var seconds []leap.Second
		for range 300 {
			if random.IntN(20) == 0 {
				c.step(time.Duration(random.IntN(1200)-600) * time.Second)
			}
			c.pass(time.Second)
			if s := l.At(c.now()); len(seconds) == 0 || s.Index != seconds[len(seconds)-1].Index {
				seconds = append(seconds, s)
			}
		}
		for i, s := range seconds {
			next := slices.IndexFunc(seconds[i:], func(s leap.Second) bool { return !s.Repeat })
			if next < 0 {
				break // the next valid name is in the future
			}
			want := seconds[i+next]
			name := l.WallTimeAtOrAfter(s.Index)
			if index := l.IndexAtOrAfter(name); name.Unix() != want.Name || index != want.Index {
				t.Fatalf("seed %d, second %d: name %d in second %d, want %d in %d",
					seed, s.Index, name.Unix(), index, want.Name, want.Index)
			}
		}
	}
}
