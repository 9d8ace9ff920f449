package leap_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// clocks holds the times that a monotonic clock and a wall clock show. The tests set both times.
type clocks struct {
	mono time.Duration
	wall time.Time
}

func (c *clocks) pass(d time.Duration) { c.mono += d; c.wall = c.wall.Add(d) }
func (c *clocks) step(d time.Duration) { c.wall = c.wall.Add(d) }

// start is 300 ms after a full second.
var start = time.Date(2026, 1, 2, 3, 4, 5, 300e6, time.UTC)

func newLine(c *clocks) *leap.Timeline {
	if c.wall.IsZero() {
		c.wall = start
	}
	return leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return c.mono },
		Wall: func() time.Time { return c.wall },
	})
}

// now returns the current reading of the monotonic clock.
func (c *clocks) now() leap.Reading { return leap.Reading(c.mono) }

// nameAt returns the name of the open second, in seconds since start.
func nameAt(l *leap.Timeline, c *clocks) int64 { return l.At(c.now()).Name - start.Unix() }

func TestSecondsAreAlignedWithTheWallClock(t *testing.T) {
	c := &clocks{mono: time.Hour}
	l := newLine(c)
	for _, tc := range []struct {
		after time.Duration
		name  int64
	}{{0, 0}, {699 * ms, 0}, {700 * ms, 1}, {1699 * ms, 1}, {1700 * ms, 2}, {10 * time.Second, 10}} {
		c.mono, c.wall = time.Hour+tc.after, start.Add(tc.after)
		if got := nameAt(l, c); got != tc.name {
			t.Errorf("after %v the second is %d, want %d", tc.after, got, tc.name)
		}
	}
	if h := l.Health(); h != (leap.Health{}) {
		t.Errorf("health of a good clock: %+v", h)
	}
}

func TestTheRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leap.NewTimeline(leap.Clock{})
		for range 200 {
			time.Sleep(333 * ms)
			s := l.At(l.Now())
			if want := time.Now().Unix(); s.Name != want || s.Index != want {
				t.Fatalf("at %v the second is %+v", time.Now(), s)
			}
		}
	})
}

func TestOlderReadingsGetTheOpenSecond(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	c.pass(10 * time.Second)
	open := l.At(c.now())
	for _, now := range []leap.Reading{c.now().Add(-5 * time.Second), 0, leap.Reading(-time.Hour), math.MinInt64} {
		if got := l.At(now); got != open {
			t.Errorf("At(%v) = %+v, want the open second %+v", now, got, open)
		}
	}
}

// A reading ahead of the clock must not open a second. In an earlier version, such a reading opened a future second.
// Until the clock reached that second, all events counted in it.
func TestRegressionAReadingAheadOpensNothing(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	for i := range int64(5) {
		for _, ahead := range []time.Duration{0, 1, 5 * time.Minute, time.Hour, math.MaxInt64 - c.mono} {
			s := l.At(c.now().Add(ahead))
			if got := s.Name - start.Unix(); got != i || c.now() < s.Start || c.now() >= s.End {
				t.Fatalf("at %v, a reading %v ahead gets second %d, [%v, %v)", c.mono, ahead, got, s.Start, s.End)
			}
		}
		c.pass(time.Second)
	}
	if h := l.Health(); h != (leap.Health{}) {
		t.Errorf("health %+v", h)
	}
}

func TestReadings(t *testing.T) {
	c := &clocks{mono: time.Hour}
	l := newLine(c)
	before := l.Now()
	c.pass(90 * ms)
	after := l.Now()
	if after.Sub(before) != 90*ms || before.Sub(after) != -90*ms || before.Add(90*ms) != after ||
		after.String() != "1h0m0.09s" {
		t.Errorf("%v follows %v", after, before)
	}
}

func TestExtremeReadingsDoNotOverflow(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	c.mono = math.MaxInt64
	s := l.At(math.MaxInt64)
	if s.End <= s.Start || s.LineTime(math.MaxInt64) < 0 || s.LineTime(s.Start) < 0 {
		t.Errorf("the last second is %+v", s)
	}
	for _, year := range []int{1, 1960, 2300, 9999} {
		c := &clocks{wall: time.Date(year, 6, 1, 0, 0, 0, 5e8, time.UTC)}
		l := newLine(c)
		c.pass(3 * time.Second)
		s := l.At(c.now())
		if name, ok := l.WallTime(s.Index); !ok || !name.Equal(c.wall.Truncate(time.Second)) {
			t.Errorf("year %d: the second at %v is named %v, %t", year, c.wall, name, ok)
		}
	}
}

