package replay

import (
	"io"
	"time"
)

// stream reads a log from a pipe, such as stdin. A pipe does not tell that it is empty: if nothing comes for a while, the
// stream assumes that nothing is on its way.
type stream struct {
	read  chan block
	ended error     // set before read is closed
	empty time.Time // nothing has come since
	upTo  time.Time
}

// newStream starts a goroutine that reads until the log ends, and calls changed when there is something.
func newStream(r io.Reader, changed func()) *stream {
	s := &stream{read: make(chan block, 1), upTo: time.Unix(0, 0)}
	go func() {
		defer changed()
		defer close(s.read)
		for all := (blocks{r: r}); ; {
			x, err := all.next(nil)
			if err != nil {
				s.ended = err
				return
			}
			s.read <- x
			changed()
		}
	}()
	return s
}

// look returns whole lines, or, if there are none, the time up to which nothing has come. At the end the error is io.EOF.
func (s *stream) look(now time.Time) (block, error) {
	select {
	case x, ok := <-s.read:
		s.empty = time.Time{}
		if !ok {
			return x, s.ended
		}
		return x, nil
	default:
	}
	switch {
	case s.empty.IsZero():
		s.empty = now
	case now.Sub(s.empty) >= poll:
		s.upTo, s.empty = s.empty, now
	}
	return block{upTo: s.upTo}, nil
}
