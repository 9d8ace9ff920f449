package replay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
)

// log is one of the logs that are replayed, whether it ends or grows: what its first lines tell, where more of it comes from, and
// what was read and not yet taken.
//
// It is in one of four states, which advance goes by: its next item is to be taken (ready), more must be read to tell (none of the
// others), nothing is there now (upTo, of a log that grows), or nothing will be (ended).
type log struct {
	name string
	sample
	input  input     // nil until it is opened, of a log that ends
	ended  bool      // there will be no more
	upTo   time.Time // nothing is there now: all lines written before were returned; zero if there may be more
	parser *accesslog.Parser
	line   int64 // number of the last one
	shown  int   // malformed ones

	items  []item // read
	next   int    // the first of them that is not yet taken
	ready  bool   // it is to be taken
	latest int64  // the latest time so far, with that of the next item
	count  *Behind
}

// input is where the lines of a log come from.
type input interface {
	// look returns whole lines, which are valid until the next call. If there are none now, the block has the time up to which all lines
	// were returned. At the end the error is io.EOF.
	look() (block, error)
	close() error
}

// item is a parsed line. It has no pointers, so that a million of them cost the garbage collector nothing: the name is a number.
type item struct {
	stamp    int64 // Unix nanoseconds
	duration int64 // nanoseconds; unknown if the log does not say
	name     int32
	status   int16
	unearned bool // its name is not earned
	end      bool // the stamp is the end of the call
	coarse   bool // the stamp has no fraction of a second
}

// newLog makes a log, of the format that is given or that the other logs have.
func (r *Follower) newLog(name string) *log {
	return &log{name: name, sample: sample{format: r.Format}, count: &Behind{Log: name}}
}

// parse parses and counts the lines of a block.
func (r *Follower) parse(l *log, x block) {
	now := time.Now()
	r.present, r.names.present = now.Add(r.Tolerance).UnixNano(), now.Unix()
	r.counts.Cut += x.cut
	if x.truncated {
		r.counts.Truncated++
	}
	if l.parser == nil && !r.begin(l, x) {
		return
	}
	// Those that are not yet taken are few: settle wants to see those behind them.
	l.items, l.next = append(l.items[:0], l.items[l.next:]...), 0
	// The previous process has counted the lines of its last seconds. If the last line of a block is one of those, all are, as far as times
	// show: what is wrong with them was reported, and is not reported again.
	was, malformed, examples := len(l.items), r.counts.Malformed, len(r.counts.Examples)
	ambiguous := l.parser.Ambiguous()
	lines := int64(x.long)
	r.counts.Malformed += lines
	l.line += lines
	var rec accesslog.Record
	for line := range bytes.Lines(x.data) {
		l.line++
		err := l.parser.Parse(line, &rec)
		if err == accesslog.ErrPartial {
			continue // the next one has the rest
		}
		lines++
		if err == nil {
			err = r.impossible(&rec)
		}
		if err != nil {
			r.malformed(l, line, err)
			continue
		}
		it := item{
			stamp: nanosOf(rec.Time), duration: timeline.Unknown, status: int16(rec.Status), end: rec.Stamp == accesslog.End, coarse: rec.Coarse,
		}
		it.name, it.unearned = r.names.id(&rec)
		if r.counts.Timed {
			it.duration = int64(rec.Duration)
		}
		l.items = append(l.items, it)
	}
	if n := len(l.items); n > was && l.items[n-1].stamp < r.after*nanos { // the previous process has reported the others
		lines, r.counts.Malformed, r.counts.Examples = int64(n-was), malformed, r.counts.Examples[:examples]
	}
	r.counts.Ambiguous += l.parser.Ambiguous() - ambiguous
	r.counts.Lines += lines
	l.count.Lines += lines
}

// begin makes the parser of a log when there is a line.
func (r *Follower) begin(l *log, x block) bool {
	if len(x.data) == 0 && x.long == 0 {
		return false
	}
	if l.format == nil {
		l.sample = judge(x.data, l.name, nil, r.Zone)
		r.note(l.doubt)
	}
	l.format = cmp.Or(l.format, r.Format)
	l.parser = l.format.NewParser(r.Zone)
	return true
}

// malformed counts a line that cannot be read.
func (r *Follower) malformed(l *log, line []byte, err error) {
	r.counts.Malformed++
	if l.shown < maxExamples && len(r.counts.Examples) < allExamples {
		l.shown++
		r.counts.Examples = append(r.counts.Examples, Example{l.name, l.line, string(line[:min(len(line), 200)]), err})
	}
}