// If the wall clock and the names differ by less than a second, slewing corrects the difference: no second is skipped
// or repeated, and each second is at most 1 % shorter or longer than usual.
func TestSmallDifferencesAreSlewed(t *testing.T) {
	for _, diff := range []time.Duration{400 * ms, -400 * ms, 999 * ms, -999 * ms} {
		c := &clocks{}
		l := newLine(c)
		last := l.At(c.now())
		c.step(diff)
		for range 200 * 20 {
			c.pass(50 * ms)
			s := l.At(c.now())
			if s.Index == last.Index {
				continue
			}
			if s.Index != last.Index+1 || s.Name != last.Name+1 || s.Start != last.End {
				t.Fatalf("diff %v: second %+v follows %+v", diff, s, last)
			}
			if d := s.End.Sub(s.Start) - time.Second; d > 10*ms || d < -10*ms {
				t.Fatalf("diff %v: a second is %v long", diff, d+time.Second)
			}
			last = s
		}
		h := l.Health()
		if h.Steps != 0 || h.Repeated != 0 || h.Offset > ms || h.Offset < -ms {
			t.Errorf("diff %v: health after 200 s: %+v", diff, h)
		}
	}
}

func TestStepForwardSkipsNames(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	c.pass(time.Second)
	before := l.At(c.now())
	c.step(time.Hour)
	c.pass(time.Second)
	after := l.At(c.now())
	if after.Index != before.Index+1 || after.Name != before.Name+3601 || after.End.Sub(after.Start) != time.Second {
		t.Errorf("%+v follows %+v", after, before)
	}
	for i, want := range map[int64]int64{0: 0, 1: 1, 2: 3602, 5: 3605} {
		name, ok := l.WallTime(before.Index - 1 + i)
		if !ok || name.Unix() != start.Unix()+want {
			t.Errorf("second %d is named %v (%t), want +%d", i, name, ok, want)
		}
	}
	if h := l.Health(); h.Steps != 1 || h.Repeated != 0 {
		t.Errorf("health %+v", h)
	}
}

// After a small step back of the wall clock, names continue and lead the wall clock. Slewing reduces the lead by 10 ms
// in each second.
func TestSmallStepBackIsNotFollowed(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	first := l.At(c.now())
	c.step(-3 * time.Second)
	for range 400 {
		c.pass(time.Second)
		l.At(c.now())
	}
	s := l.At(c.now())
	if s.Name-first.Name != s.Index-first.Index {
		t.Errorf("names were skipped or repeated: %+v", s)
	}
	if d := c.wall.Sub(time.Unix(s.Name, 0)); d < 0 || d > 1100*ms {
		t.Errorf("after 400 s the wall clock leads the names by %v", d)
	}
	if h := l.Health(); h.Steps != 1 || h.Repeated != 0 {
		t.Errorf("health %+v", h)
	}
}

func TestLargeStepBackRepeatsNames(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	first := l.At(c.now())
	c.step(-10 * time.Minute)
	for i := range int64(700) {
		c.pass(time.Second)
		s := l.At(c.now())
		if s.Index != first.Index+1+i {
			t.Fatalf("the index went from %d to %d", first.Index+i, s.Index)
		}
		if want := c.wall.Unix(); s.Name != want {
			t.Fatalf("after %d s the name is %d, the wall clock says %d", i, s.Name, want)
		}
		if want := s.Name <= first.Name; s.Repeat != want {
			t.Fatalf("after %d s: %+v, the first name is %d", i, s, first.Name)
		}
		if _, ok := l.WallTime(s.Index); ok == s.Repeat {
			t.Fatalf("after %d s the name is valid: %t", i, ok)
		}
	}
	if h := l.Health(); h.Steps != 1 || h.Repeated != 600 {
		t.Errorf("health %+v, want 1 step and 600 repeated seconds", h)
	}
}

