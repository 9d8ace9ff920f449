package leap

import (
	"sync"
	"sync/atomic"
	"time"
)

// Parameters of the clock discipline, see [Timeline].
const (
	// stepThreshold is the smallest difference that is treated as a step of the wall clock and not as drift.
	stepThreshold = time.Second
	// maxSlew is the largest change of the length of a second.
	maxSlew = 10 * time.Millisecond
	// deadband is the largest difference that is ignored.
	deadband = time.Millisecond
	// maxLead is the largest lead of names over the wall clock: half the lead at which Prometheus rejects samples.
	maxLead = 5 * time.Minute
	// keptNames is the time in seconds after which names of an ended run may be dropped; see startRun.
	keptNames = 2 * 3600
	// lastReading, firstIndex and lastIndex bound times, so that sums of times do not overflow an int64 of nanoseconds.
	lastReading = Reading(1) << 62
	lastIndex   = int64(1) << 32
	firstIndex  = -lastIndex
)

// Timeline is the sequence of seconds that all rings of a process run on.
//
// The monotonic clock numbers and times the seconds, so time on the line only moves forward and seconds keep their
// length. Each second has a name: the second of the wall clock that it represents. A second gets its name when it
// opens, and the name never changes. The first name is aligned with the wall clock. Whenever a second opens, the
// Timeline compares the name of the second with the wall clock:
//
//   - It ignores a difference of up to a millisecond. It slews a difference below a second: seconds are up to 1 %
//     shorter or longer until the difference is gone.
//   - If the wall clock leads by a second or more, it was stepped or the machine was suspended. Names jump to the wall
//     clock; the skipped names belong to no second.
//   - If the wall clock lags by a second or more, it was stepped back. Names continue without a gap, and slewing
//     reduces the difference. Prometheus rejects samples that are ten minutes ahead. If names would lead by more than
//     five minutes, the Timeline therefore takes names from the wall clock again. It marks seconds as [Second.Repeat]
//     until their names pass the latest earlier name, because exported names must ascend and be unique.
//
// Actions by the difference between the wall clock and the name:
//
//	   wall clock behind                              wall clock ahead
//	<------------|----------------|---------|----|----|---------|------------->
//	          -5 min            -1 s      -1 ms  0  1 ms       1 s
//	 use wall       continue,       slew     ignore    slew       skip names
//	 clock, repeat  slew back
//
// Timeline is safe for concurrent use. Within a second, At costs one atomic load. Once a second, one caller reads the
// wall clock under a lock.
//
// Limitations: a difference of several minutes takes hours to correct by slewing. No record is exported for a skipped
// name or a repeated second. [Health] counts steps and repeated seconds.
type Timeline struct {
	anchor time.Time // start of the machine's monotonic clock; unused if clock has functions
	clock  Clock

	open atomic.Pointer[Second] // changes under mu

	mu         sync.Mutex // guards the fields below
	runs       []run      // ascending; the last one continues
	latestName int64      // latest name so far, or Clock.StartAfter if that is later
	health     Health
}

// Second is a second of a Timeline.
type Second struct {
	// Index numbers the second on the line. The next second has Index+1, independent of the wall clock.
	Index int64
	// Name is the Unix time of the wall-clock second that this second represents.
	Name int64
	// Repeat reports that Name must not be exported: an earlier second had the same or a later name, because the wall
	// clock was set back, or Name is not later than Clock.StartAfter.
	Repeat bool
	// Start and End are readings of the monotonic clock. The second is open in [Start, End).
	Start, End Reading
}

// Health reports how a Timeline follows the wall clock.
type Health struct {
	// Steps counts the steps of the wall clock. A step changes the difference between the wall clock and the names by a
	// second or more from one comparison to the next.
	Steps int64
	// Repeated counts the seconds that are marked [Second.Repeat].
	Repeated int64
	// Offset is the difference between the wall clock and the names when the last second opened. It is positive if the
	// wall clock leads. Differences that a skip or a repeat has corrected are not included.
	Offset time.Duration
}

// run is a sequence of seconds with consecutive names. A new run begins where names skip or repeat. If the wall clock
// is never stepped, the timeline has a single run.
type run struct {
	index, name int64 // of the first second
	floor       int64 // latest name before the run: seconds up to this name are repeats
}

// NewTimeline returns a line that starts in the current second. If the current second is not later than
// Clock.StartAfter, the line starts with the second after Clock.StartAfter, and its names lead the wall clock. If
// StartAfter is more than five minutes ahead, the line starts with the current second, and seconds are marked
// [Second.Repeat] until StartAfter has passed. If clock has no functions, the line reads the machine's clocks;
// otherwise clock needs both functions.
func NewTimeline(clock Clock) *Timeline {
	t := &Timeline{anchor: time.Now(), clock: clock}
	mono, wall := t.readClocks()
	name, start := wall.Unix(), mono.Add(-time.Duration(wall.Nanosecond()))
	floor := name - 1 // the latest name that must not be used
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

// At returns the second that is open at the reading now. It opens the second if necessary. For a reading before the
// open second, At returns the open second, because time only moves forward. For a reading that the clock has not
// reached, At returns the current second, because a caller must not open a second before its time.
func (t *Timeline) At(now Reading) Second {
	if s := t.open.Load(); now < s.End {
		return *s
	}
	return t.advance(now)
}

// MaxSecond is the length of the longest second: a second plus the largest slew.
const MaxSecond = time.Second + maxSlew

// Current returns the open second and the time until it ends, which is positive and at most [MaxSecond].
//
// Use this time to sleep until the next second, and not the difference between a call of [Timeline.Now] and the end of
// the second that [Timeline.At] returns. If the goroutine is suspended between the two calls, another goroutine may
// have opened a later second, and the difference is as long as the suspension.
func (t *Timeline) Current() (s Second, left time.Duration) {
	now := t.Now()
	s = t.At(now)
	return s, min(s.End.Sub(now), MaxSecond)
}

// advance opens the second of the reading now, unless another goroutine has opened it.
func (t *Timeline) advance(now Reading) Second {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := *t.open.Load()
	now = min(now, t.Now(), lastReading)
	for now >= s.End { // repeats if the new second was shortened and ends before now
		s = t.next(s, now)
	}
	t.open.Store(&s)
	return s
}

// next returns the second that contains the reading now; s is the open second and must end at now or earlier. The
// seconds between the two, in which no goroutine called At, are skipped and have the usual length. Slewing may shorten
// the new second so that it ends before now. advance then calls next again.
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

// discipline compares the wall clock with the name of the second s that is about to open, and sets the length of s. If
// the wall clock leads by a second or more, or lags by more than five minutes, discipline takes the name from the wall
// clock.
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

// startRun appends a run, and drops runs that ended more than two hours ago.
func (t *Timeline) startRun(r run) {
	t.runs = append(t.runs, r)
	for len(t.runs) > 1 && t.runs[1].index < r.index-keptNames {
		t.runs = t.runs[1:]
	}
}

// Health reports how the line follows the wall clock.
func (t *Timeline) Health() Health {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.health
}
