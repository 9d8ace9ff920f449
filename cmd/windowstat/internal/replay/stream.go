package replay

import (
	"context"
	"io"
	"time"
)

// stream reads a log from a pipe, such as stdin. A pipe does not tell that it is empty: if nothing comes for a while, the
// stream assumes that nothing is on its way.
type stream struct {
	read  chan block
	ended error // set before read is closed
}

// newStream starts a goroutine that reads until the log ends.
func newStream(r io.Reader) *stream {
	s := &stream{read: make(chan block)}
	go func() {
		defer close(s.read)
		for all := (blocks{r: r}); ; {
			x, err := all.next(nil)
			if err != nil {
				s.ended = err
				return
			}
			s.read <- x
		}
	}()
	return s
}

// next returns whole lines, or, if nothing comes, the time up to which nothing has. At the end the error is io.EOF.
func (s *stream) next(ctx context.Context) (block, error) {
	now := time.Now()
	select {
	case x, ok := <-s.read:
		if !ok {
			return x, s.ended
		}
		return x, nil
	case <-time.After(poll):
		return block{upTo: now}, nil
	case <-ctx.Done():
		return block{}, ctx.Err()
	}
}