// Like TestLargeStepBackRepeatsNames, but 599 of the 600 repeated seconds pass without a call of At.
func TestLargeStepBackWhileIdle(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	l.At(c.now())
	c.step(-10 * time.Minute)
	c.pass(time.Second)
	l.At(c.now())
	c.pass(700 * time.Second)
	if s := l.At(c.now()); s.Repeat || s.Name != c.wall.Unix() {
		t.Errorf("%+v at %v", s, c.wall)
	}
	if h := l.Health(); h.Repeated != 600 {
		t.Errorf("health %+v, want 600 repeated seconds", h)
	}
}

// WallTime and IndexAtOrAfter are inverse functions, also after steps of the wall clock in both directions.
func TestIndexOfAName(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	first := l.At(c.now())
	named := map[int64]bool{}
	var seconds []leap.Second
	for i := range 2000 {
		switch i {
		case 300:
			c.step(time.Hour)
		case 600:
			c.step(-10 * time.Minute) // the lag exceeds five minutes, so names jump back and repeat
		case 1500:
			c.step(40 * time.Second)
		}
		c.pass(time.Second)
		s := l.At(c.now())
		seconds = append(seconds, s)
		if !s.Repeat {
			named[s.Name] = true
		}
	}
	for _, s := range seconds {
		index := l.IndexAtOrAfter(time.Unix(s.Name, 0))
		if want := !s.Repeat; (index == s.Index) != want {
			t.Fatalf("%+v: the index of its name is %d", s, index)
		}
	}
	last := seconds[len(seconds)-1]
	for name := first.Name - 10; name < last.Name; name++ {
		at, ok := l.WallTime(l.IndexAtOrAfter(time.Unix(name, 0)))
		if !ok || (at.Unix() == name) != (named[name] || name == first.Name) {
			t.Fatalf("name %d, %d after the first: given %t, its index has the name %v (%t)",
				name, name-first.Name, named[name], at, ok)
		}
	}
	// IndexAtOrAfter returns the index of the first second with a valid name at or after the given time.
	seconds = append([]leap.Second{first}, seconds...)
	for name := first.Name - 10; name < last.Name; name++ {
		i := slices.IndexFunc(seconds, func(s leap.Second) bool { return s.Name >= name && !s.Repeat })
		for _, at := range []time.Time{time.Unix(name, 0), time.Unix(name-1, 1)} {
			if got := l.IndexAtOrAfter(at); got != seconds[i].Index {
				t.Fatalf("from %d after the first on: index %d, want %d", name-first.Name, got-first.Index, i)
			}
		}
	}
	for at, want := range map[time.Time]int64{
		time.Unix(last.Name+5, 0):   last.Index + 5,
		{}:                          first.Index,
		time.Unix(math.MinInt64, 0): first.Index,
		time.Unix(1<<60, 0):         last.Index + 1<<60 - last.Name,
	} {
		if got := l.IndexAtOrAfter(at); got != want {
			t.Errorf("from %v on: index %d, want %d", at, got, want)
		}
	}
}

// At opens the second that would contain the reading if seconds were not slewed. If slewing shortens that second so
// much that it ends at or before the reading, At must return the following second.
func TestASecondHoldsItsReading(t *testing.T) {
	for _, gap := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Minute} {
		for margin := time.Duration(0); margin < 30*ms; margin += ms / 2 {
			c := &clocks{}
			l := newLine(c)
			c.pass(700*ms + gap - margin) // without slewing, a second would end at 700*ms + gap
			c.step(500 * ms)
			s := l.At(c.now())
			if c.now() < s.Start || c.now() >= s.End {
				t.Fatalf("gap %v: the reading %v got [%v, %v)", gap, c.mono, s.Start, s.End)
			}
		}
	}
}

// After a thousand steps of the wall clock, each second still has the name with which it opened.
func TestManySteps(t *testing.T) {
	c := &clocks{}
	l := newLine(c)
	type second struct{ index, name int64 }
	var seconds []second
	for i := range 3000 {
		if i%3 == 0 {
			c.step(5 * time.Second)
		}
		c.pass(time.Second)
		s := l.At(c.now())
		seconds = append(seconds, second{s.Index, s.Name})
	}
	for _, s := range seconds {
		if name, ok := l.WallTime(s.index); !ok || name.Unix() != s.name {
			t.Fatalf("second %d was named %d and is now %v, %t", s.index, s.name, name, ok)
		}
	}
}

