package leap_test

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// If the wall clock and the names differ, the Timeline ignores the difference, slews it, or takes the name from the
// wall clock. Thresholds separate these cases. For each threshold the table has two differences, one on either side, a
// nanosecond apart.
func TestThresholdsOfTheWallClock(t *testing.T) {
	for name, tc := range map[string]struct {
		diff   time.Duration // lead of the wall clock over the name of the next second
		skip   int64         // number of skipped names; negative if the name goes back
		length time.Duration // length of the next second
		steps  int64
	}{
		"in the dead band, ahead":    {time.Millisecond, 0, time.Second, 0},
		"in the dead band, behind":   {-time.Millisecond, 0, time.Second, 0},
		"past the dead band, ahead":  {time.Millisecond + 1, 0, 999*ms - 1, 0},
		"past the dead band, behind": {-time.Millisecond - 1, 0, 1001*ms + 1, 0},
		"the largest slew":           {500 * ms, 0, 990 * ms, 0},
		"the largest drift ahead":    {time.Second - 1, 0, 990 * ms, 0},
		"the largest drift behind":   {-time.Second + 1, 0, 1010 * ms, 0},
		"the smallest step ahead":    {time.Second, 1, time.Second, 1},
		"the smallest step behind":   {-time.Second, 0, 1010 * ms, 1},
		"the largest lead of names":  {-5 * time.Minute, 0, 1010 * ms, 1},
		"a larger lead of names":     {-5*time.Minute - 1, -301, 990 * ms, 1},
	} {
		c := &clocks{}
		l := newLine(c)
		first := l.At(c.now())
		c.pass(first.End.Sub(c.now()))
		c.step(tc.diff)
		next := l.At(c.now())
		if got := next.Name - first.Name - 1; got != tc.skip {
			t.Errorf("%s: %d names are skipped, want %d", name, got, tc.skip)
		}
		if got := next.End.Sub(next.Start); got != tc.length {
			t.Errorf("%s: the next second is %v long, want %v", name, got, tc.length)
		}
		if got := l.Health().Steps; got != tc.steps {
			t.Errorf("%s: %d steps, want %d", name, got, tc.steps)
		}
	}
}

// If the process pauses between its readings of the two clocks, the Timeline must not count a step.
func TestPauseBetweenTheClocksIsNotAStep(t *testing.T) {
	c := &clocks{wall: start}
	pauses := 0
	l := leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return c.mono },
		Wall: func() time.Time {
			wall := c.wall
			if pauses > 0 {
				pauses--
				c.pass(3 * time.Second)
			}
			return wall
		},
	})
	first := l.At(c.now())
	for i := range int64(10) {
		pauses = int(i % 3) // readClocks makes three attempts, so it tolerates two pauses
		c.pass(time.Second)
		l.At(c.now())
	}
	s := l.At(c.now())
	if got := s.Name - first.Name; got != s.Index-first.Index || l.Health() != (leap.Health{}) {
		t.Errorf("after %d seconds the name is %d later; health %+v", s.Index-first.Index, got, l.Health())
	}
}

// In idle seconds no goroutine calls At, but idle seconds have names, too. If the wall clock steps back, later seconds
// may get these names again. The Timeline marks such seconds as repeats.
func TestNamesOfIdleSecondsAreNotRepeated(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	first := l.At(c.now())
	c.pass(100 * time.Second)
	c.step(-10 * time.Minute)
	s := l.At(c.now()) // the 99 idle seconds have the names first.Name+1 to first.Name+99
	for s.Name < first.Name+99 {
		c.pass(time.Second)
		if s = l.At(c.now()); s.Name <= first.Name+99 && !s.Repeat {
			t.Fatalf("the name %d is used twice, but the second is not marked as a repeat", s.Name-first.Name)
		}
	}
	c.pass(time.Second)
	if s = l.At(c.now()); s.Repeat {
		t.Errorf("the name %d is new, but the second is marked as a repeat", s.Name-first.Name)
	}
}

// The Timeline keeps names for at least two hours. It drops older names when the wall clock steps again.
func TestNamesAreKeptForTwoHours(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	first := l.At(c.now())
	for _, tc := range []struct {
		pass time.Duration
		ok   bool
	}{{time.Second, true}, {119 * time.Minute, true}, {2 * time.Minute, false}} {
		c.pass(tc.pass)
		c.step(time.Hour)
		l.At(c.now())
		if name, ok := l.WallTime(first.Index); ok != tc.ok || ok && name.Unix() != first.Name {
			t.Errorf("after %v the first second is named %v (%t), want %t", c.mono, name, ok, tc.ok)
		}
	}
}

// A Timeline with StartAfter may lead the wall clock by five minutes at the start, but not by more.
func TestLargestLeadAtStart(t *testing.T) {
	full := start.Truncate(time.Second)
	for ahead, want := range map[time.Duration]int64{5 * time.Minute: 300, 5*time.Minute + time.Second: 0} {
		l := leap.NewTimeline(leap.Clock{
			Mono:       func() time.Duration { return 0 },
			Wall:       func() time.Time { return full },
			StartAfter: full.Add(ahead - time.Second),
		})
		if got := l.At(0).Name - full.Unix(); got != want {
			t.Errorf("%v ahead: the first name is %d later than the wall clock, want %d", ahead, got, want)
		}
	}
}
