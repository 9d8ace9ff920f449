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

// receiver puts spans into the seconds in which they were. It must be made with newReceiver and be given a Collector by serve. It is safe
// for concurrent use: requests take turns, for about a microsecond a span.
//
// Its time is the wall clock less the tolerance and a second. Each span counts once: as one that has come before, that is late or from the future,
// or as a call. What it holds is bounded by spans that are remembered and calls that wait for their second; beyond these it takes no request
// until some are over, so it loses nothing that a sender repeats. What it holds is lost when the process is killed.
type receiver struct {
	service   string
	tolerance time.Duration
	clock     timeline.Clock
	log       logonce.Logger

	mu       sync.Mutex // guards what follows
	timeline *timeline.Timeline
	names    *names
	seen     *seen
	counts   counts
}

// delay is how much longer than the tolerance a second is open: as in replay, it is that of the way here.
const delay = time.Second

// newReceiver makes a receiver whose first second is behind after, the last one that the process before it has counted.
func newReceiver(o *Options, earned *httpstat.Names, after, now time.Time) *receiver {
	r := &receiver{
		service: o.Service, tolerance: o.Tolerance, names: newNames(o.Service, earned, o.MaxResources), seen: newSeen(o.MaxSpans, now),
		// A second is open for the tolerance and the delay, and spans may be ahead by the tolerance.
		timeline: timeline.New(2*int64(o.Tolerance/time.Second) + 4),
	}
	r.timeline.From = r.over(now)
	if !after.IsZero() {
		r.timeline.From = max(r.timeline.From, after.Unix()+1)
	}
	r.clock.Set(r.timeline.From * timeline.Nanos)
	return r
}

// serve has the calls counted by a Collector, which has the clock.
func (r *receiver) serve(c *collector.Collector, logger *slog.Logger) {
	r.log.To = logger
	r.timeline.Counter = &timeline.Collected{Collector: c, Clock: &r.clock, Resource: r.names.resourceOf, Ended: func() {}}
}

// over is the first second that is open.
func (r *receiver) over(now time.Time) int64 { return now.Add(-r.tolerance - delay).Unix() }

// advance plays the seconds that are over.
func (r *receiver) advance(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until(now)
}

func (r *receiver) until(now time.Time) error {
	second := r.over(now)
	err := r.timeline.Until(second)
	r.clock.Set(second * timeline.Nanos)
	return err
}

// finish plays all that is held, when no more will come.
func (r *receiver) finish() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.timeline.Until(math.MaxInt64)
}

// rejected is what an answer says of spans that are not counted.
type rejected struct {
	spans int
	why   string
}

// take counts the spans of a request, all or, with an error, none. What is wrong with some of them is no error.
func (r *receiver) take(b *batch, now time.Time) (rejected, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Whether there is capacity for all is known before the first span is counted: a request is taken as a whole, or its sender repeats all
	// of it and none counts twice.
	r.seen.turn(now)
	if !r.seen.fits(len(b.spans)) || r.timeline.Held()+len(b.spans) > timeline.MaxHeld {
		r.counts[refused]++
		r.log.Log(slog.LevelWarn, "requests are refused until there is capacity for their spans; their senders repeat them", "remembered_at_most", r.seen.most, "held", r.timeline.Held())
		return rejected{}, errFull
	}
	if err := r.until(now); err != nil {
		return rejected{}, err
	}
	r.names.now = now.Unix()
	for i := range b.spans {
		switch s := &b.spans[i]; {
		case r.service != "" && string(s.service) != r.service:
			b.counts[otherService]++
		case r.seen.again(s): // before it is late: a sender repeats itself
			b.counts[duplicate]++
		case int64(s.end) > now.Add(r.tolerance).UnixNano():
			b.counts[future]++
		case int64(s.end) < r.timeline.From*timeline.Nanos:
			b.counts[late]++
			r.log.Log(slog.LevelWarn, "spans come later than the tolerance, and are not counted", "service", collector.CleanName(string(s.service)), "ended", time.Unix(0, int64(s.end)).UTC())
		default:
			r.count(s, &b.counts)
		}
	}
	r.counts.add(&b.counts)
	n := &b.counts
	not := rejected{spans: int(n[late] + n[future] + n[malformed])}
	not.why = fmt.Sprintf("%d later than the tolerance of %v, %d from the future, %d malformed", n[late], r.tolerance, n[future], n[malformed])
	if b.err != nil {
		not.why += ": " + b.err.Error()
	}
	return not, nil
}

// count puts a span into the timeline.
func (r *receiver) count(s *span, counts *counts) {
	to := r.names.of(s)
	w, estimate := weight(s.state)
	to.remainder += w
	n := math.Floor(to.remainder)
	to.remainder -= n
	c := timeline.Call{At: int64(s.start), Duration: int64(s.end - s.start), Name: to.id, N: int32(n), Status: s.code()}
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
		r.log.Log(slog.LevelInfo, "spans are sampled, and counted by the thresholds of their samplers: counts are estimates", "service", collector.CleanName(string(s.service)))
	}
}

// counts are spans by what became of them, and what else is published.
type counts [truncated + 4]int64

// What becomes of a span.
const (
	counted = iota
	duplicate
	late
	future
	malformed
	internal
	otherService
	results
)

// What else is published.
const (
	truncated = results + iota // of those counted: they began in a second that was over
	sampled                    // of those counted: they have a threshold
	estimated                  // calls that these stand for
	refused                    // requests
)

// add adds those of a request.
func (c *counts) add(request *counts) {
	for i, n := range request {
		c[i] += n
	}
}

// metrics are what a receiver publishes on its Collector: what became of the spans so far.
func (r *receiver) metrics() []collector.Metric {
	read := func() counts {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.counts
	}
	all := []collector.Metric{{
		Name: "otlp_spans_total", Labels: []string{"result"},
		Help: "Spans received: counted, seen before (duplicate), later than the tolerance (late), from the future, malformed, no calls (internal), of another service. Only counted ones are calls; spans that samplers drop are in no count.",
		Read: func(yield func(float64, ...string)) {
			c := read()
			for i, name := range [results]string{"counted", "duplicate", "late", "future", "malformed", "internal", "other_service"} {
				yield(float64(c[i]), name)
			}
		},
	}}
	for i, x := range [...]struct{ name, help string }{
		{"otlp_truncated_spans_total", "Counted spans that began in a second that was over: they pass, and are in flight, from the first second on that was open."},
		{"otlp_sampled_spans_total", "Counted spans with the threshold of a sampler. Each stands for several calls, so counts are estimates if there are any."},
		{"otlp_estimated_calls_total", "Calls that sampled spans stand for."},
		{"otlp_refused_requests_total", "Requests refused because too many spans were held. Their senders repeat them."},
	} {
		all = append(all, collector.Metric{Name: x.name, Help: x.help, Read: func(yield func(float64, ...string)) { yield(float64(read()[truncated+i])) }})
	}
	return all
}
