package live

import (
	"context"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/internal/clienthost"
)

// turn waits until something is to be answered that a viewer may ask for again at once: a poll, the past at the beginning of a
// stream, the details of a resource. end is called when the answer is made, with its size. Its place rests then for a time that
// grows with what the answer cost, so a flood of questions waits for itself, host by host, and the service goes on. Who is alone
// does not notice.
func (p *Page) turn(r *http.Request) (end func(size int), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), responseTimeout)
	defer cancel()
	leave, err := p.places.Take(ctx, clienthost.Of(r, nil))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return func(size int) {
		const (
			least  = 10 * time.Millisecond
			of     = 4       // a place works for a quarter of the time
			second = 4 << 20 // bytes of a place
		)
		rest := max(least, (of-1)*time.Since(began), time.Duration(size)*time.Second/second)
		time.AfterFunc(rest, leave)
	}, nil
}