// In seconds of every length, ReadingAt(x) is the first reading whose LineTime is x or later.
func TestLineTimeAndReadingAt(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 990 * ms, 1010 * ms, 1003*ms + 7} {
		s := leap.Second{Index: 1_800_000_000, Start: 12345, End: leap.Reading(12345).Add(length)}
		base := time.Duration(s.Index) * time.Second
		for part := time.Duration(0); part <= time.Second; part += 12_345_678 {
			now := s.ReadingAt(base + part)
			if part < time.Second && s.LineTime(now) < base+part {
				t.Fatalf("length %v: LineTime(ReadingAt(%v)) = %v", length, part, s.LineTime(now)-base)
			}
			if part > 0 && s.LineTime(now-1) >= base+part {
				t.Fatalf("length %v: ReadingAt(%v) is not the first", length, part)
			}
		}
		if s.ReadingAt(base+time.Second) != s.End || s.LineTime(s.End) >= base+time.Second || s.LineTime(0) != base {
			t.Errorf("length %v: the ends are wrong", length)
		}
	}
}

// Only seconds with names later than Clock.StartAfter may be exported, whatever the wall clock shows.
func TestAfter(t *testing.T) {
	for _, tc := range []struct {
		name         string
		after        time.Duration // StartAfter minus the time at which the Timeline starts
		first, later int64         // names of the first second and of the second a minute later
		repeated     int64         // number of repeats among the first 61 seconds
	}{
		{"long ago", -time.Hour, 0, 60, 0},
		{"the second before", -time.Second, 0, 60, 0},
		// At first the names lead by 0.7 s. Slewing reduces the lead by 10 ms in each second.
		{"the current second", 0, 1, 60, 0},
		{"four minutes", 4 * time.Minute, 241, 300, 0},
		{"a future that servers reject", time.Hour, 0, 60, 61},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &clocks{wall: start}
			l := leap.NewTimeline(leap.Clock{
				Mono:       func() time.Duration { return c.mono },
				Wall:       func() time.Time { return c.wall },
				StartAfter: start.Add(tc.after),
			})
			if got := nameAt(l, c); got != tc.first {
				t.Errorf("the first second is %d, want %d", got, tc.first)
			}
			for last := int64(math.MinInt64); c.mono < time.Minute; c.pass(100 * ms) {
				s := l.At(c.now())
				at, ok := l.WallTime(s.Index)
				if ok && (!at.After(start.Add(tc.after).Truncate(time.Second)) || at.Unix() < last) {
					t.Fatalf("at %v the name is %v", c.mono, at)
				}
				if ok {
					last = at.Unix()
				}
			}
			if got := nameAt(l, c); got != tc.later {
				t.Errorf("the second after a minute is %d, want %d", got, tc.later)
			}
			if h := l.Health(); h.Repeated != tc.repeated || h.Steps != 0 {
				t.Errorf("health %+v, want %d repeated", h, tc.repeated)
			}
		})
	}
}

// Even after steps of the wall clock, all seconds that may be exported have names later than StartAfter.
func TestAfterAndSteps(t *testing.T) {
	c := &clocks{wall: start}
	after := start.Add(time.Hour)
	l := leap.NewTimeline(leap.Clock{
		Mono:       func() time.Duration { return c.mono },
		Wall:       func() time.Time { return c.wall },
		StartAfter: after,
	})
	steps := []time.Duration{10 * time.Minute, -20 * time.Minute, 50 * time.Minute, -30 * time.Minute, 2 * time.Hour}
	for i, step := range steps {
		c.step(step)
		for range 50 {
			c.pass(100 * ms)
			s := l.At(c.now())
			if at, ok := l.WallTime(s.Index); ok && (i < 4 || !at.After(after)) {
				t.Fatalf("step %d: %v is %v", i, c.mono, at)
			}
		}
	}
	if _, ok := l.WallTime(l.At(c.now()).Index); !ok {
		t.Error("long after StartAfter, seconds are not exported")
	}
}
