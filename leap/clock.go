package leap

import "time"

// Reading is a value of a Timeline's monotonic clock, from [Timeline.Now]. It has a separate type so that it is not
// confused with a duration. Only readings of the same Timeline can be compared or subtracted, see [Reading.Sub]. The
// zero Reading is the start of the monotonic clock.
type Reading time.Duration

// Sub returns the time from the reading o to r. The time is negative if r is earlier than o.
func (r Reading) Sub(o Reading) time.Duration { return time.Duration(r - o) }

// Add returns the reading that is d later than r.
func (r Reading) Add(d time.Duration) Reading { return r + Reading(d) }

// String formats r as the time since the start of the monotonic clock.
func (r Reading) String() string { return time.Duration(r).String() }

// Clock holds the clocks that a Timeline reads. If Mono and Wall are both nil, the Timeline reads the machine's clocks.
type Clock struct {
	// Mono reads the monotonic clock. It returns the time since an arbitrary start, which must never decrease.
	Mono func() time.Duration
	// Wall reads the wall clock, which may jump in either direction.
	Wall func() time.Time
	// StartAfter is a wall-clock time, for example the last second in the metric log of an earlier process. If the name
	// of a second is not later than StartAfter, the Timeline marks the second as [Second.Repeat], and callers must not
	// export it. If StartAfter is the zero Time, it has no effect.
	StartAfter time.Time
}

// Now reads the monotonic clock. It costs half as much as time.Now, which also reads the wall clock.
func (t *Timeline) Now() Reading {
	if t.clock.Mono != nil {
		return Reading(t.clock.Mono())
	}
	return Reading(time.Since(t.anchor))
}

// readClocks reads both clocks at nearly the same instant. If the Timeline reads the machine's clocks, one call of
// time.Now reads both. The two functions of a Clock, in contrast, are called one after the other. If the process pauses
// between these two calls, the wall clock seems to have jumped by the length of the pause. readClocks therefore reads
// the monotonic clock before and after the wall clock. If these two readings are more than a millisecond apart, it
// tries again. It makes at most three attempts, and uses the result of the third one in any case.
func (t *Timeline) readClocks() (mono Reading, wall time.Time) {
	if t.clock.Mono != nil {
		mono = t.Now()
		for range 3 {
			wall = t.clock.Wall().Round(0)
			before := mono
			if mono = t.Now(); mono.Sub(before) <= deadband {
				break
			}
		}
		return mono, wall
	}
	now := time.Now()
	return Reading(now.Sub(t.anchor)), now.Round(0)
}
