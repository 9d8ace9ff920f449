package seconds

import (
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/leap"
)

// Source is the process whose seconds are exported, as far as positions, pages and pushes need it. A
// [collector.Collector] is a Source. The samples come from a [Stream].
type Source interface {
	// Timeline returns the clock that numbers and names the seconds.
	Timeline() *leap.Timeline
	// FirstSecond returns the index of the first second of this process.
	FirstSecond() int64
	// Seal seals all seconds that have ended, and returns the boundary.
	Seal() collector.Boundary
	// History returns the time for which sealed seconds stay available.
	History() time.Duration
	// Publish adds metrics about the exporter itself. The returned function removes them.
	Publish(all ...collector.Metric) (withdraw func())
}

// Archive is implemented by a Source whose streams read seconds that have left the history from files. Positions then
// outlive the history and the process.
type Archive interface {
	Source
	// Kept returns the time for which sealed seconds stay available. It is at least History.
	Kept() time.Duration
	// StateFile returns the path of a state file with this name. It returns each name only once.
	StateFile(name string) (path string, err error)
}

// Line is the sequence of sealed seconds that consumers advance along. The name of a second is its Unix time, which
// outlives the process. Seconds before [Line.First] were recorded by earlier processes, and only a metric log has them.
// A Line is safe for concurrent use.
type Line struct {
	source Source
	first  int64 // index of the first second of this process
}

// NewLine returns the line of a process.
func NewLine(s Source) *Line { return &Line{s, s.FirstSecond()} }

// First returns the first second of this process.
func (l *Line) First() int64 { return l.Unix(l.first) }

// Open returns the open second, or the next second that will have a name. It seals nothing.
func (l *Line) Open() int64 {
	line := l.source.Timeline()
	return l.Unix(line.At(line.Now()).Index)
}

// Sealed seals all seconds that have ended. It returns the first second that is not sealed yet in one of the streams.
func (l *Line) Sealed(streams []Stream) int64 {
	open := l.Unix(l.source.Seal().Open)
	for _, stream := range streams {
		open = stream.Sealed(open)
	}
	return open
}

// History returns the number of sealed seconds that stay available.
func (l *Line) History() int64 { return int64(l.source.History() / time.Second) }

// Kept returns the number of sealed seconds that the streams can read: the history, or the seconds of an [Archive].
func (l *Line) Kept() int64 {
	if a, ok := l.source.(Archive); ok {
		return int64(a.Kept() / time.Second)
	}
	return l.History()
}

// Oldest returns the oldest second that the streams can read. Older seconds exist only in the metric log.
func (l *Line) Oldest() int64 { return l.Before(l.Open(), l.Kept()) }

// Before returns the second n seconds before unix. Seconds that a step of the clock skipped do not count.
func (l *Line) Before(unix, n int64) int64 { return l.name(l.ordinal(unix) - n) }

// After returns the second n seconds after unix. Seconds that a step of the clock skipped do not count.
func (l *Line) After(unix, n int64) int64 { return l.name(l.ordinal(unix) + n) }

// Count returns the number of seconds in [from, to), or 0 if the range is empty.
func (l *Line) Count(from, to int64) int64 { return max(l.ordinal(to)-l.ordinal(from), 0) }

// ordinal numbers all seconds. The ordinal of a second of this process is its index. Seconds of earlier processes have
// the numbers before, as if the clock had skipped none of them.
func (l *Line) ordinal(unix int64) int64 {
	first := l.First()
	return l.Index(max(unix, first)) - max(first-unix, 0)
}

// name returns the second with this ordinal.
func (l *Line) name(ordinal int64) int64 {
	first := l.ordinal(l.First())
	return l.Unix(max(ordinal, first)) - max(first-ordinal, 0)
}

// Index returns the index of the first second of this process at or after unix.
func (l *Line) Index(unix int64) int64 {
	return max(l.source.Timeline().IndexAtOrAfter(time.Unix(unix, 0)), l.first)
}

// Unix returns the name of the second with this index of the timeline, or the name of the next second that has one. It
// is the inverse of Index.
func (l *Line) Unix(index int64) int64 { return l.source.Timeline().WallTimeAtOrAfter(index).Unix() }
