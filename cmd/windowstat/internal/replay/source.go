package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// errNoDuration is wrong with a line of a log whose other lines have one.
var errNoDuration = errors.New("it has no duration, and others do")

// source is one log that is replayed.
type source struct {
	name   string
	format *accesslog.Format
	timed  bool  // its lines have durations
	first  int64 // the time of its first line

	kept    *input // if it cannot be opened again
	batches chan *batch
	ids     []int32 // of its names
	batch   *batch  // that is being taken
	next    int     // item of it
	latest  int64   // time of the last one
}

// sampleLines is how many lines are looked at to tell what a log is.
const sampleLines = 200

// look opens a log and finds out about it, from as many lines as are wanted for a sample. A log without a line that can be read is an error, but for an empty one: that
// has no format.
func look(name string, stdin io.Reader, format *accesslog.Format, zone *time.Location, read *atomic.Int64, sample int) (*source, int64, error) {
	in, err := open(name, stdin, read)
	if err != nil {
		return nil, 0, err
	}
	s := &source{name: name, format: format}
	head := make([]byte, 0, blockSize)
	for len(head) < cap(head) && bytes.Count(head, []byte("\n")) < sample {
		n, err := in.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if err != nil {
			break // reading it again meets the same error
		}
	}
	err = s.judge(head, zone)
	if in.size > 0 && name != "-" {
		read.Store(0)
		return s, in.size, errors.Join(err, in.close())
	}
	in.Reader = io.MultiReader(bytes.NewReader(head), in.Reader)
	s.kept = in
	return s, 0, err
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
	if s.format == nil {
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
		if at := rec.Time.UnixNano(); s.first == 0 || at < s.first {
			s.first = at
		}
		s.timed = s.timed || rec.HasDuration
	}
	return nil
}

// start begins to read the log, ahead of whoever takes its batches.
func (s *source) start(ctx context.Context, o *Options, timed bool, read *atomic.Int64) {
	s.batches = make(chan *batch, 2)
	s.latest = s.first
	raw := make(chan block, 2)
	free := make(chan []byte, 4)
	var failed error // set before raw is closed
	go func() {
		defer close(raw)
		failed = s.read(ctx, raw, free, o.Stdin, read)
	}()
	go func() {
		defer close(s.batches)
		p := &lineParser{Parser: s.format.NewParser(o.Zone), file: s.name, names: newNames(o.Depth), timed: timed}
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
		}
		if failed != nil {
			send(&batch{err: fmt.Errorf("%s: %w", s.name, failed)})
		}
	}()
}

// read hands on the log's blocks.
func (s *source) read(ctx context.Context, to chan<- block, free <-chan []byte, stdin io.Reader, read *atomic.Int64) (err error) {
	in := s.kept
	if in == nil {
		if in, err = open(s.name, stdin, read); err != nil {
			return err
		}
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

// item is the next line, nil if there are no more.
func (s *source) item(take func(*source, *batch)) *item {
	for s.batch == nil || s.next == len(s.batch.items) {
		b, ok := <-s.batches
		if !ok {
			return nil
		}
		take(s, b)
		s.batch, s.next = b, 0
	}
	it := &s.batch.items[s.next]
	s.next++
	return it
}
