package prom

import (
	"errors"
	"net/http"
	"time"
)

// limiter bounds how many responses are made at a time: each takes the memory of a page until its client has read it. A
// write deadline disconnects slow clients.
type limiter chan struct{}

const (
	maxResponses = 10
	// requestTimeout bounds the wait for the limiter and the writing of the response together.
	requestTimeout = time.Minute
)

var errBusy = errors.New("too many requests are being served")

func newLimiter() limiter { return make(limiter, maxResponses) }

// acquire waits for a slot until the request times out, and sets the write deadline. The caller must call release when the
// response is written.
func (l limiter) acquire(w http.ResponseWriter, r *http.Request, began time.Time) (release func(), err error) {
	timeout := requestTimeout
	if r.Header.Get(timeoutHeader) != "" {
		timeout = min(scrapeTimeout(r), requestTimeout)
	}
	late := time.NewTimer(time.Until(began.Add(timeout)))
	defer late.Stop()
	select {
	case l <- struct{}{}:
	case <-late.C:
		return nil, errBusy
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(began.Add(timeout + time.Second)) // fails only where there is no connection
	return func() {
		_ = conn.SetWriteDeadline(time.Time{})
		<-l
	}, nil
}
