package prom

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// What [SecondsOptions] are if they do not say.
const (
	DefaultMaxSamples = 500_000
	DefaultMaxCursors = 100
)

// cursorExpiry is how long a cursor is kept that nobody uses.
const cursorExpiry = time.Hour

// SecondsOptions configure a [Seconds] page. The zero value is sensible.
type SecondsOptions struct {
	// Namespace is the prefix of all names, [exporter.Namespace] if empty.
	Namespace string
	// MaxSamples is how many samples an answer has at most, [DefaultMaxSamples] if zero; but it has at least one second.
	// A reader that was away for long catches up in several answers, each of which a server must be able to take before its
	// scrape times out: a sample is some 70 bytes before it is zipped.
	MaxSamples int
	// MaxCursors is how many readers are known at a time, [DefaultMaxCursors] if zero. One that did not read for an hour is
	// forgotten.
	MaxCursors int
}

// Seconds is a page of the sealed seconds: a sample for each second of each resource, with the time of its second, and
// with names of its own, because samples with and without a time must not meet in one series. No value is ever shown
// that changes later. It takes these parameters:
//
//   - cursor=NAME: the seconds that this reader has not had, oldest first. A reader is a name and the host it asks from,
//     and what it asks for; give each server its own name. A new one gets the whole history. What was written whole counts
//     as read.
//   - window=DURATION: the last seconds, such as 30s, whoever asks.
//   - metric=NAME, resource=NAME: only these; may be given several times.
//
// Without cursor and window it shows the last 60 seconds. A parameter that is wrong is answered with 400 and the reason.
//
// It serves text and OpenMetrics, with gzip. Seconds is safe for concurrent use; requests of one cursor are served one
// after the other. It is an [exporter.Source] of what it knows about the cursors.
//
// Limitation: an answer that was written whole to a connection but did not arrive is lost for the cursor.
type Seconds struct {
	stats   *collector.Collector
	metrics []*secondMetric
	max     int
	cursors cursors
	pages   pages
	zip     compressor
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
	s := &Seconds{stats: c, max: o.MaxSamples, cursors: cursors{max: o.MaxCursors, expire: cursorExpiry, all: map[string]*cursor{}}}
	for i, m := range exporter.Seconds() {
		x := &secondMetric{Second: m}
		x.metric = metric{name: o.Namespace + "_" + m.Name, no: i}
		x.metric.Metric = exporter.Metric{Type: exporter.Gauge, Help: m.Help}
		s.metrics = append(s.metrics, x)
	}
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Seconds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := s.stats.Seal()
	q, err := s.parse(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	oldest := m.Open - int64(s.stats.History()/time.Second)
	from, to := m.Open-q.window, m.Open
	var x *cursor
	if q.cursor != "" {
		x, err = s.cursors.get(q.cursor, host(r), q.filters(), s.begin(m, oldest), time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if x.wait(r.Context()) != nil {
			return // nobody is there any more
		}
		defer x.done()
		m = s.stats.Seal() // it may have taken a while
		oldest = m.Open - int64(s.stats.History()/time.Second)
		from, to = x.from(oldest), m.Open
	}
	from = max(from, oldest)
	resources := q.choose(m.Resources)
	if most := int64(s.max / max(len(resources)*len(q.metrics), 1)); q.cursor != "" {
		to = min(to, from+max(most, 1))
	}
	if s.write(w, r, q, resources, from, to) == nil && x != nil && r.Context().Err() == nil {
		x.read(to)
	}
}

// begin is the first second that a new reader gets: the oldest there is.
func (s *Seconds) begin(m collector.Moment, oldest int64) int64 {
	return max(oldest, s.stats.Tree().View().Since())
}

// write writes the seconds from from to before to.
func (s *Seconds) write(w http.ResponseWriter, r *http.Request, q query, resources []*collector.Resource, from, to int64) error {
	format := textFormat(r)
	var all []*metric
	for _, m := range s.metrics {
		all = append(all, &m.metric)
	}
	page := s.pages.get(all, format.FormatType() == expfmt.TypeOpenMetrics)
	defer s.pages.put(page)
	var seconds []node.MetricNode
	label := []string{"resource"}
	for _, res := range resources {
		seconds = res.View().AppendSeconds(seconds[:0], from, to)
		page.labels(label, []string{res.Name()})
		for _, m := range q.metrics {
			for i := range seconds {
				if v, ok := m.Value(&seconds[i]); ok {
					page.valueAt(&m.metric, v, seconds[i].Start.Unix())
				}
			}
		}
	}
	w.Header().Set("Content-Type", string(format))
	out, end := s.zip.start(w, r)
	err := page.writeTo(out, all)
	if err == nil && page.openMetrics {
		_, err = out.Write([]byte("# EOF\n"))
	}
	return errors.Join(err, end())
}

// textFormat is the format of the answer: text or OpenMetrics, as the client asks.
func textFormat(r *http.Request) expfmt.Format {
	f := expfmt.NegotiateIncludingOpenMetrics(r.Header)
	switch f.FormatType() {
	case expfmt.TypeTextPlain, expfmt.TypeOpenMetrics:
		return f
	}
	return expfmt.NewFormat(expfmt.TypeTextPlain)
}

// host is where a request comes from, without the port.
func host(r *http.Request) string {
	h, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return h
}

// Self implements [exporter.Source].
func (s *Seconds) Self(yield func(name string, value float64, labels ...string)) {
	open := s.stats.Seal().Open
	for _, x := range s.cursors.list() {
		x.mu.Lock()
		next, delivered, lost := x.next, x.delivered, x.lost
		x.mu.Unlock()
		yield(exporter.CursorLag, float64(open-next), x.host, x.name)
		yield(exporter.CursorDelivered, float64(delivered), x.host, x.name)
		yield(exporter.CursorLost, float64(lost), x.host, x.name)
	}
}

// query is what a request asks for.
type query struct {
	cursor    string
	window    int64 // seconds
	metrics   []*secondMetric
	names     []string // of the metrics, if they were chosen
	resources []string // none is all
}

// defaultWindow is how many seconds a request gets that does not say.
const defaultWindow = 60

var validCursor = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`)

// parse reads the parameters. The error names everything that is wrong with them.
func (s *Seconds) parse(raw string) (q query, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	var errs []error
	once := func(name string) (string, bool) {
		v, there := values[name]
		if len(v) > 1 {
			errs = append(errs, fmt.Errorf("%s is there %d times", name, len(v)))
		}
		return values.Get(name), there
	}
	q.window, q.metrics = defaultWindow, s.metrics
	cursor, hasCursor := once("cursor")
	if q.cursor = cursor; hasCursor && !validCursor.MatchString(cursor) {
		errs = append(errs, fmt.Errorf("cursor is %.70q; 1 to 64 letters, digits and _.:- are allowed", cursor))
	}
	if window, there := once("window"); there {
		d, err := time.ParseDuration(window)
		history := s.stats.History()
		if err != nil || d < time.Second || d > history || d%time.Second != 0 {
			errs = append(errs, fmt.Errorf("window is %.70q; whole seconds from 1s to %v are allowed", window, history))
		}
		if hasCursor {
			errs = append(errs, errors.New("cursor and window exclude each other"))
		}
		q.window = int64(d / time.Second)
	}
	if names := values["metric"]; len(names) > 0 {
		q.metrics, q.names = nil, names
		for _, name := range names {
			i := slices.IndexFunc(s.metrics, func(m *secondMetric) bool { return m.name == name || m.Second.Name == name })
			if i < 0 {
				errs = append(errs, fmt.Errorf("there is no metric %.70q", name))
			} else if !slices.Contains(q.metrics, s.metrics[i]) {
				q.metrics = append(q.metrics, s.metrics[i])
			}
		}
	}
	q.resources = values["resource"]
	for name := range values {
		if !slices.Contains([]string{"cursor", "window", "metric", "resource"}, name) {
			errs = append(errs, fmt.Errorf("there is no parameter %.70q; there are cursor, window, metric and resource", name))
		}
	}
	return q, errors.Join(errs...)
}

// filters tells apart what the readers of one name ask for.
func (q query) filters() string {
	metrics, resources := slices.Sorted(slices.Values(q.names)), slices.Sorted(slices.Values(q.resources))
	return strconv.Quote(strings.Join(metrics, ",")) + fmt.Sprintf("%q", resources)
}

// choose is those of the resources that were asked for.
func (q query) choose(all []*collector.Resource) []*collector.Resource {
	if len(q.resources) == 0 {
		return all
	}
	var list []*collector.Resource
	for _, r := range all {
		if slices.Contains(q.resources, r.Name()) {
			list = append(list, r)
		}
	}
	return list
}
