package leap_test

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// The thresholds of a Timeline, to the nanosecond: what it does on either side of each.
func TestThresholdsOfTheWallClock(t *testing.T) {
	for name, tc := range map[string]struct {
		diff   time.Duration // by which the wall clock leads
		skip   int64         // names that are left out, or given again if negative
		length time.Duration // of the next second
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

// A pause of the process between its readings of the two clocks is not a step of the wall clock.
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
		pauses = int(i % 3) // the third attempt succeeds
		c.pass(time.Second)
		l.At(c.now())
	}
	s := l.At(c.now())
	if got := s.Name - first.Name; got != s.Index-first.Index || l.Health() != (leap.Health{}) {
		t.Errorf("after %d seconds the name is %d later; health %+v", s.Index-first.Index, got, l.Health())
	}
}
