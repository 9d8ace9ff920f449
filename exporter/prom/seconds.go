package prom

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/node"
)

// What [SecondsOptions] are if they do not say.
const (
	DefaultMaxSamples = 500_000
	DefaultMaxBytes   = 64 << 20
	DefaultMaxCursors = 100
)

// SecondsOptions configure a [Seconds] page. The zero value is sensible.
type SecondsOptions struct {
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
	// MaxSamples is how many samples an answer has at most, [DefaultMaxSamples] if zero; but it has at least one second.
	// A reader that was away for long catches up in several answers, each of which a server must be able to take before its
	// scrape times out. A reader whose scrapes time out in less than ten seconds gets fewer.
	MaxSamples int
	// MaxBytes is about how large an answer is at most, before it is zipped, [DefaultMaxBytes] if zero; a sample is some 80
	// bytes. VictoriaMetrics, which throws away what is larger than 16 MiB and does not show it, gets no more than 15 unless
	// MaxBytes is set.
	MaxBytes int
	// MaxCursors is how many readers are known at a time, [DefaultMaxCursors] if zero. One that did not read for an hour is
	// forgotten.
	MaxCursors int
	// Log is the metric log of the process, such as a metriclog.Writer; none if nil. With it the positions of the readers
	// survive a restart, in a state file of the log, and what they had not read before is served from the log. A log serves one
	// page.
	Log Log
	// Sampler has series of client_golang, which are on the page, too; none if nil.
	Sampler *sampler.Sampler
}

// Log is a metric log, as far as a [Seconds] page reads one; metriclog.Writer is one.
type Log interface {
	// Past calls f for the records that earlier processes logged of the seconds from from to before to, Unix times, ascending
	// by second, until it returns false. They have the Start and the counts that the log has without a loss, and nothing else.
	// A second in which nothing happened has none. The record is f's for the call. What cannot be read is left out, and
	// counted by the log.
	Past(from, to int64, f func(resource string, m *node.MetricNode) bool)
	// StateFile is the path for a file of this name that belongs to the log. It gives each name away once: two users would
	// overwrite each other's state.
	StateFile(name string) (path string, err error)
}

// Seconds is a page of the sealed seconds: a sample for each second of each resource, with the time of its second, and
// with names of its own, because samples with and without a time must not meet in one series. No value is ever shown
// that changes later. It takes these parameters:
//
//   - cursor=NAME: the seconds that this reader has not had, oldest first. A reader is a name and the host it asks from,
//     and what it asks for; give each server its own name. A new one gets the whole history.
//   - window=DURATION: the last seconds, such as 30s, whoever asks.
//   - metric=NAME, resource=NAME: only these; may be given several times.
//   - histogram=classic or native: the histogram of response times, too. It is cumulative, so its samples have the time
//     of their second's end. Only a client that takes protobuf can have the native one. It is kept for a minute.
//
// Without cursor and window it shows the last 60 seconds. A parameter that is wrong is answered with 400 and the reason.
//
// An answer counts as read when it was written whole and the same connection, of HTTP/1.1, brings the reader's next
// request, or the client closes it in order. If it breaks, or the client leaves before it can have had everything, these
// seconds are sent again, up to five times; a large answer may have been too large, so the next one has half of it. For
// this the page must see the connections, see [Seconds.Watch]; without that, through a proxy, on HTTP/2 or with
// "Connection: close" what was written whole counts as read, and as unconfirmed.
//
// It serves text and OpenMetrics, with gzip. Seconds is safe for concurrent use; requests of one cursor are served one
// after the other, and no more than ten at a time in all. It is an [exporter.Source] of what it knows about the cursors.
//
// Limitations: with a log, what was sealed but not yet logged when the process was killed is gone, a second's worth. An
// answer of which the last byte was sent then counts as read, wherever it was; if the process was killed before it could
// write that down, within a millisecond or so, it is sent again. Whoever asks with a reader's name from the reader's host
// takes seconds away from it.
type Seconds struct {
	stats       *collector.Collector
	log         Log
	positions   string          // the file of positions; empty without a log
	self        *gather.Metrics // nil if it does not show windowstat's own metrics
	namespace   string
	streams     []seconds.Stream // the resources, and what else there is
	first       int64            // index of the first second of this process
	begins      int64            // of the first one there is: before that if it was logged
	max         seconds.Size     // of an answer
	forVictoria int              // bytes
	cursors     cursors
	conns       conns
	door        door
	pages       text.Pages
	zip         gzipped.Writers
	last        scrape

	saving     sync.Mutex // guards the file of positions
	saveErrors atomic.Int64
}

