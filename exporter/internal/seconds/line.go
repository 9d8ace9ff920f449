package seconds

import (
	"fmt"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Line is the sequence of sealed seconds that consumers advance along. The name of a second is its Unix time, which
// outlives the process. Seconds before [Line.First] were recorded by earlier processes, and only a metric log has them.
// A Line is safe for concurrent use.
type Line struct {
	stats *collector.Collector
	first int64 // index of the first second of this process
}

// NewLine returns the line of a Collector.
func NewLine(c *collector.Collector) *Line { return &Line{c, c.Tree().View().Node().Since()} }

// First returns the first second of this process.
func (l *Line) First() int64 { return l.Unix(l.first) }

// Open returns the open second, or the next second that will have a name. It seals nothing.
func (l *Line) Open() int64 {
	line := l.stats.Timeline()
	return l.Unix(line.At(line.Now()).Index)
}

// Sealed seals all seconds that have ended. It returns the first second that is not sealed yet in one of the streams.
func (l *Line) Sealed(streams []Stream) int64 {
	open := l.Unix(l.stats.Seal().Open)
	for _, stream := range streams {
		open = stream.Sealed(open)
	}
	return open
}

// Oldest returns the oldest second that the Collector's history covers. Older seconds exist only in the metric log.
func (l *Line) Oldest() int64 { return l.Before(l.Open(), int64(l.stats.History()/time.Second)) }

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
	return max(l.stats.Timeline().IndexAtOrAfter(time.Unix(unix, 0)), l.first)
}

// Unix returns the name of the second with this index of the timeline, or the name of the next second that has one. It
// is the inverse of Index.
func (l *Line) Unix(index int64) int64 { return l.stats.Timeline().WallTimeAtOrAfter(index).Unix() }

// Position records how far a consumer of sealed seconds has got: the cursor of a scraper, or a push. Seconds are Unix
// times, so a position outlives its process. It is saved before seconds are sent and after they are settled.
type Position struct {
	// Next is the first second to send. All seconds before it are settled.
	Next int64
	// Doubt ends the seconds that are in doubt: the seconds in [Next, Doubt) may have been received, and are sent
	// again. If Doubt is at most Next, no second is in doubt.
	Doubt int64 `json:",omitempty"`
}

// Settle records that all seconds before the given one are settled: received, refused, or given up.
func (p *Position) Settle(before int64) { p.Next = max(p.Next, before) }

// InDoubt reports whether any seconds are in doubt: they were sent, and the result is unknown.
func (p *Position) InDoubt() bool { return p.Doubt > p.Next }

// Expire moves the position to oldest, the oldest available second, and returns the number of seconds that are lost.
func (p *Position) Expire(line *Line, oldest int64) (lost int64) {
	lost = line.Count(p.Next, oldest)
	p.Settle(oldest)
	return lost
}

// Bounds of a valid position in a file.
const (
	maxDoubt = 24 * 60 * 60 // seconds
	// MaxAhead is the number of seconds by which a position may be ahead of the process that reads it. A position is
	// ahead if the clock was set back.
	MaxAhead = 5 * 60
)

// Check returns an error if the position is invalid. first is the first second of the process that read it.
func (p *Position) Check(first int64) error {
	switch {
	case p.Next <= 0 || p.Doubt < 0 || p.Doubt-p.Next > maxDoubt:
		return fmt.Errorf("invalid position: next %d, in doubt before %d", p.Next, p.Doubt)
	case max(p.Next, p.Doubt) > first+MaxAhead:
		return fmt.Errorf("position in the future: %v", time.Unix(max(p.Next, p.Doubt), 0).UTC())
	}
	return nil
}
