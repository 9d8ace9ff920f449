package replay

import (
	"io"
	"time"
)

// stream is the input from a file that ends, or from a pipe such as stdin. A goroutine reads ahead. A pipe that is followed does
// not tell that it is empty: if nothing comes for a while, the stream assumes that nothing is on its way.
//
// The buffers go round: a block is valid until the next call of look, and by then its buffer is used again. Fresh ones would cost up to
// a sixth of the processor time of a replay, for memory that is cleared and thrown away.
type stream struct {
	from  *file
	read  chan block
	done  <-chan struct{} // ends the reading, of a file that ends; nil if it is followed
	ended error           // set before read is closed
	heard time.Time       // when something came last
	upTo  time.Time
}

// readAhead is how many blocks wait to be looked at.
const readAhead = 2

// newStream starts a goroutine that reads until the log or the context that has done ends.
func newStream(f *file, done <-chan struct{}) *stream {
	s := &stream{from: f, read: make(chan block, readAhead), done: done, heard: time.Now(), upTo: time.Unix(0, 0)}
	go func() {
		defer close(s.read)
		var data [2 + readAhead][]byte // one is read, one is looked at, and the others wait
		all := blocks{r: f}
		for i := 0; ; i = (i + 1) % len(data) {
			x, err := all.next(data[i])
			if err != nil {
				s.ended = err
				return
			}
			data[i] = x.data
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

// look returns whole lines. It waits for them if the file ends; of one that is followed it returns, if there are none, the time up to
// which nothing has come.
func (s *stream) look() (block, error) {
	if s.done != nil {
		select {
		case x, ok := <-s.read:
			return s.next(x, ok)
		case <-s.done:
			return block{}, io.EOF
		}
	}
	// A block that waits comes before the time: otherwise lines that have come would be late.
	now := time.Now()
	select {
	case x, ok := <-s.read:
		s.heard = now
		return s.next(x, ok)
	default:
	}
	if now.Sub(s.heard) >= poll {
		s.upTo = now.Add(-poll)
	}
	return block{upTo: s.upTo}, nil
}

// next returns a block, or why there is none.
func (s *stream) next(x block, ok bool) (block, error) {
	if !ok {
		return x, s.ended
	}
	return x, nil
}

// close closes a file. A pipe is left to the end of the process, as reading it may block.
func (s *stream) close() error {
	if !s.from.regular {
		return nil
	}
	return s.from.close()
}
