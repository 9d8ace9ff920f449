package otlp

import (
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/internal/logonce"
)

// receiver counts spans in the seconds of their starts and ends. Create it with newReceiver, and call serve before
// take. Concurrent use is safe: requests are counted one after the other, in about a microsecond for each span.
//
// Its time is the wall clock less the tolerance and a second. Each span counts once: as a duplicate, as late, as a span
// from the future, or as a call. The receiver holds a bounded number of spans that it remembers, and of calls that wait
// for the end of their second. At a bound it refuses requests until the oldest seconds end, so it loses nothing that a
// sender repeats. If the process is killed, the held calls are lost.
type receiver struct {
	service   string
	tolerance time.Duration
	clock     timeline.Clock
	log       logonce.Logger

	// mu guards the fields below.
	mu       sync.Mutex
	timeline *timeline.Timeline
	names    *names
	seen     *seen
	counts   counts
}

// A second remains open for delay in addition to the tolerance, as in replay: a span needs some time to arrive.
const delay = time.Second

// newReceiver returns a receiver. Its first second follows after, the last second that the previous process logged.
func newReceiver(o *Options, earned *httpstat.Names, after, now time.Time) *receiver {
	r := &receiver{
		service: o.Service, tolerance: o.Tolerance,
		names: newNames(o.Service, earned, o.MaxResources), seen: newSeen(o.MaxSpans, now),
		// A second is open for the tolerance and the delay, and spans may be ahead by the tolerance.
		timeline: timeline.New(2*int64(o.Tolerance/time.Second) + 4),
	}
	// The previous process may have been stopped less than a tolerance ago. It has written the seconds up to after, and
	// a written second never changes.
	r.timeline.From = r.firstOpen(now)
	if !after.IsZero() {
		r.timeline.From = max(r.timeline.From, after.Unix()+1)
	}
	r.clock.Set(r.timeline.From * timeline.Nanos)
	return r
}

// serve sets the Collector that counts the calls. The Collector must use the clock of the receiver.
func (r *receiver) serve(c *collector.Collector, logger *slog.Logger) {
	r.log.To = logger
	r.timeline.Counter = &timeline.Collected{
		Collector: c, Clock: &r.clock, Resource: r.names.resourceOf, Ended: func() {},
	}
}

// firstOpen returns the first open second.
func (r *receiver) firstOpen(now time.Time) int64 { return now.Add(-r.tolerance - delay).Unix() }

// advance replays the seconds that have ended.
func (r *receiver) advance(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until(now)
}

// until replays the seconds that have ended. r.mu must be held.
func (r *receiver) until(now time.Time) error {
	// The clock moves also if nothing is held, so that idle seconds are exported.
	second := r.firstOpen(now)
	err := r.timeline.Until(second)
	r.clock.Set(second * timeline.Nanos)
	return err
}

// finish replays all held calls. No span may follow.
func (r *receiver) finish() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.timeline.Until(math.MaxInt64)
}

// rejected reports the spans of a request that are not counted.
type rejected struct {
	spans int
	why   string
}

// take counts the spans of a request. With an error it counts none of them. Late, early and malformed spans are not
// errors.
func (r *receiver) take(b *batch, now time.Time) (rejected, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Check the capacity for all spans before counting the first one. A sender repeats a whole request, so a request
	// that is counted in part would count twice.
	r.seen.turn(now)
	if !r.seen.fits(len(b.spans)) || r.timeline.Held()+len(b.spans) > timeline.MaxHeld {
		return rejected{}, errFull
	}
	if err := r.until(now); err != nil {
		return rejected{}, err
	}
	r.names.now = now.Unix()
	latest := now.Add(r.tolerance).UnixNano()
	for i := range b.spans {
		r.takeSpan(&b.spans[i], &b.counts, latest)
	}
	r.counts.add(&b.counts)
	n := &b.counts
	not := rejected{spans: int(n[late] + n[future] + n[malformed])}
	not.why = fmt.Sprintf("%d later than the tolerance of %v, %d from the future, %d malformed",
		n[late], r.tolerance, n[future], n[malformed])
	if b.err != nil {
		not.why += ": " + b.err.Error()
	}
	return not, nil
}

// takeSpan counts a span. Spans that end after latest are from the future.
func (r *receiver) takeSpan(s *span, to *counts, latest int64) {
	if r.service != "" && string(s.service) != r.service {
		to[otherService]++
		return
	}
	// The order matters: a duplicate of a counted span must not count as late.
	//
	// Only counted spans are remembered: old spans would otherwise fill the table. A late span that is sent twice
	// therefore counts as late twice. A counted span that is sent again is a duplicate even if it is late by now.
	hash := r.seen.hash(s)
	switch {
	case r.seen.has(hash):
		to[duplicate]++
	case int64(s.end) > latest:
		to[future]++
	case int64(s.end) < r.timeline.From*timeline.Nanos:
		to[late]++
		r.log.Log(slog.LevelWarn, "rejected spans that are later than the tolerance",
			"service", collector.CleanName(string(s.service)), "ended", time.Unix(0, int64(s.end)).UTC())
	default:
		r.seen.add(hash)
		r.count(s, to)
	}
}

// count adds a span to the timeline.
func (r *receiver) count(s *span, counts *counts) {
	// A weight need not be an integer. The remainder is carried to the next span of the resource, so the sum of many
	// spans is right.
	to := r.names.of(s)
	w, estimate := weight(s.state)
	to.remainder += w
	n := math.Floor(to.remainder)
	to.remainder -= n
	c := timeline.Call{
		At: int64(s.start), Duration: int64(s.end - s.start), Name: to.id, N: int32(n), Status: s.code(),
	}
	if s.failed {
		c.Outcome = timeline.Failed
	}
	if r.timeline.Add(c) {
		counts[truncated]++
	}
	counts[counted]++
	if estimate {
		counts[sampled]++
		counts[estimated] += int64(n)
		r.log.Log(slog.LevelInfo, "spans are sampled: counts are estimates, from the thresholds of the samplers",
			"service", collector.CleanName(string(s.service)))
	}
}
