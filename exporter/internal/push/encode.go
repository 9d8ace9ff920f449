package push

import (
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// request is what is sent at a time. It is sent again as it is: a server that has had it refuses it as a whole then, and
// would refuse what is new, too, if that were with it.
type request struct {
	enc     Encoder
	body    []byte
	samples int
	err     error // it cannot be made
	lastErr error // of the last attempt
	doubted bool  // an attempt ended so that the server may have it
	errors  int   // how often the server answered with 500
}

// batch is seconds that are sent together, in several requests. They are sent again as they are, until all of them are
// dealt with.
type batch struct {
	to       int64 // before this one
	requests []*request
	all      []*request // to use their memory again
}

// encode makes the requests for the seconds from from to before to.
func (p *Pusher) encode(from, to int64) {
	s := splitter{p: p, labels: newLabels(p.opts.Labels)}
	for reached := from - 1; reached != to; { // again, if a stream does not come as far as those before it
		if reached >= from {
			to = reached
		}
		s.n = 0
		s.begin()
		reached = to
		for i, stream := range p.streams {
			reached = stream.Emit(p.selection(i), from, reached, seconds.Limit{Seconds: to - from}, &s)
		}
	}
	s.finish()
	p.batch.to, p.batch.requests = to, p.batch.all[:s.n]
}

// splitter spreads series over requests, with the labels that all of them get.
type splitter struct {
	p      *Pusher
	labels labels
	now    *request
	n      int // requests
}

// begin begins the next request.
func (s *splitter) begin() {
	b := &s.p.batch
	if s.n == len(b.all) {
		b.all = append(b.all, &request{enc: s.p.format.New()})
	}
	s.now = b.all[s.n]
	s.now.begin()
	s.n++
}

// finish finishes a request; one that is empty is none.
func (s *splitter) finish() {
	if !s.now.finish() {
		s.n--
	}
}

// begin makes it a new request.
func (r *request) begin() {
	r.enc.Reset()
	*r = request{enc: r.enc}
}

// finish makes the body, and reports false if there is nothing in it.
func (r *request) finish() bool {
	if r.samples = r.enc.Samples(); r.samples == 0 {
		return false
	}
	r.body, r.err = r.enc.Body()
	return true
}

// Series implements seconds.Sink.
func (s *splitter) Series(f *table.Family, names, values []string) {
	if s.now.enc.Samples() >= s.p.opts.MaxSamples {
		s.finish()
		s.begin()
	}
	s.labels.merge(names, values)
	s.now.enc.Series(f, s.labels.names, s.labels.values)
}

// Value implements seconds.Sink.
func (s *splitter) Value(unix int64, v float64) { s.now.enc.Value(unix, v) }

// Histogram implements seconds.Sink.
func (s *splitter) Histogram(unix int64, h *node.Histogram) { s.now.enc.Histogram(unix, h) }
