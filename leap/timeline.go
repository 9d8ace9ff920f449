package leap

import (
	"sync"
	"sync/atomic"
	"time"
)

// These constants determine how the names of seconds follow the wall clock; see [Timeline]. In their comments, a
// difference is the time between the wall clock and the name of a second.
const (
	// stepThreshold is the smallest difference that is treated as a step of the wall clock. A smaller difference is
	// treated as drift, and slewed.
	stepThreshold = time.Second
	// maxSlew is the largest time by which slewing shortens or lengthens a second.
	maxSlew = 10 * time.Millisecond
	// deadband is the largest difference that is ignored. It is also the longest pause that readClocks tolerates
	// between its two readings of the monotonic clock.
	deadband = time.Millisecond
	// maxLead is the largest lead of names over the wall clock. Prometheus rejects samples at twice this lead.
	maxLead = 5 * time.Minute
	// keptNames is the minimum time, in seconds, for which startRun keeps the names of an ended run.
	keptNames = 2 * 3600
)

// lastReading is the latest reading at which a second opens. firstIndex and lastIndex limit the index of the first
// second. With these limits, sums of times do not overflow an int64 of nanoseconds.
const (
	lastReading = Reading(1) << 62
	lastIndex   = int64(1) << 32
	firstIndex  = -lastIndex
)

// Timeline divides time into seconds, and gives each second an index and a name. All rings of a process run on the same
// Timeline.
//
// Seconds are measured by the monotonic clock. A jump of the wall clock therefore never changes the order of seconds,
// and slewing changes their length by at most 1 %. Each second has a name: the wall-clock second that it represents. A
// second gets its name when it opens, and the name never changes. At the start, seconds begin together with the seconds
// of the wall clock. Whenever a second opens, the Timeline compares the name of this second with the wall clock:
//
//   - A difference of up to a millisecond is ignored.
//
//   - A difference of less than a second is slewed: seconds are up to 1 % shorter or longer until the names
//     agree with the wall clock.
//
//   - If the wall clock leads by a second or more, it was stepped forward, or the machine was suspended. The name jumps
//     to the wall clock. The names between the old and the new time are skipped: no second has them.
//
//   - If the wall clock lags by a second or more, it was stepped back. Names continue without a gap and lead the wall
//     clock. Slewing reduces the lead. Prometheus rejects samples that are ten minutes ahead, so the lead must stay
//     small: if it exceeds five minutes, the Timeline takes the name from the wall clock again. Such a name was
//     probably used before. Exported names must ascend and be unique. The Timeline therefore marks seconds as
//     [Second.Repeat] until a name is later than all earlier names.
//
// The drawing shows what happens for each difference between the wall clock and the name:
//
//	   wall clock behind                              wall clock ahead
//	<------------|----------------|---------|----|----|---------|------------->
//	          -5 min            -1 s      -1 ms  0  1 ms       1 s
//	  jump back    continue, slew     slew    ignore     slew     jump ahead
//
// Timeline is safe for concurrent use. Within a second, At costs one atomic load. Once a second, one call of At
// reads the wall clock under a lock.
//
// Limitations: slewing takes hours to correct a difference of several minutes. A skipped name has no record, and the
// record of a repeated second is not exported. [Health] counts steps and repeated seconds.
type Timeline struct {
	anchor time.Time // creation time; if clock.Mono is nil, Now returns the time since anchor
	clock  Clock

	open atomic.Pointer[Second] // the open second; replaced under mu

	mu         sync.Mutex // guards the fields below
	runs       []run      // in ascending order; the last run contains the open second
	latestName int64      // latest name so far, or Clock.StartAfter if that is later
	health     Health
}

// Second is a second of a Timeline.
type Second struct {
	// Index is the number of the second on the timeline. The next second has the number Index+1, whatever the wall
	// clock shows.
	Index int64
	// Name is the Unix time of the wall-clock second that this second represents.
	Name int64
	// Repeat reports that Name must not be exported. It is set in two cases. In the first case, the wall clock was set
	// back, so an earlier second had this name or a later name. In the second case, Name is not later than
	// Clock.StartAfter.
	Repeat bool
	// Start and End are readings of the monotonic clock. The second contains the readings in [Start, End).
	Start, End Reading
}

// Health reports how a Timeline follows the wall clock.
type Health struct {
	// Steps counts the steps of the wall clock. Whenever a second opens, the Timeline computes the difference between
	// the wall clock and the name of this second. If the difference has changed by a second or more since the previous
	// second opened, the wall clock has stepped.
	Steps int64
	// Repeated counts the seconds that are marked [Second.Repeat].
	Repeated int64
	// Offset is the difference between the wall clock and the name of the open second, at the time when this second
	// opened. It is positive if the wall clock leads. If the Timeline took the name of this second from the wall clock,
	// Offset is the difference that remains, which is less than a second.
	Offset time.Duration
}

// run is a sequence of seconds with consecutive names; names.go has a drawing and describes the floor. A new run begins
// when the Timeline takes a name from the wall clock. If the wall clock is never stepped, the timeline has a single
// run.
type run struct {
	index, name int64 // index and name of the first second
	floor       int64 // a second of the run is a repeat if its name is at most floor
}

