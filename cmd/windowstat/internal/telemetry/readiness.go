package telemetry

import (
	"context"
	"net/http"
	"sync/atomic"
)

// readiness says 503 at /-/ready until the command listens wherever it serves, and again from the moment that it is told to end: who
// balances load looks elsewhere then, while what has begun is finished.
type readiness struct {
	next  http.Handler
	ready atomic.Bool
}

// ServeHTTP implements http.Handler.
func (s *readiness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/-/ready" && !s.ready.Load() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	s.next.ServeHTTP(w, r)
}

// ReadyUntil says that the command is ready until ctx ends. All that it serves must listen, with what it needs.
func (t *Telemetry) ReadyUntil(ctx context.Context) {
	t.readiness.ready.Store(true)
	context.AfterFunc(ctx, func() { t.readiness.ready.Store(false) })
}
