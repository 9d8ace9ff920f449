package prom

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// What [SecondsOptions] are if they do not say.
const (
	DefaultMaxSamples = 500_000
	DefaultMaxCursors = 100
)

// SecondsOptions configure a [Seconds] page. The zero value is sensible.
type SecondsOptions struct {
	// Namespace is the prefix of all names, [exporter.Namespace] if empty.
	Namespace string
	// MaxSamples is how many samples an answer has at most, [DefaultMaxSamples] if zero; but it has at least one second.
	// A reader that was away for long catches up in several answers, each of which a server must be able to take before its
	// scrape times out: a sample is some 70 bytes before it is zipped. A reader whose scrapes time out in less than ten
	// seconds gets fewer.
	MaxSamples int
	// MaxCursors is how many readers are known at a time, [DefaultMaxCursors] if zero. One that did not read for an hour is
	// forgotten.
	MaxCursors int
	// Log is the metric log of the process, such as a metriclog.Writer. With it the positions of the readers survive a
	// restart, in a file beside the log, and what they had not read before is served from the log.
	Log exporter.Log
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
// request, or the client closes it in order. If it breaks, or is closed when the scrape's timeout is up, these seconds
// are sent again, half as many in an answer: it may have been too large. A second that was alone in an answer is sent
// again once. For this the page must see the connections, see [Seconds.Watch]; without that, through a proxy or on
// HTTP/2 what was written whole counts as read, and as unconfirmed.
//
// It serves text and OpenMetrics, with gzip. Seconds is safe for concurrent use; requests of one cursor are served one
// after the other, and no more than ten at a time in all. It is an [exporter.Source] of what it knows about the cursors.
//
// Limitations: with a log, what was sealed but not yet logged when the process
// was killed is gone, a second's worth; an answer that was on its way then counts as read. Whoever asks with a reader's
// name from the reader's host takes seconds away from it.
type Seconds struct {
	stats     *collector.Collector
	log       exporter.Log
	metrics   []*secondMetric
	histogram *metric
	max       int
	first     int64     // index of the first second of this process
	bounds    int       // of the classic histogram
	all       []*metric // the metrics and the histogram
	minute    int64     // how many seconds the response times are kept
	cursors   cursors
	conns     conns
	door      door
	pages     pages
	zip       compressor
	last      scrape

	saving     sync.Mutex // guards what follows, and the file of positions
	saveErrors int64
}

// secondMetric is a metric of single seconds, and where its lines go.
type secondMetric struct {
	exporter.Second
	metric
}

// NewSeconds makes the page. The error names every option that is wrong.
func NewSeconds(c *collector.Collector, o SecondsOptions) (*Seconds, error) {
	if o.Namespace == "" {
		o.Namespace = exporter.Namespace
	}
	if o.MaxSamples == 0 {
		o.MaxSamples = DefaultMaxSamples
	}
	if o.MaxCursors == 0 {
		o.MaxCursors = DefaultMaxCursors
	}
	var errs []error
	if c == nil {
		errs = append(errs, errors.New("prom: no Collector"))
	}
	if !validNamespace.MatchString(o.Namespace) {
		errs = append(errs, errNamespace(o.Namespace))
	}
	if o.MaxSamples < 1 {
		errs = append(errs, fmt.Errorf("prom: MaxSamples is %d; at least 1 is needed", o.MaxSamples))
	}
	if o.MaxCursors < 1 {
		errs = append(errs, fmt.Errorf("prom: MaxCursors is %d; at least 1 is needed", o.MaxCursors))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	whole := c.Tree().View()
	s := &Seconds{
		stats: c, log: o.Log, max: o.MaxSamples,
		first:   whole.Since(),
		minute:  int64(whole.Minute(c.Timeline().Now()).Span / time.Second),
		cursors: cursors{max: o.MaxCursors, all: map[reader]*cursor{}},
		door:    newDoor(),
		last:    scrape{page: "seconds"},
	}
	for i, m := range exporter.Seconds() {
		x := &secondMetric{Second: m}
		x.metric = metric{name: o.Namespace + "_" + m.Name, no: i}
		x.metric.Metric = exporter.Metric{Type: exporter.Gauge, Help: m.Help}
		s.metrics = append(s.metrics, x)
		s.all = append(s.all, &x.metric)
	}
	s.histogram = &metric{name: o.Namespace + "_" + exporter.SecondsRT, no: len(s.all)}
	s.histogram.Metric = exporter.Metric{Type: exporter.Histogram, Help: "Response times of all calls that ended before the end of this second."}
	s.all = append(s.all, s.histogram)
	var h node.Histogram
	whole.Snapshot(c.Timeline().Now(), &h)
	for range h.Classic() {
		s.bounds++
	}
	if s.log != nil {
		if err := s.restore(); err != nil {
			return nil, fmt.Errorf("prom: %w", err)
		}
	}
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Seconds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	q, err := s.parse(r.URL.RawQuery)
	switch {
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
	m := s.stats.Seal()
	from, most := max(m.Open-q.window, s.oldest(m)), s.most(q, m, usualTimeout)
	if m.Open-from > most {
		if q.hasWindow {
			http.Error(w, fmt.Sprintf("%d seconds are more than the %d samples that an answer may have; ask for %d seconds, or for some of the metrics or resources",
				m.Open-from, s.max, most), http.StatusBadRequest)
			return
		}
		from = m.Open - most
	}
	_, _ = s.write(w, r, q, m, from, most, began) // the error is that of a client that is gone
}

// serveCursor answers with what the reader has not had.
func (s *Seconds) serveCursor(w http.ResponseWriter, r *http.Request, q query, began time.Time) {
	x, err := s.cursors.get(reader{q.cursor, host(r), q.filters()}, s.oldest(s.stats.Seal()), began)
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
	m := s.stats.Seal()
	from, most := x.begin(m.Open-s.history(), s.most(q, m, a.timeout))
	to, err := s.write(w, r, q, m, from, most, began)
	x.sent(a, from, to, err == nil && r.Context().Err() == nil)
	if s.log != nil && from < to {
		s.save()
	}
}

// history is how many seconds can be read.
func (s *Seconds) history() int64 { return int64(s.stats.History() / time.Second) }

// oldest is the first second that a new reader gets.
func (s *Seconds) oldest(m collector.Moment) int64 {
	oldest := m.Open - s.history()
	if s.log == nil {
		oldest = max(oldest, s.first)
	}
	return oldest
}

// most is how many seconds an answer may have. A client that waits less than the usual time gets less.
func (s *Seconds) most(q query, m collector.Moment, timeout time.Duration) int64 {
	samples := float64(s.max) * min(timeout.Seconds()/usualTimeout.Seconds(), 1)
	resources := max(len(q.choose(m.Resources)), 1)
	return max(int64(samples)/int64(resources*s.samples(q)), 1)
}

// samples is how many samples a second of a resource has at most.
func (s *Seconds) samples(q query) int {
	n := len(q.metrics)
	if q.classic {
		n += s.bounds + 3
	}
	if q.native {
		n++
	}
	return n
}

// Self implements [exporter.Source].
func (s *Seconds) Self(yield func(name string, value float64, labels ...string)) {
	open := s.stats.Seal().Open
	for _, x := range s.cursors.list() {
		next, n := x.state()
		yield(exporter.CursorLag, float64(max(open-next, 0)), x.Client, x.Cursor)
		yield(exporter.CursorDelivered, float64(n.delivered), x.Client, x.Cursor)
		yield(exporter.CursorUnconfirmed, float64(n.unconfirmed), x.Client, x.Cursor)
		yield(exporter.CursorResent, float64(n.resent), x.Client, x.Cursor)
		yield(exporter.CursorLost, float64(n.lost), x.Client, x.Cursor)
	}
	s.saving.Lock()
	errors := s.saveErrors
	s.saving.Unlock()
	yield(exporter.CursorSaveErrors, float64(errors))
	s.last.Self(yield)
}
