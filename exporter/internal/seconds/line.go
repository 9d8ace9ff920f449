package seconds

import (
	"fmt"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Line is the line of sealed seconds that consumers move along. A second is known by its name, its Unix time, which outlives the
// process: those before [Line.First] were counted by earlier processes, and only a metric log has them. It is safe for concurrent
// use.
type Line struct {
	stats *collector.Collector
	first int64 // index of the first second of this process
}

// NewLine makes the line of a Collector.
func NewLine(c *collector.Collector) *Line { return &Line{c, c.Tree().View().Node().Since()} }

// First is the first second of this process.
func (l *Line) First() int64 { return l.Unix(l.first) }

// Open is the second that is open now, or the next one that will have a name. It seals nothing.
func (l *Line) Open() int64 {
	line := l.stats.Timeline()
	return l.Unix(line.At(line.Now()).Index)
}

// Sealed seals all seconds that are over, and returns the second before which all of the streams have them.
func (l *Line) Sealed(streams []Stream) int64 {
	open := l.Unix(l.stats.Seal().Open)
	for _, stream := range streams {
		open = stream.Sealed(open)
	}
	return open
}

// Oldest is the oldest second that the Collector's history has, or would have: those before it are not kept, but for the log.
func (l *Line) Oldest() int64 { return l.Before(l.Open(), int64(l.stats.History()/time.Second)) }

// Before is n seconds before unix. Seconds that a step of the clock skipped do not count.
func (l *Line) Before(unix, n int64) int64 { return l.name(l.ordinal(unix) - n) }

// After is n seconds after unix. Seconds that a step of the clock skipped do not count.
func (l *Line) After(unix, n int64) int64 { return l.name(l.ordinal(unix) + n) }

// Count is how many seconds there are from one to before another; 0 if there are none.
func (l *Line) Count(from, to int64) int64 { return max(l.ordinal(to)-l.ordinal(from), 0) }

// ordinal numbers all seconds: those of this process by their index, and those of earlier ones before that, as if the clock had skipped none
// of them.
func (l *Line) ordinal(unix int64) int64 {
	first := l.First()
	return l.Index(max(unix, first)) - max(first-unix, 0)
}

// name is the second with an ordinal.
func (l *Line) name(ordinal int64) int64 {
	first := l.ordinal(l.First())
	return l.Unix(max(ordinal, first)) - max(first-ordinal, 0)
}

// Index is the index of the first second of this process that is not before unix.
func (l *Line) Index(unix int64) int64 {
	return max(l.stats.Timeline().IndexAtOrAfter(time.Unix(unix, 0)), l.first)
}

// Unix is the name of the second with this index of the timeline, or of the first one after it that has a name: the inverse of Index.
func (l *Line) Unix(index int64) int64 { return l.stats.Timeline().WallTimeAtOrAfter(index).Unix() }

// Position is how far a consumer of sealed seconds is: the cursor of a scraper, or a push. Seconds are Unix times, so
// that a position outlives its process: it is saved before seconds are sent and after that.
type Position struct {
	// Next is the first second to send: what is before it is settled.
	Next int64
	// Doubt is the second before which seconds may have been received: those from Next on and before it are sent again. It is not
	// after Next if there are none.
	Doubt int64 `json:",omitempty"`
}

// Settle records that everything before a second is settled: received, refused, or given up.
func (p *Position) Settle(before int64) { p.Next = max(p.Next, before) }

// InDoubt reports whether some seconds may have been received.
func (p *Position) InDoubt() bool { return p.Doubt > p.Next }

// Expire moves the position to the oldest second that there is, and returns how many seconds are lost by that.
func (p *Position) Expire(line *Line, oldest int64) (lost int64) {
	lost = line.Count(p.Next, oldest)
	p.Settle(oldest)
	return lost
}

// What a position in a file may be.
const (
	maxDoubt = 24 * 60 * 60 // seconds
	// MaxAhead is how many seconds a position may be ahead of the process that reads it: the clock was set back.
	MaxAhead = 5 * 60
)

// Check returns what is wrong with a position that was read by a process whose first second is first.
func (p *Position) Check(first int64) error {
	switch {
	case p.Next <= 0 || p.Doubt < 0 || p.Doubt-p.Next > maxDoubt:
		return fmt.Errorf("it is no position: next is %d, and before %d is in doubt", p.Next, p.Doubt)
	case max(p.Next, p.Doubt) > first+MaxAhead:
		return fmt.Errorf("it is of the future: %v", time.Unix(max(p.Next, p.Doubt), 0).UTC())
	}
	return nil
}
