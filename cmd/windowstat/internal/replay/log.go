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

// log is a log that is replayed. It ends or grows. It holds the results of inspecting its first lines, the input, and
// the items that were read but not taken.
//
// A log is in one of four states. advance tests the fields in this order:
//
//	state                 fields             next step
//	item can be taken     ready              take it, if no other log has an earlier time
//	ended                 ended              remove the log when all logs have ended or have no lines
//	nothing now           upTo is not zero   poll it again in the next round; only logs that grow
//	must be read          none of them       fill
//
// settle decides about ready. It needs some of the following items, so a log can have items and must still be read.
type log struct {
	name string
	sample
	input  input     // nil for a log that ends and is not open yet
	ended  bool      // all lines were read
	upTo   time.Time // all lines written before upTo were returned; zero if more can be read now
	parser *accesslog.Parser
	line   int64 // number of the last line
	shown  int   // malformed lines that are shown

	items  []item // lines that were read
	next   int    // index of the first item that is not taken
	ready  bool   // the next item can be taken
	latest int64  // the latest time up to the next item
	count  *Behind
}

// input provides the lines of a log.
type input interface {
	// look returns a block of complete lines, valid until the next call. An empty block with a time upTo means that the
	// log has no new lines, and that all lines written before upTo were returned. At the end, the error is io.EOF.
	look() (block, error)
	close() error
}

// item is a parsed line. It contains no pointers, so the garbage collector does not scan the memory of a million items.
// The name is therefore a number, see names.
type item struct {
	stamp    int64 // Unix nanoseconds
	duration int64 // nanoseconds, or timeline.Unknown
	name     int32
	status   int16
	grpc     int8 // gRPC status plus 1; 0 for none
	unearned bool // its name is not earned
	end      bool // the stamp is the end of the call
	coarse   bool // the stamp has no fraction of a second
}

// newLog returns a log with the format of the options, or without a format until its lines determine one.
func (r *Follower) newLog(name string) *log {
	return &log{name: name, sample: sample{format: r.Format}, count: &Behind{Log: name}}
}

// parse parses the lines of a block, appends their items to the log, and counts the lines that are not items.
//
// After a restart, a followed log begins before the last second of the metric log. The previous process has counted the
// malformed lines of that part, so parse counts none of them again. It decides for a block as a whole, because lines
// without a time cannot be assigned to a second.
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
	// Keep the few items that are not taken yet: settle needs them together with the new items.
	l.items, l.next = append(l.items[:0], l.items[l.next:]...), 0
	// Remember the counts, to restore them if the whole block belongs to the previous process. Lines are ordered by
	// time, so the last line of the block decides.
	was, malformed, examples, others := len(l.items), r.counts.Malformed, len(r.counts.Examples), r.counts.Others
	ambiguous := l.parser.Ambiguous()
	lines := int64(x.long)
	r.counts.Malformed += lines
	l.line += lines
	var rec accesslog.Record
	for line := range bytes.Lines(x.data) {
		l.line++
		err := l.parser.Parse(line, &rec)
		if err == accesslog.ErrPartial {
			continue // a container's runtime split the line; the next one has the rest
		}
		lines++
		if err == nil {
			err = r.impossible(&rec)
		} else if kind := l.parser.Kind(); kind != accesslog.Call {
			r.counts.Others[kind]++
			continue
		}
		if err != nil {
			r.malformed(l, line, err)
			continue
		}
		it := item{
			stamp: nanosOf(rec.Time), duration: timeline.Unknown, status: int16(rec.Status),
			end: rec.Stamp == accesslog.End, coarse: rec.Coarse,
		}
		if r.outside(rec.Time) {
			r.counts.Outside++
			continue
		}
		if rec.HasGRPC {
			it.grpc = int8(rec.GRPC) + 1 // at most two digits
		}
		it.name, it.unearned = r.names.id(&rec)
		if r.counts.Timed {
			it.duration = int64(rec.Duration)
		}
		l.items = append(l.items, it)
	}
	// The whole block belongs to the previous process. Its items stay, because counted decides about each of them.
	if n := len(l.items); n > was && l.items[n-1].stamp < r.after*nanos {
		lines, r.counts.Malformed, r.counts.Others = int64(n-was), malformed, others
		r.counts.Examples = r.counts.Examples[:examples]
	}
	r.counts.Ambiguous += l.parser.Ambiguous() - ambiguous
	r.counts.Lines += lines
	l.count.Lines += lines - (sum(r.counts.Others) - sum(others))
}

// begin creates the parser of a log when the log has its first line. It reports false if x has no line.
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