// NewTimeline returns a Timeline that starts in the current second of the wall clock. If that second is not later than
// Clock.StartAfter, the Timeline starts with the second after StartAfter instead, and its names lead the wall clock.
// If this lead would be more than five minutes, the Timeline starts with the current second, and marks seconds as
// [Second.Repeat] until a name is later than StartAfter.
//
// Set both Mono and Wall of the clock, or neither of them. If they are not set, the Timeline reads the machine's
// clocks.
func NewTimeline(clock Clock) *Timeline {
	t := &Timeline{anchor: time.Now(), clock: clock}
	mono, wall := t.readClocks()
	name, start := wall.Unix(), mono.Add(-time.Duration(wall.Nanosecond()))
	floor := name - 1 // latest name that must not be exported
	if !clock.StartAfter.IsZero() && clock.StartAfter.Unix() >= name {
		floor = clock.StartAfter.Unix()
		if ahead := time.Unix(floor+1, 0).Sub(wall); ahead <= maxLead {
			name, start = floor+1, mono
			t.health.Offset = -ahead
		}
	}
	first := Second{
		Index: min(max(name, firstIndex), lastIndex), Name: name, Repeat: name <= floor,
		Start: start, End: start.Add(time.Second),
	}
	t.runs = []run{{index: first.Index, name: name, floor: floor}}
	t.latestName = max(name, floor)
	if first.Repeat {
		t.health.Repeated++
	}
	t.open.Store(&first)
	return t
}

// At returns the second that contains the reading now, and opens it if necessary. There are two exceptions. For a
// reading before the open second, At returns the open second, because the timeline never goes back. For a reading that
// the clock has not reached, At returns the current second, because no caller may open a second before its time.
func (t *Timeline) At(now Reading) Second {
	if s := t.open.Load(); now < s.End {
		return *s
	}
	return t.advance(now)
}

// MaxSecond is the length of the longest possible second: a second plus the largest slew.
const MaxSecond = time.Second + maxSlew

// Current returns the open second and the time left until its end, which is positive and at most [MaxSecond].
//
// To sleep until the next second, sleep for the time left. Do not compute this time from [Timeline.Now] and
// [Timeline.At]. If the goroutine is suspended between these two calls, the method At returns a later second than the
// second of the reading, and the computed time is too long by the duration of the suspension. Current makes the same
// two calls, but limits the result to MaxSecond.
func (t *Timeline) Current() (s Second, left time.Duration) {
	now := t.Now()
	s = t.At(now)
	return s, min(s.End.Sub(now), MaxSecond)
}

// advance opens the second that contains the reading now, unless another goroutine has already opened this second or a
// later one. If now is ahead of the clock, advance opens the second that contains the clock's current reading instead.
// It returns the second that is then open.
func (t *Timeline) advance(now Reading) Second {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := *t.open.Load()
	now = min(now, t.Now(), lastReading)
	for now >= s.End { // needs a second iteration if slewing shortens the new second so much that it ends before now
		s = t.next(s, now)
	}
	t.open.Store(&s)
	return s
}

// next returns the second that opens after the open second s, which must have ended by the reading now. Usually the
// returned second contains this reading. If no goroutine called At for some seconds after s, next skips these seconds:
// they have indexes, names and the usual length, but are never open. If slewing shortens the returned second so much
// that it does not contain the reading, advance calls next again.
func (t *Timeline) next(s Second, now Reading) Second {
	idle := int64(now.Sub(s.End) / time.Second)
	next := Second{
		Index: s.Index + 1 + idle, Name: s.Name + 1 + idle, Start: s.End.Add(time.Duration(idle) * time.Second),
	}
	floor := t.runs[len(t.runs)-1].floor
	t.health.Repeated += min(max(floor-s.Name, 0), idle)
	t.latestName = max(t.latestName, next.Name-1)
	t.discipline(&next)
	return next
}

// discipline prepares the second s for opening. It compares the name of s with the wall clock. If the wall clock leads
// by a second or more, or lags by more than five minutes, discipline replaces the name with the second of the wall
// clock, and starts a run. If a difference remains, the length of s corrects at most 10 ms of it. discipline also sets
// s.Repeat and the health.
func (t *Timeline) discipline(s *Second) {
	mono, wall := t.readClocks()
	ahead := wall.Sub(time.Unix(s.Name, 0).Add(mono.Sub(s.Start)))
	if d := ahead - t.health.Offset; d >= stepThreshold || d <= -stepThreshold {
		t.health.Steps++
	}
	if ahead >= stepThreshold || ahead < -maxLead {
		shift := floorDiv(int64(ahead), int64(time.Second))
		s.Name += shift
		ahead -= time.Duration(shift) * time.Second
		t.startRun(run{index: s.Index, name: s.Name, floor: t.latestName})
	}
	s.Repeat = s.Name <= t.runs[len(t.runs)-1].floor
	if s.Repeat {
		t.health.Repeated++
	}
	t.latestName = max(t.latestName, s.Name)
	t.health.Offset = ahead
	s.End = s.Start.Add(time.Second)
	if ahead > deadband || ahead < -deadband {
		s.End = s.End.Add(-min(max(ahead, -maxSlew), maxSlew))
	}
}

// startRun appends the run r to the list of runs. It drops the runs that ended more than two hours before r begins.
func (t *Timeline) startRun(r run) {
	t.runs = append(t.runs, r)
	for len(t.runs) > 1 && t.runs[1].index < r.index-keptNames {
		t.runs = t.runs[1:]
	}
}

// Health returns the number of steps and the number of repeated seconds so far, and the current offset.
func (t *Timeline) Health() Health {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.health
}
