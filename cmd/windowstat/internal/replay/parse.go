package replay

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// item is a parsed line.
type item struct {
	stamp    int64 // Unix nanoseconds
	duration int64 // nanoseconds; unknown if the log does not say
	name     int32
	status   int16
	unearned bool // its name is not earned
	end      bool // the stamp is the end of the call
	coarse   bool // the stamp has no fraction of a second
}

// batch is a parsed block.
type batch struct {
	items     []item
	names     []string // new ones
	lines     int64    // all, malformed ones included
	malformed int64
	untold    int64
	examples  []Example // of malformed lines
	err       error     // why reading ended
}

// Example is a malformed line.
type Example struct {
	File string
	Line int64
	Text string // its beginning
	Err  error
}

// maxExamples is how many malformed lines of each log are kept.
const maxExamples = 3

// lineParser parses lines into items.
type lineParser struct {
	*accesslog.Parser
	file  string
	names *names
	timed bool
	line  int64 // number of the last one
	from  int64 // lines up to this one are skipped
	to    int64 // and those behind this one
	shown int
	rec   accesslog.Record
}

// parse parses the lines of a block into a batch.
func (p *lineParser) parse(x block, b *batch) {
	b.untold -= p.Untold()
	defer func() { b.untold += p.Untold() }()
	if p.line >= p.from && p.line < p.to {
		b.lines += int64(x.long)
		b.malformed += int64(x.long)
	}
	p.line += int64(x.long)
	for rest := x.data; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 {
			end = len(rest)
		}
		line := rest[:end]
		rest = rest[end:]
		if p.line++; p.line <= p.from || p.line > p.to {
			continue
		}
		b.lines++
		err := p.Parse(line, &p.rec)
		if err == nil {
			err = p.check()
		}
		if err != nil {
			b.malformed++
			if p.shown < maxExamples {
				p.shown++
				b.examples = append(b.examples, Example{p.file, p.line, string(line[:min(len(line), 200)]), err})
			}
			continue
		}
		name, unearned := p.names.id(&p.rec)
		it := item{
			stamp: nanosOf(p.rec.Time), duration: unknown, name: name, unearned: unearned,
			status: int16(p.rec.Status), end: p.rec.Stamp == accesslog.End, coarse: p.rec.Coarse,
		}
		if p.timed {
			it.duration = int64(p.rec.Duration)
		}
		b.items = append(b.items, it)
	}
	b.names = append(b.names, p.names.list[p.names.sent:]...)
	p.names.sent = len(p.names.list)
}

// longestCall is the longest duration of a call that is stamped with its beginning: each second of it costs a record.
const longestCall = 24 * time.Hour

// The errors of lines with impossible times and durations.
var (
	errNoDuration = errors.New("it has no duration, and others do")
	errTooLong    = fmt.Errorf("it says that the call took more than %v", longestCall)
	errTooOld     = errors.New("it is of a time before 1970")
)

// check returns what is wrong with a line that could be parsed.
func (p *lineParser) check() error {
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

// nanosOf returns Unix nanoseconds; times beyond the range are the last one in it.
func nanosOf(t time.Time) int64 {
	if t.Unix() >= math.MaxInt64/nanos {
		return math.MaxInt64
	}
	return t.UnixNano()
}
