package replay

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// item is a line, as it was logged.
type item struct {
	stamp  int64 // Unix nanoseconds
	took   int64 // unknown if the log does not say
	name   int32
	status int16
	end    bool // the stamp is that of the end
	coarse bool // the stamp is a whole second, for want of a fraction
}

// batch is what was read of a log at a time.
type batch struct {
	items     []item
	names     []string // that are new
	lines     int64    // all of them
	malformed int64
	examples  []Example // of malformed lines
	err       error     // that ended the log
}

// Example is a line that could not be read.
type Example struct {
	File string
	Line int64
	Text string // its beginning
	Err  error
}

// mostExamples is how many lines of each log are kept that could not be read.
const mostExamples = 3

// lineParser makes items of lines.
type lineParser struct {
	*accesslog.Parser
	file  string
	names *names
	timed bool
	line  int64 // number of the last one
	shown int
	sent  int // names that are known to whoever gets the batches
	rec   accesslog.Record
}

// parse adds the lines of a block to a batch.
func (p *lineParser) parse(x block, b *batch) {
	b.lines += int64(x.long)
	p.line += int64(x.long)
	b.malformed += int64(x.long)
	for rest := x.data; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 {
			end = len(rest)
		}
		line := rest[:end]
		rest = rest[end:]
		p.line++
		b.lines++
		err := p.Parse(line, &p.rec)
		if err == nil {
			err = p.doubt()
		}
		if err != nil {
			b.malformed++
			if p.shown < mostExamples {
				p.shown++
				b.examples = append(b.examples, Example{p.file, p.line, string(line[:min(len(line), 200)]), err})
			}
			continue
		}
		it := item{
			stamp: nanosOf(p.rec.Time), took: unknown, name: p.names.of(p.rec.Method, p.rec.Target),
			status: int16(p.rec.Status), end: p.rec.Stamp == accesslog.End, coarse: p.rec.Coarse,
		}
		if p.timed {
			it.took = int64(p.rec.Duration)
		}
		b.items = append(b.items, it)
	}
	b.names = append(b.names, p.names.list[p.sent:]...)
	p.sent = len(p.names.list)
}

// longestCall is how long a call may take that is stamped with its beginning: it is in flight in all of these seconds.
const longestCall = 24 * time.Hour

// What is wrong with lines of times and durations that cannot be.
var (
	errNoDuration = errors.New("it has no duration, and others do")
	errTooLong    = fmt.Errorf("it says that the call took more than %v", longestCall)
	errTooOld     = errors.New("it is of a time before 1970")
)

// doubt says what is wrong with a line although it can be read.
func (p *lineParser) doubt() error {
	switch {
	case p.rec.Time.Unix() < 1:
		return errTooOld
	case p.timed && !p.rec.HasDuration:
		return errNoDuration
	case p.timed && p.rec.Stamp == accesslog.Start && p.rec.Duration > longestCall:
		return errTooLong
	}
	return nil
}

// nanosOf is a time since 1970, the last one there is for any after it.
func nanosOf(t time.Time) int64 {
	if t.Unix() >= math.MaxInt64/nanos {
		return math.MaxInt64
	}
	return t.UnixNano()
}
