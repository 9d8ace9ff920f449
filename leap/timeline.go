package leap

import (
	"sync"
	"sync/atomic"
	"time"
)

// How a Timeline follows the wall clock. See [Timeline].
const (
	// step is the difference from which the wall clock counts as stepped rather than drifting.
	stepThreshold = time.Second
	// slew is the most by which one second is made shorter or longer.
	maxSlew = 10 * time.Millisecond
	// quiet is the difference that is left alone.
	deadband = time.Millisecond
	// refused is how far names may be ahead of the wall clock: Prometheus refuses samples from beyond it.
	maxLead = 5 * time.Minute
	// named is how many seconds back the names of seconds are kept.
	keptNames = 2 * 3600
	// lastReading and firstIndex, lastIndex keep every sum of times within an int64 of nanoseconds.
	lastReading = Reading(1) << 62
	lastIndex   = int64(1) << 32
	firstIndex  = -lastIndex
)

// Reading is a reading of a Timeline's monotonic clock, from [Timeline.Now]. It is a type of its own so that no duration
// passes for one. Readings of one Timeline can be compared; what lies between two of them is [Reading.Sub]. The zero value
// is the moment that the clock counts from.
type Reading time.Duration

// Sub is the time from the reading o to r, negative if r is the earlier one.
func (r Reading) Sub(o Reading) time.Duration { return time.Duration(r - o) }

// Add is the reading that the clock will show, or has shown, d after r.
func (r Reading) Add(d time.Duration) Reading { return r + Reading(d) }

// String is the time since the moment that the clock counts from.
func (r Reading) String() string { return time.Duration(r).String() }

// Clock is what a Timeline reads.
type Clock struct {
	// Mono is the monotonic clock, as the time since a moment of its choice. It must never go back.
	Mono func() time.Duration
	// Wall is the wall clock. It may do anything.
	Wall func() time.Time
	// After is a second of the wall clock, the zero Time for none: no second is handed out whose name is not after it.
	After time.Time
}

// Timeline is a line of seconds on which all the rings of a process run together.
//
// Seconds are numbered and timed by the monotonic clock, so that time on the line only goes forward and a second
// keeps its length. Each second has a name, a second of the wall clock, given when the second opens and never
// changed. Names start aligned with the wall clock, and whenever a second opens they are compared with it:
//
//   - A difference below a second is slewed: seconds are up to 1% shorter or longer until it is gone. Below a
//     millisecond it is left alone.
//   - A wall clock that is ahead by a second or more was stepped, or the machine slept: names skip the seconds
//     between, which do not exist.
//   - A wall clock that is behind by a second or more was stepped back: names go on and come back by slewing. Only
//     if they are more than five minutes ahead, where servers refuse samples from the future, are they taken from
//     the wall clock again. Until they have passed the latest name before, seconds are marked [Second.Repeat]: what
//     is handed out must ascend, and no name may stand for two seconds.
//
// Timeline is safe for concurrent use. Within a second, At costs one atomic load; once a second one caller reads the
// wall clock under a lock. Limitation: a difference of several minutes takes hours to slew away, and the seconds
// that were skipped or repeated have no rows of their own; [Health] counts both.
type Timeline struct {
	anchor time.Time // of the real clock; a Clock given by the caller is used instead
	clock  Clock

	open atomic.Pointer[Second]

	mu     sync.Mutex // guards what follows and changes of open
	runs   []run
	latestName int64 // highest name given so far
	health Health
}

// Second is one second of a Timeline.
type Second struct {
	// Index numbers the second on the line: the next one has Index+1, whatever the wall clock does.
	Index int64
	// Name is the Unix time of the wall-clock second that this one stands for.
	Name int64
	// Repeat reports whether Name is not after all names before it, because the wall clock was set back.
	Repeat bool
	// Start and End are the readings of the monotonic clock between which the second is open: [Start, End).
	Start, End Reading
}

// Health is what a Timeline knows about the wall clock.
type Health struct {
	// Steps counts how often the wall clock was found a second or more away from where it should have been.
	Steps int64
	// Repeated counts the seconds whose name was not after all names before it.
	Repeated int64
	// Offset is how far the wall clock was ahead of the names when the last second opened, skipped names aside.
	Offset time.Duration
}

// run is a stretch of seconds with consecutive names. A new one begins where names skip or repeat, so a line whose clock is not
// stepped has a single one, however long it runs.
type run struct {
	index, name int64
	floor       int64 // latest name before the run began
}

// NewTimeline makes a line that starts in the present second. If Clock.After is not over, the line starts with the second
// after it, ahead of the wall clock. If After is more than five minutes ahead, the line starts with the present second, and
// seconds are marked [Second.Repeat] until After is over. The zero Clock stands for the machine's clocks; any other needs
// both functions.
func NewTimeline(clock Clock) *Timeline {
	t := &Timeline{anchor: time.Now(), clock: clock}
	mono, wall := t.readClocks()
	name, start := wall.Unix(), mono.Add(-time.Duration(wall.Nanosecond()))
	floor := name - 1
	if !clock.After.IsZero() && clock.After.Unix() >= name {
		floor = clock.After.Unix()
		if ahead := time.Unix(floor+1, 0).Sub(wall); ahead <= maxLead {
			name, start = floor+1, mono
			t.health.Offset = -ahead
		}
	}
	first := Second{Index: min(max(name, firstIndex), lastIndex), Name: name, Repeat: name <= floor, Start: start, End: start.Add(time.Second)}
	t.runs = []run{{index: first.Index, name: name, floor: floor}}
	t.latestName = max(name, floor)
	if first.Repeat {
		t.health.Repeated++
	}
	t.open.Store(&first)
	return t
}