// NewSeconds makes the page. The error names every option that is wrong.
func NewSeconds(c *collector.Collector, o SecondsOptions) (*Seconds, error) {
	if o.Namespace == "" {
		o.Namespace = table.Namespace
	}
	if o.MaxSamples == 0 {
		o.MaxSamples = DefaultMaxSamples
	}
	forVictoria := o.MaxBytes
	if o.MaxBytes == 0 {
		o.MaxBytes, forVictoria = DefaultMaxBytes, 15<<20
	}
	if o.MaxCursors == 0 {
		o.MaxCursors = DefaultMaxCursors
	}
	var errs []error
	if c == nil {
		errs = append(errs, errors.New("prom: no Collector"))
	}
	if err := gather.CheckNamespace(o.Namespace); err != nil {
		errs = append(errs, fmt.Errorf("prom: %w", err))
	}
	if o.MaxSamples < 1 {
		errs = append(errs, fmt.Errorf("prom: MaxSamples is %d; at least 1 is needed", o.MaxSamples))
	}
	if o.MaxBytes < 1 {
		errs = append(errs, fmt.Errorf("prom: MaxBytes is %d; at least 1 is needed", o.MaxBytes))
	}
	if o.MaxCursors < 1 {
		errs = append(errs, fmt.Errorf("prom: MaxCursors is %d; at least 1 is needed", o.MaxCursors))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	streams := []seconds.Stream{seconds.NewResources(c, o.Namespace, o.Log)}
	if o.Sampler != nil {
		streams = append(streams, o.Sampler.Stream())
	}
	s := &Seconds{
		stats: c, log: o.Log, namespace: o.Namespace,
		max: seconds.Size{Samples: o.MaxSamples, Bytes: o.MaxBytes}, forVictoria: forVictoria,
		streams: streams,
		first:   c.Tree().View().Node().Since(),
		cursors: cursors{max: o.MaxCursors, all: map[reader]*cursor{}},
		door:    newDoor(),
		last:    scrape{page: "seconds"},
	}
	s.begins = s.first
	if s.log != nil {
		s.log.Past(s.first-s.history(), s.first, func(_ string, m *node.MetricNode) bool {
			s.begins = m.Start.Unix()
			return false
		})
		var err error
		if s.positions, err = s.log.StateFile(positionsName); err == nil {
			err = s.restore()
		}
		if err != nil {
			return nil, fmt.Errorf("prom: %w", err)
		}
	}
	c.Publish(s.metrics()...)
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Seconds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	q, err := s.parse(r.URL.RawQuery)
	switch {
	case r.Method != http.MethodGet: // an answer without a body would take seconds from their reader
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case q.native && !acceptsProtobuf(r):
		http.Error(w, "the native histogram needs a client that accepts protobuf, such as Prometheus with scrape_native_histograms",
			http.StatusNotAcceptable)
	case q.cursor != "":
		s.serveCursor(w, r, q, began)
	default:
		s.serveWindow(w, r, q, began)
	}
}

// serveWindow answers with the last seconds.
func (s *Seconds) serveWindow(w http.ResponseWriter, r *http.Request, q query, began time.Time) {
	leave, err := s.door.enter(w, r, began)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	open := s.sealed()
	from, limit := max(open-q.window, s.oldest(open)), s.limit(r, &q, usualTimeout)
	if open-from > limit.Seconds {
		if q.hasWindow {
			http.Error(w, fmt.Sprintf("%d seconds are more than the %d samples or %d bytes that an answer may have; ask for %d seconds, or for some of the metrics or resources",
				open-from, limit.Samples, limit.Bytes, limit.Seconds), http.StatusBadRequest)
			return
		}
		from = open - limit.Seconds
	}
	_, _, _ = s.write(w, r, q, from, open, limit, began) // the error is that of a client that is gone
}

// serveCursor answers with what the reader has not had.
func (s *Seconds) serveCursor(w http.ResponseWriter, r *http.Request, q query, began time.Time) {
	x, err := s.cursors.get(reader{q.cursor, host(r), q.filters()}, s.oldest(s.sealed()), began)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if x.wait(r.Context()) != nil {
		return // nobody is there any more
	}
	defer x.done()
	leave, err := s.door.enter(w, r, began)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	a := newAnswer(r, s.conns.of(r), began)
	x.settle(a)
	open := s.sealed()
	limit := s.limit(r, &q, a.timeout)
	var from int64
	from, limit.Seconds = x.begin(open-s.history(), limit.Seconds)
	a.conn.serve(r)
	to, samples, err := s.write(w, r, q, from, open, limit, began)
	whole := err == nil && r.Context().Err() == nil
	x.sent(a, from, to, samples, whole)
	x.lose(min(s.sealed()-s.history(), to) - from) // while the page was made
	if next, ok := s.unix(to); ok && whole && s.log != nil && from < to {
		a.conn.then(r, func() { s.save(x, next) })
	}
}

// history is how many seconds can be read.
func (s *Seconds) history() int64 { return int64(s.stats.History() / time.Second) }

// sealed is the second before which all are sealed.
func (s *Seconds) sealed() int64 {
	open := s.stats.Seal().Open
	for _, stream := range s.streams {
		open = stream.Sealed(open)
	}
	return open
}

// oldest is the first second that a new reader gets.
func (s *Seconds) oldest(open int64) int64 { return max(open-s.history(), s.begins) }

// limit is how much an answer may have. A client that waits less than the usual time gets less.
func (s *Seconds) limit(r *http.Request, q *query, timeout time.Duration) seconds.Limit {
	var second seconds.Size
	for _, stream := range s.streams {
		second = second.Add(stream.Size(&q.Selection))
	}
	if q.native { // it is one sample, and larger than all others
		second.Bytes *= 2
	}
	most := s.max
	if strings.HasPrefix(r.UserAgent(), "vm_promscrape") {
		most.Bytes = s.forVictoria
	}
	most.Samples = max(int(float64(most.Samples)*min(timeout.Seconds()/usualTimeout.Seconds(), 1)), 1)
	return seconds.Limit{Seconds: max(most.Fit(second), 1), Size: most}
}
