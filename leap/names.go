package leap

import "time"

// A run is a sequence of seconds with consecutive names. Within a run, the name of a second minus its index is always
// the same number, so one addition converts an index to a name or back:
//
//	index     100    101    102       103    104        105    106
//	name      1005   1006   1007      1037   1038       439    440
//	runs      |----- run 1 ----|      |- run 2 -|       |- run 3, floor 1038 ...
//	                       clock set            clock set
//	                    forward by 29 s      back by 10 min
//
// The floor of a run is the latest name of all seconds before the run, or Clock.StartAfter if that is later. There are
// no seconds before the first run: its floor is its first name minus one, or StartAfter if that is later. Run 3 starts
// with the names 439 and 440, which are not later than its floor, 1038. The seconds of run 3 with names up to 1038 are
// repeats and have no valid name. The second with the name 1039 is the first one of run 3 with a valid name.

// WallTime returns the name of the second with this index as a time in UTC. It returns false if the second is marked
// [Second.Repeat]. The totals include the events of such a second, but its record must not be exported. WallTime also
// returns false for a second before the first second of the timeline. For a second more than two hours ago it may
// return false, because the timeline may have forgotten the name. For a future second, WallTime returns the name that
// the second will have if the wall clock does not step before that second.
func (t *Timeline) WallTime(index int64) (time.Time, bool) {
	r := t.runOf(index)
	name := r.name + index - r.index
	if name <= r.floor || index < r.index {
		return time.Time{}, false
	}
	return time.Unix(name, 0).UTC(), true
}

// WallTimeAtOrAfter returns the name of the second with this index. If that second has no valid name, it returns the
// name of the first later second with a valid name. [Timeline.IndexAtOrAfter] is the inverse function. For a future
// second, WallTimeAtOrAfter returns the name that the second will have if the wall clock does not step before that
// second.
//
// When the wall clock steps, the timeline may forget names that are more than two hours old. If the name of the second
// is forgotten, or if the second is before the first second of the timeline, WallTimeAtOrAfter returns the oldest valid
// name that the timeline remembers.
func (t *Timeline) WallTimeAtOrAfter(index int64) time.Time {
	_, name := t.firstValid(index, -1<<60)
	return time.Unix(name, 0).UTC()
}

// runOf returns the run that contains the second with this index. If the timeline has dropped that run, or if the
// second is before the first second of the timeline, runOf returns the oldest run that is left. All seconds of that run
// are later than the given index. The search starts with the newest run, because most callers need recent seconds.
func (t *Timeline) runOf(index int64) run {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.runs) - 1
	for i > 0 && t.runs[i].index > index {
		i--
	}
	return t.runs[i]
}

// IndexAtOrAfter returns the index of the first second with a valid name at or after wallTime. For a future wallTime it
// returns the index that this second will have if the wall clock does not step before wallTime. If wallTime is before
// all names that the timeline remembers, IndexAtOrAfter returns the index of the oldest second with a valid name.
// [Timeline.WallTimeAtOrAfter] documents how long names are remembered.
func (t *Timeline) IndexAtOrAfter(wallTime time.Time) int64 {
	name := min(max(wallTime.Unix(), -1<<60), 1<<60) // limited so that the sums below do not overflow
	if wallTime.Nanosecond() > 0 {
		name++
	}
	index, _ := t.firstValid(firstIndex, name)
	return index
}

// firstValid returns the index and the name of the first second with a valid name that has at least the given index and
// the given name. For a future second, firstValid assumes that the wall clock does not step before that second.
func (t *Timeline) firstValid(minIndex, minName int64) (index, name int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, r := range t.runs {
		name = max(r.name+max(minIndex-r.index, 0), r.floor+1, minName)
		index = r.index + name - r.name
		if i == len(t.runs)-1 || index < t.runs[i+1].index { // otherwise the run ends before this second
			break
		}
	}
	return index, name
}

// LineTime returns the line time at the reading now. The line time consists of s.Index seconds and the elapsed fraction
// of s. For a reading before s, LineTime returns the start of s. For a reading after s, it returns the last instant of
// s. The result is a time.Duration and not a Reading, because an [Array] takes times since an epoch.
func (s Second) LineTime(now Reading) time.Duration {
	length := s.End.Sub(s.Start)
	part := min(max(now.Sub(s.Start), 0), length-1)
	return time.Duration(s.Index)*time.Second + part*time.Second/length
}

// ReadingAt is the inverse of LineTime: it returns the first reading at which the line time has reached lineTime. Do
// not pass a line time before s. For the line time at which s ends, ReadingAt returns s.End. For a later line time, the
// result is an estimate, as if each second after s were exactly one second long.
func (s Second) ReadingAt(lineTime time.Duration) Reading {
	length := s.End.Sub(s.Start)
	part := lineTime - time.Duration(s.Index)*time.Second
	if part > time.Second {
		return s.End.Add(part - time.Second)
	}
	return s.Start.Add((part*length + time.Second - 1) / time.Second)
}
