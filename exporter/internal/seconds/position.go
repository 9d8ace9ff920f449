package seconds

import (
	"fmt"
	"time"
)

// Position is how far a consumer of sealed seconds is: the cursor of a scraper, or a shard of a push. Seconds are Unix times, so
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