// longestCall is the longest duration of a call that is stamped with its beginning: each second of it costs a record.
const longestCall = 24 * time.Hour

// The errors of lines with impossible times and durations.
var (
	errNoDuration = errors.New("it has no duration, and others do")
	errTooLong    = fmt.Errorf("it says that the call took more than %v", longestCall)
	errTooOld     = errors.New("it is of a time before 1970")
	errCutOff     = errors.New("the rest of a line that a container's runtime has split is missing")
)

// impossible returns what is wrong with a line that could be parsed.
func (r *Follower) impossible(rec *accesslog.Record) error {
	switch {
	case rec.Time.Unix() < 1:
		return errTooOld
	case r.counts.Timed && !rec.HasDuration:
		return errNoDuration
	case r.counts.Timed && rec.Stamp == accesslog.Start && rec.Duration > longestCall:
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

// sample is what the first lines of a log show. Formats are recognised, and logs are put in order, by these: they are read before anything else,
// and again with all others, so that each line is counted in one way.
type sample struct {
	format *accesslog.Format // nil until a line tells it
	timed  bool              // the lines have durations
	first  int64             // the earliest time, 0 if none could be read
	last   int64             // the latest one
	doubt  string            // what may be wrong with how they are read
	packed bool              // the file
	start  fingerprint       // its first bytes
	err    error             // why no format is recognised
}

// sampleLines is how many lines are inspected to detect a log's format.
const sampleLines = 200

// firstLines finds out about a log from its first lines. A file that can be opened again is closed: of many logs few are open at a
// time. Any other one, such as a pipe, is returned, and what is read from it begins with these lines. The error is that of opening
// it; what is wrong with its lines is in the sample.
func (r *Follower) firstLines(name string, lines int) (s sample, pipe *file, err error) {
	f, err := open(name, r.Stdin)
	if err != nil {
		return s, nil, err
	}
	head := make([]byte, 0, blockSize)
	for len(head) < cap(head) && bytes.Count(head, []byte("\n")) < lines {
		n, err := f.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if err != nil {
			break // reading it again meets the same error
		}
	}
	s = judge(head, name, r.Format, r.Zone)
	s.packed, s.start = f.packed, f.start
	if f.regular {
		return s, nil, f.close()
	}
	f.Reader = io.MultiReader(bytes.NewReader(head), f.Reader)
	return s, f, nil
}

// judge finds the format, unless it is given, the earliest time, and whether lines have durations. Without a line there is no format,
// and no error.
func judge(head []byte, name string, format *accesslog.Format, zone *time.Location) (s sample) {
	lines := bytes.SplitAfter(head, []byte("\n"))
	if n := len(lines); n > 1 {
		lines = lines[:n-1] // it may be cut off
	}
	if len(bytes.TrimSpace(head)) == 0 {
		return s
	}
	if s.format = format; format == nil {
		var err error
		if s.format, err = accesslog.Detect(lines); err != nil {
			s.err = fmt.Errorf("%s: %w", name, err)
			return s
		}
	}
	p := s.format.NewParser(zone)
	var rec accesslog.Record
	for _, line := range lines {
		if p.Parse(line, &rec) != nil {
			continue
		}
		at := nanosOf(rec.Time)
		if s.first == 0 || at < s.first {
			s.first = at
		}
		s.last = max(s.last, at)
		s.timed = s.timed || rec.HasDuration
		if s.doubt == "" {
			s.doubt = doubted(name, s.format, line, format == nil)
		}
	}
	return s
}

// doubted is what may be wrong with how a line is read.
func doubted(name string, format *accesslog.Format, line []byte, guessed bool) string {
	const most = 120
	if unread := format.Unread(line); len(unread) > 0 {
		return fmt.Sprintf("%s is read as %s, and what stands behind that is not: %.*q; if the duration is there, say so with --nginx-format or --apache-format",
			name, format, most, unread)
	}
	if guessed && format.UnitUnknown(line) {
		return fmt.Sprintf("%s does not tell the unit of its durations, which are taken for seconds: %.*q; --format=json says that they are, json-ms, json-us or json-ns that they are not",
			name, most, bytes.TrimSpace(line))
	}
	return ""
}

// note says what may be wrong with a log.
func (r *Follower) note(doubt string) {
	if doubt != "" && r.Note != nil {
		r.Note(doubt)
	}
}