// malformed counts a line that looks like a call and cannot be parsed. It keeps the first of them as examples.
func (r *Follower) malformed(l *log, line []byte, err error) {
	r.counts.Malformed++
	if l.shown < maxExamples && len(r.counts.Examples) < allExamples {
		l.shown++
		r.counts.Examples = append(r.counts.Examples, Example{l.name, l.line, string(line[:min(len(line), 200)]), err})
	}
}

// longestCall is the maximum duration of a call that is logged with the time of its start. Such a line arrives at the
// end of the call, and the replay needs a record for each second of the call.
const longestCall = 24 * time.Hour

// The errors of lines with impossible times and durations.
var (
	errNoDuration = errors.New("it has no duration, and others do")
	errTooLong    = fmt.Errorf("it says that the call took more than %v", longestCall)
	errTooOld     = errors.New("it is of a time before 1970")
	errCutOff     = errors.New("the rest of a line that a container's runtime has split is missing")
)

// impossible returns an error if a record has an impossible time or duration, and nil otherwise.
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

// outside reports whether a time is outside of the range of [Options].
func (o *Options) outside(t time.Time) bool {
	return t.Before(o.From) || !o.To.IsZero() && t.Unix() > o.To.Unix()
}

// nanosOf returns the Unix nanoseconds of t. It clamps times beyond the range of int64 to its end.
func nanosOf(t time.Time) int64 {
	if t.Unix() >= math.MaxInt64/nanos {
		return math.MaxInt64
	}
	return t.UnixNano()
}

// sample holds the results of inspecting the first lines of a log. They determine its format and its position among the
// logs. The lines are inspected before the replay starts; the replay then reads them again with all others, so every
// line is counted in the same way.
type sample struct {
	format *accesslog.Format // nil until a line determines it
	timed  bool              // the lines have durations
	first  int64             // the earliest time; 0 if no line could be read
	last   int64             // the latest time
	doubt  string            // text about lines that may be read incorrectly
	packed bool              // the file is compressed
	start  fingerprint       // the first bytes of the file
	err    error             // of detecting the format
}

// sampleLines is the number of lines that are inspected to detect the format of a log.
const sampleLines = 200

// firstLines inspects the first lines of a log. It reads further lines until one of them is a call, up to blockSize
// bytes. It closes regular files, because the replay can open them again and many logs may be waiting. It returns any
// other file, such as a pipe, with the inspected lines put back. The error is from opening the file; an error of
// detecting the format is in the sample.
func (r *Follower) firstLines(name string, lines int) (s sample, pipe *file, err error) {
	f, err := open(name, r.Stdin)
	if err != nil {
		return s, nil, err
	}
	head := make([]byte, 0, blockSize)
	for ended := false; s.first == 0 && !ended && len(head) < cap(head); lines *= 2 {
		for !ended && len(head) < cap(head) && bytes.Count(head, []byte("\n")) < lines {
			n, err := f.Read(head[len(head):cap(head)])
			head, ended = head[:len(head)+n], err != nil // a later read returns the error again
			head = dropHoles(head)                       // a hole may be longer than all lines that are inspected
		}
		s = judge(head, name, r.Format, r.Zone)
	}
	s.packed, s.start = f.packed, f.start
	if f.regular {
		return s, nil, f.close()
	}
	f.Reader = io.MultiReader(bytes.NewReader(head), f.Reader)
	return s, f, nil
}

// judge finds the format of the lines unless format is given, their earliest and latest time, and whether they have
// durations. Without a line it returns neither a format nor an error.
func judge(head []byte, name string, format *accesslog.Format, zone *time.Location) (s sample) {
	lines := bytes.SplitAfter(head, []byte("\n"))
	if n := len(lines); n > 1 {
		lines = lines[:n-1] // the last line may be cut off
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

// doubted returns a message about a part of the line that may be read incorrectly, or "" if there is no doubt.
func doubted(name string, format *accesslog.Format, line []byte, guessed bool) string {
	const most = 120
	if unread := format.Unread(line); len(unread) > 0 {
		return fmt.Sprintf("%s is read as %s, without the rest of its lines: %.*q; "+
			"if the duration is there, give its position with --nginx-format or --apache-format",
			name, format, most, unread)
	}
	if guessed && format.UnitUnknown(line) {
		return fmt.Sprintf("%s has no unit for its durations, which are read as seconds: %.*q; "+
			"set --format=json (seconds), json-ms, json-us or json-ns", name, most, bytes.TrimSpace(line))
	}
	return ""
}

// note reports a doubt about the format of a log to the user.
func (r *Follower) note(doubt string) {
	if doubt != "" && r.Note != nil {
		r.Note(doubt)
	}
}
