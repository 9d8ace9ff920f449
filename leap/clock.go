package leap

import "time"

// Reading is a value of a Timeline's monotonic clock, from [Timeline.Now]. The separate type prevents confusion with
// durations. Readings of one Timeline can be compared and subtracted with [Reading.Sub]. The zero Reading is the start
// of the clock.
type Reading time.Duration

// Sub returns the time from the reading o to r. It is negative if r is earlier than o.
func (r Reading) Sub(o Reading) time.Duration { return time.Duration(r - o) }

// Add returns the reading d after r.
func (r Reading) Add(d time.Duration) Reading { return r + Reading(d) }

// String formats the time since the start of the clock.
func (r Reading) String() string { return time.Duration(r).String() }

// Clock holds the clocks that a Timeline reads.
type Clock struct {
	// Mono returns the monotonic clock, as the time since an arbitrary start. The value must never go back.
	Mono func() time.Duration
	// Wall returns the wall clock, which may jump in either direction.
	Wall func() time.Time
	// StartAfter is a wall-clock second, or the zero Time. The names of all exported seconds are later than StartAfter.
	StartAfter time.Time
}

// Now reads the monotonic clock. It costs half as much as time.Now, which reads two clocks.
func (t *Timeline) Now() Reading {
	if t.clock.Mono != nil {
		return Reading(t.clock.Mono())
	}
	return Reading(time.Since(t.anchor))
}

// readClocks reads both clocks at nearly the same instant. One call of time.Now reads both clocks of the machine. The
// functions of a Clock need two calls, and a pause of the process between them would look like a step of the wall
// clock. readClocks therefore reads the monotonic clock before and after the wall clock. It makes up to three attempts,
// until the two monotonic readings are at most a millisecond apart.
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
