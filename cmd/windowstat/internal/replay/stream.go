package replay

import (
	"io"
	"time"
)

// stream is the input from a file that ends, or from a pipe such as stdin. A goroutine reads ahead. A pipe that is followed does
// not tell that it is empty: if nothing comes for a while, the stream assumes that nothing is on its way.
type stream struct {
	from  *file
	read  chan block
	free  chan []byte
	done  <-chan struct{} // ends the reading
	waits bool            // look waits for a block
	ended error           // set before read is closed
	empty time.Time       // nothing has come since
	upTo  time.Time
}

// newStream starts a goroutine that reads until the log or the context that has done ends.
func newStream(done <-chan struct{}, f *file, waits bool) *stream {
	s := &stream{from: f, read: make(chan block, 2), free: make(chan []byte, 4), done: done, waits: waits, upTo: time.Unix(0, 0)}
	go func() {
		defer close(s.read)
		for all := (blocks{r: f}); ; {
			var buf []byte
			select {
			case buf = <-s.free:
			default:
			}
			x, err := all.next(buf)
			if err != nil {
				s.ended = err
				return
			}
			select {
			case s.read <- x:
			case <-done:
				s.ended = io.EOF
				return
			}
		}
	}()
	return s
}

// look returns whole lines, or, if there are none, the time up to which nothing has come.
func (s *stream) look() (block, error) {
	if s.waits {
		select {
		case x, ok := <-s.read:
			return s.next(x, ok)
		case <-s.done:
			return block{}, io.EOF
		}
	}
	select {
	case x, ok := <-s.read:
		s.empty = time.Time{}
		return s.next(x, ok)
	default:
	}
	now := time.Now()
	switch {
	case s.empty.IsZero():
		s.empty = now
	case now.Sub(s.empty) >= poll:
		s.upTo, s.empty = s.empty, now
	}
	return block{upTo: s.upTo}, nil
}

func (s *stream) next(x block, ok bool) (block, error) {
	if !ok {
		return x, s.ended
	}
	return x, nil
}

func (s *stream) reuse(x block) {
	select {
	case s.free <- x.data:
	default:
	}
}

// close closes a file. A pipe is left to the end of the process, as reading it may block.
func (s *stream) close() error {
	if !s.from.again {
		return nil
	}
	return s.from.close()
}
