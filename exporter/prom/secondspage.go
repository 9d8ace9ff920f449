package prom

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// secondSink takes the samples of a page of seconds.
type secondSink interface {
	sink
	// at is the Unix time of the samples that follow.
	at(unix int64)
	// count is how many samples there are.
	count() int
	// writeTo writes the page.
	writeTo(w io.Writer, metrics []*metric) error
}

// write writes the seconds from from to before open, or no more than the first most of them that there are, and returns
// how far it came.
func (s *Seconds) write(w http.ResponseWriter, r *http.Request, q query, m collector.Moment, from, most int64, began time.Time) (to int64, err error) {
	page, contentType, done := s.page(r, q)
	defer done()
	var old *past
	to = min(m.Open, from+most)
	if from < s.first && s.log != nil {
		old = s.past(q, from, min(m.Open, s.first), most)
		if to = old.to; to == s.first {
			to = min(m.Open, s.first+most-old.seconds)
		}
	}
	s.lines(page, q, old, q.choose(m.Resources), from, to)
	w.Header().Set("Content-Type", contentType)
	return to, s.send(w, r, page, began)
}

// page is an empty page in the format that the client wants, and what to do when it is written.
func (s *Seconds) page(r *http.Request, q query) (page secondSink, contentType string, done func()) {
	if q.native {
		return new(points), string(expfmt.NewFormat(expfmt.TypeProtoDelim)), func() {}
	}
	format := textFormat(r)
	t := s.pages.get(s.all, format.FormatType() == expfmt.TypeOpenMetrics)
	return t, string(format), func() { s.pages.put(t) }
}

// lines appends the samples of all seconds from from to before to.
func (s *Seconds) lines(page secondSink, q query, old *past, resources []*collector.Resource, from, to int64) {
	label, name := []string{"resource"}, make([]string, 1)
	var seconds []node.MetricNode
	var rts distributions
	for _, r := range resources {
		name[0] = r.Name()
		page.labels(label, name)
		logged := old.take(r.Name())
		seconds = r.View().AppendSeconds(seconds[:0], max(from, s.first), to)
		if q.times() {
			rts.read(s, r.View(), max(from, s.first), to)
		}
		for _, m := range q.metrics {
			m.logged(page, logged)
			m.sealed(page, seconds, &rts)
		}
		if q.classic || q.native {
			rts.points(page, s.histogram)
		}
	}
	for _, resource := range old.rest() {
		name[0] = resource
		page.labels(label, name)
		logged := old.take(resource)
		for _, m := range q.metrics {
			m.logged(page, logged)
		}
	}
}

// sealed appends the samples of a metric for seconds of this process.
func (m *secondMetric) sealed(page secondSink, seconds []node.MetricNode, rts *distributions) {
	if m.RT != nil {
		for i := range rts.hs {
			if h := &rts.hs[i]; rts.unix[i] != 0 && h.Count() > 0 {
				page.at(rts.unix[i])
				page.value(&m.metric, m.RT(h))
			}
		}
		return
	}
	for i := range seconds {
		if v, ok := m.Value(&seconds[i]); ok {
			page.at(seconds[i].Start.Unix())
			page.value(&m.metric, v)
		}
	}
}

// logged appends the samples of a metric for seconds of the processes before, as far as the log has it.
func (m *secondMetric) logged(page secondSink, seconds []node.MetricNode) {
	if m.Logged {
		m.sealed(page, seconds, nil)
	}
}

// distributions are the response times in some seconds of one view. They keep their memory for the next.
type distributions struct {
	hs     []node.Histogram
	unix   []int64 // of the seconds, 0 for one that must not be shown
	before node.Histogram
	known  int  // how many of the first are not known
	whole  bool // before is known
}

// read reads those of the seconds from from to before to that are kept.
func (d *distributions) read(s *Seconds, v *node.View, from, to int64) {
	from = max(from, to-s.minute, v.Since())
	n := int(max(to-from, 0))
	for len(d.hs) < n {
		d.hs = append(d.hs[:cap(d.hs)], node.Histogram{})
	}
	d.hs, d.unix = d.hs[:n], d.unix[:0]
	first := v.Histograms(from, d.hs)
	for i := from; i < to; i++ {
		unix := int64(0)
		if name, ok := s.stats.Timeline().Name(i); ok && i >= first {
			unix = name.Unix()
		}
		d.unix = append(d.unix, unix)
	}
	d.known = int(max(first-from, 0))
	d.whole = v.HistogramBefore(max(first, from), &d.before)
}

// points appends the cumulative histogram at the end of each second.
func (d *distributions) points(page secondSink, m *metric) {
	if !d.whole {
		return
	}
	for i := d.known; i < len(d.hs); i++ {
		d.before.Add(&d.hs[i])
		if d.unix[i] != 0 {
			page.at(d.unix[i] + 1)
			page.histogram(m, &d.before, time.Time{}, nil)
		}
	}
}

// send writes the page to the client, all of it.
func (s *Seconds) send(w http.ResponseWriter, r *http.Request, page secondSink, began time.Time) error {
	out, end := s.zip.start(w, r)
	counted := &counter{Writer: out}
	err := page.writeTo(counted, s.all)
	if t, ok := page.(*text); ok && t.openMetrics && err == nil {
		_, err = io.WriteString(counted, "# EOF\n")
	}
	if err = errors.Join(err, end()); err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil // not a connection
	}
	s.last.was(time.Since(began), page.count(), counted.n)
	return err
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

// acceptsProtobuf reports whether the client takes protobuf.
func acceptsProtobuf(r *http.Request) bool {
	return expfmt.NegotiateIncludingOpenMetrics(r.Header).FormatType() == expfmt.TypeProtoDelim
}
