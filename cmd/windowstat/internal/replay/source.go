package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// source is one log that is replayed.
type source struct {
	name   string
	format *accesslog.Format
	timed  bool   // its lines have durations
	doubt  string // what may be wrong with how it is read
	first  int64  // the time of its first line

	packed  bool
	size    int64  // in bytes on the disk, 0 if unknown
	kept    *input // if it cannot be opened again: a Follower reads it, and Run makes a spool of it
	spool   *spool
	from    int64 // its first line, 0 or where a part of the log begins
	to      int64 // the line behind its last
	batches chan *batch
	ids     []int32 // of its names
	items   []item  // read and not yet taken
	head    *item   // the next one, nil if there is none
	latest  int64   // the latest time so far, including the head's
}

// sampleLines is how many lines are inspected to detect a log's format.
const sampleLines = 200

// inspect opens a log and finds out about it from some lines; from the first line if the log is a stream that grows. A log
// without a readable line is an error, unless it is empty: then it has no format.
func inspect(name string, stdin io.Reader, format *accesslog.Format, zone *time.Location, read *atomic.Int64, grows bool) (*source, error) {
	in, err := open(name, stdin, read)
	if err != nil {
		return nil, err
	}
	s := &source{name: name, format: format, packed: in.packed, size: in.size, to: math.MaxInt64}
	sample := sampleLines
	if grows && !in.again {
		sample = 1
	}
	head := make([]byte, 0, blockSize)
	for len(head) < cap(head) && bytes.Count(head, []byte("\n")) < sample {
		n, err := in.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if err != nil {
			break // reading it again meets the same error
		}
	}
	err = s.judge(head, zone)
	if in.again {
		read.Store(0)
		return s, errors.Join(err, in.close())
	}
	in.Reader = io.MultiReader(bytes.NewReader(head), in.Reader)
	s.kept = in
	return s, err
}

// judge finds the format, the time of the first line, and whether lines have durations.
func (s *source) judge(head []byte, zone *time.Location) error {
	lines := bytes.SplitAfter(head, []byte("\n"))
	if n := len(lines); n > 1 {
		lines = lines[:n-1] // it may be cut off
	}
	if len(bytes.TrimSpace(head)) == 0 {
		s.format = nil
		return nil
	}
	guessed := s.format == nil
	if guessed {
		format, err := accesslog.Detect(lines)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.format = format
	}
	p := s.format.NewParser(zone)
	var rec accesslog.Record
	for _, line := range lines {
		if p.Parse(line, &rec) != nil {
			continue
		}
		if at := nanosOf(rec.Time); s.first == 0 || at < s.first {
			s.first = at
		}
		s.timed = s.timed || rec.HasDuration
		if s.doubt == "" {
			s.doubt = s.doubted(line, guessed)
		}
	}
	return nil
}

// doubted is what may be wrong with how a line is read.
func (s *source) doubted(line []byte, guessed bool) string {
	const most = 120
	if unread := s.format.Unread(line); len(unread) > 0 {
		return fmt.Sprintf("%s is read as %s, and what stands behind that is not: %.*q; if the duration is there, say so with --nginx-format or --apache-format",
			s.name, s.format, most, unread)
	}
	if guessed && s.format.UnitUnknown(line) {
		return fmt.Sprintf("%s does not tell the unit of its durations, which are taken for seconds: %.*q; --format=json says that they are, json-ms, json-us or json-ns that they are not",
			s.name, most, bytes.TrimSpace(line))
	}
	return ""
}

// start reads the log in goroutines, a few batches ahead.
func (s *source) start(ctx context.Context, r *run) {
	o, timed := &r.Options, r.Timed
	reading, end := context.WithCancel(ctx)
	s.batches = make(chan *batch, 2)
	s.latest = s.first
	raw := make(chan block, 2)
	free := make(chan []byte, 4)
	var failed error // set before raw is closed
	go func() {
		defer close(raw)
		failed = s.read(reading, raw, free, &r.read)
	}()
	go func() {
		defer close(s.batches)
		defer end()
		p := &lineParser{Parser: s.format.NewParser(o.Zone), file: s.name, names: r.newNames(), timed: timed, from: s.from, to: s.to}
		send := func(b *batch) bool {
			select {
			case s.batches <- b:
				return true
			case <-ctx.Done():
				return false
			}
		}
		for x := range raw {
			b := &batch{items: make([]item, 0, len(x.data)/128)}
			p.parse(x, b)
			select {
			case free <- x.data:
			default:
			}
			if !send(b) {
				return
			}
			if p.line > s.to {
				end()
			}
		}
		if failed != nil {
			send(&batch{err: fmt.Errorf("%s: %w", s.name, failed)})
		}
	}()
}

// keep makes a source that can be read once one that can be read again.
func (s *source) keep() (err error) {
	in := s.kept
	s.kept = nil
	s.spool, err = newSpool(in)
	return errors.Join(err, in.close())
}

// open opens the log again.
func (s *source) open(read *atomic.Int64) (*input, error) {
	if s.spool != nil {
		return s.spool.open()
	}
	return open(s.name, nil, read)
}

// read sends the log's blocks.
func (s *source) read(ctx context.Context, to chan<- block, free <-chan []byte, read *atomic.Int64) (err error) {
	in, err := s.open(read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	for all := (blocks{r: in}); ; {
		var buf []byte
		select {
		case buf = <-free:
		default:
		}
		x, err := all.next(buf)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		select {
		case to <- x:
		case <-ctx.Done():
			return nil
		}
	}
}

// witnesses is how many lines decide whether the one before them is an outlier.
const witnesses = 10

// advance goes on to the next line that is not from the future and no outlier. An outlier is ahead of the lines before it by
// more than the tolerance, and most of those behind it are not.
func (s *source) advance(r *run) {
	if s.head != nil {
		s.items = s.items[1:]
	}
	for s.has(1, r) {
		s.head = &s.items[0]
		switch {
		case s.head.stamp > r.present:
			r.Future++
		case s.head.stamp > s.latest+int64(r.Tolerance) && s.outlier(r):
			r.Outliers++
		default:
			s.latest = max(s.latest, s.head.stamp)
			return
		}
		s.items = s.items[1:]
	}
	s.head = nil
}

// outlier reports whether most of the lines behind the first are earlier by more than the tolerance.
func (s *source) outlier(r *run) bool {
	s.has(1+witnesses, r)
	behind := s.items[1:min(len(s.items), 1+witnesses)]
	earlier := 0
	for i := range behind {
		if behind[i].stamp < s.items[0].stamp-int64(r.Tolerance) {
			earlier++
		}
	}
	return 2*earlier > len(behind)
}

// has waits until n lines are read, and reports whether there are so many.
func (s *source) has(n int, r *run) bool {
	for len(s.items) < n {
		var b *batch
		select {
		case b = <-s.batches:
		case <-r.ended: // nobody may write to it any more
		}
		if b == nil {
			return false
		}
		r.batch(s, b)
		if len(s.items) == 0 {
			s.items = b.items
		} else {
			s.items = append(s.items[:len(s.items):len(s.items)], b.items...)
		}
	}
	return true
}
