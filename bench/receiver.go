package bench

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/exporter/push"
)

// Receiver is a remote-write server that accepts and discards everything.
type Receiver struct {
	server *httptest.Server
	last   atomic.Int64 // end of the last request, by Now
}

// NewReceiver starts a Receiver.
func NewReceiver() *Receiver {
	r := new(Receiver)
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		r.last.Store(int64(Now()))
		w.WriteHeader(http.StatusNoContent)
	}))
	return r
}

// URL returns the address of the Receiver.
func (r *Receiver) URL() string { return r.server.URL }

// Close shuts down the Receiver.
func (r *Receiver) Close() { r.server.Close() }

// Push pushes the next second of a service. It returns the time from the end of the second until the Receiver had all
// of it, sealing included. Some seconds without a call follow.
func (r *Receiver) Push(s *Service) (time.Duration, error) {
	// The Pusher waits for the end of the second by the machine's clock, so the service's clock runs during this time.
	const ahead = 50 * time.Millisecond
	p, err := push.New(s.Collector, push.Options{
		URL: r.server.URL, Labels: map[string]string{"job": "bench", "instance": "bench"}, Interval: time.Second,
		Drain: time.Minute, Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	if err := s.Go(1); err != nil {
		return 0, err
	}
	s.Skip(-ahead)
	s.Live()
	end := Now() + ahead
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for sent := s.metric("push_seconds_total"); sent() == 0; time.Sleep(time.Millisecond) {
		if Now() > end+time.Minute {
			return 0, errors.New("bench: nothing was pushed in a minute")
		}
	}
	took := time.Duration(r.last.Load()) - end

	// The Pusher also waits for the end of the second in which it is stopped.
	s.Stop()
	s.at.Store(s.now().Truncate(time.Second).Add(time.Second - ahead).UnixNano())
	cancel()
	for wait := 2 * ahead; ; wait = time.Second {
		select {
		case err := <-ended:
			s.Skip(ahead)
			return took, err
		case <-time.After(wait):
			s.Skip(time.Second)
		}
	}
}