// Now reads the monotonic clock. It costs one clock reading, half of time.Now.
func (t *Timeline) Now() Reading {
	if t.clock.Mono != nil {
		return Reading(t.clock.Mono())
	}
	return Reading(time.Since(t.anchor))
}

// At returns the second that is open at the reading now, and opens it if nobody has. A reading from before the
// second that is open already gets that one: time only goes forward. A reading that the clock has not reached counts as
// the present one: reading never moves time.
func (t *Timeline) At(now Reading) Second {
	if s := t.open.Load(); now < s.End {
		return *s
	}
	return t.advance(now)
}

// Name is the wall-clock second that the second with this index stands for, in UTC. It reports false for a second
// that is marked [Second.Repeat]: its events are counted in totals, but its record must not be handed out. It also
// does for a second from before the line began, and may for one from more than two hours ago.
func (t *Timeline) Name(index int64) (time.Time, bool) {
	r := t.runOf(index)
	name := r.name + index - r.index
	if name <= r.floor || index < r.index {
		return time.Time{}, false
	}
	return time.Unix(name, 0).UTC(), true
}

// NameFrom is the name of the second with this index, or, if it has none, of the first later second that has: the inverse of
// [Timeline.IndexFrom]. For a second to come it is the name that it will have if the clock does not step. For one from before
// the line began, or, if the clock stepped since, from more than two hours ago, it is the name of the first known second.
func (t *Timeline) NameFrom(index int64) time.Time {
	r := t.runOf(index)
	return time.Unix(max(r.name+max(index-r.index, 0), r.floor+1), 0).UTC()
}

// runOf is the run that the second with this index belongs to: for one that is not known any more the first known run, which
// begins after it. The latest are looked at first, because most of what is asked for happened lately.
func (t *Timeline) runOf(index int64) run {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.runs) - 1
	for i > 0 && t.runs[i].index > index {
		i--
	}
	return t.runs[i]
}

// IndexFrom is the index of the first second whose name is not before the wall-clock time at; seconds without a name, see
// [Timeline.Name], do not count. For a time to come it is the index that the second will have if the clock does not step.
// For a time from before the line began, or, if the clock stepped since, from more than two hours ago, it is the index of
// the first known second.
func (t *Timeline) IndexFrom(at time.Time) int64 {
	name := min(max(at.Unix(), -1<<60), 1<<60) // so that no sum overflows
	if at.Nanosecond() > 0 {
		name++
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, r := range t.runs {
		from := max(r.name, r.floor+1, name)
		index := r.index + from - r.name
		if i == len(t.runs)-1 || index < t.runs[i+1].index {
			return index
		}
	}
	return 0 // not reached: there is a last run
}

// Health reports how the line follows the wall clock.
func (t *Timeline) Health() Health {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.health
}

func (t *Timeline) advance(now Reading) Second {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := *t.open.Load()
	now = min(now, t.Now(), lastReading)
	for now >= s.End { // twice, if the second that now fell into is made so short that it is over
		s = t.next(s, now)
	}
	t.open.Store(&s)
	return s
}

// next opens the second that now falls into. The seconds that nobody asked for had their usual length.
func (t *Timeline) next(s Second, now Reading) Second {
	idle := int64(now.Sub(s.End) / time.Second)
	next := Second{Index: s.Index + 1 + idle, Name: s.Name + 1 + idle, Start: s.End.Add(time.Duration(idle) * time.Second)}
	floor := t.runs[len(t.runs)-1].floor
	t.health.Repeated += min(max(floor-s.Name, 0), idle)
	t.latestName = max(t.latestName, next.Name-1)
	t.discipline(&next)
	return next
}

// follow compares the wall clock with the second that is about to open, renames it if they are too far apart, and
// decides its length.
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

func (t *Timeline) startRun(r run) {
	t.runs = append(t.runs, r)
	for len(t.runs) > 1 && t.runs[1].index < r.index-keptNames {
		t.runs = t.runs[1:]
	}
}

// read reads both clocks as nearly at once as can be.
func (t *Timeline) readClocks() (mono Reading, wall time.Time) {
	if t.clock.Mono != nil {
		mono = t.Now()
		for range 3 { // a pause between the two readings would look like a step
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

// Line is the time on the line at the reading now, since 1970: Index seconds and the part of this second that has
// passed. A reading outside of the second gets its nearer end. It is a time.Duration, because an [Array] is told times
// since an epoch, and is no [Reading].
func (s Second) Line(now Reading) time.Duration {
	length := s.End.Sub(s.Start)
	part := min(max(now.Sub(s.Start), 0), length-1)
	return time.Duration(s.Index)*time.Second + part*time.Second/length
}

// Reading is the first reading of the monotonic clock at which the line has reached the time line, which must not lie
// before the second. For a time after its end it is an estimate: the seconds that follow are taken to have their usual
// length.
func (s Second) Reading(line time.Duration) Reading {
	length := s.End.Sub(s.Start)
	part := line - time.Duration(s.Index)*time.Second
	if part > time.Second {
		return s.End.Add(part - time.Second)
	}
	return s.Start.Add((part*length + time.Second - 1) / time.Second)
}
