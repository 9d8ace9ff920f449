package prom

import (
	"errors"
	"net/http"
	"time"
)

// door lets no more than ten answers be made at a time, because each of them takes the memory of a page until its
// client has read it. So that nobody stands in the door for long, a client that reads too slowly is cut off.
type door chan struct{}

func newDoor() door { return make(door, maxAnswers) }

const (
	maxAnswers = 10
	// patience is how long a client may take at most.
	patience = time.Minute
)

var errBusy = errors.New("too many clients are being answered")

// enter waits for a place, no longer than the client does. What it returns must be called at the end of the answer.
func (d door) enter(w http.ResponseWriter, r *http.Request, began time.Time) (leave func(), err error) {
	timeout := patience
	if r.Header.Get(timeoutHeader) != "" {
		timeout = min(scrapeTimeout(r), patience)
	}
	late := time.NewTimer(time.Until(began.Add(timeout)))
	defer late.Stop()
	select {
	case d <- struct{}{}:
	case <-late.C:
		return nil, errBusy
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(began.Add(timeout + time.Second)) // what cannot have a deadline is not a connection
	return func() {
		_ = conn.SetWriteDeadline(time.Time{})
		<-d
	}, nil
}
