package push

import (
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// request is sent in one attempt, and resent unchanged until it is settled: a server that has it rejects it as a whole, and
// would reject new samples with it.
type request struct {
	enc     Encoder
	body    []byte
	samples int
	err     error // from encoding
	lastErr error // of the last attempt
	mayHave bool  // an attempt ended without a clear result: the server may have it
	errors  int   // responses with status 500
}

// batch is a group of seconds that is sent in several requests. The requests are resent unchanged until all of them are
// settled.
type batch struct {
	to       int64 // the second before which they are
	seconds  int64 // how many there are
	requests []*request
	all      []*request // reused
}

// encode makes the requests for the seconds in [from, to), or for fewer if a stream emits fewer. It reports false if one emits
// none.
func (p *Pusher) encode(from, to int64) bool {
	s := splitter{p: p, labels: newLabels(p.opts.Labels)}
	for {
		s.begins(p.place.lock != nil && to-from > 1)
		reached := to
		for i, stream := range p.streams {
			reached = stream.Emit(p.selection(i), from, reached, seconds.Limit{Seconds: to - from}, &s)
		}
		if reached <= from {
			return false
		}
		if reached >= to {
			break
		}
		to = reached // again with fewer seconds, so that all streams have the same
	}
	s.finish()
	p.batch = batch{to: to, seconds: to - from, requests: p.batch.all[:s.n], all: p.batch.all}
	return true
}

// splitter is a Sink that splits series into requests and adds the common labels.
type splitter struct {
	p       *Pusher
	labels  labels
	one     bool     // all in one request
	request *request // in the making
	n       int      // requests so far
}

// begins starts the first request.
func (s *splitter) begins(one bool) {
	s.one, s.n = one, 0
	s.begin()
}

// begin starts the next request.
func (s *splitter) begin() {
	b := &s.p.batch
	if s.n == len(b.all) {
		b.all = append(b.all, &request{enc: s.p.format.New()})
	}
	s.request = b.all[s.n]
	s.request.begin()
	s.n++
}

// finish completes a request; an empty one is dropped.
func (s *splitter) finish() {
	if !s.request.finish() {
		s.n--
	}
}

// begin resets the request.
func (r *request) begin() {
	r.enc.Reset()
	*r = request{enc: r.enc}
}

// finish makes the body. It reports false if the request is empty.
func (r *request) finish() bool {
	if r.samples = r.enc.Samples(); r.samples == 0 {
		return false
	}
	r.body, r.err = r.enc.Body()
	return true
}

// Series implements seconds.Sink.
func (s *splitter) Series(f *table.Family, names, values []string) {
	if !s.one && s.request.enc.Samples() >= s.p.opts.MaxSamples {
		s.finish()
		s.begin()
	}
	s.labels.merge(names, values)
	s.request.enc.Series(f, s.labels.names, s.labels.values)
}

// Value implements seconds.Sink.
func (s *splitter) Value(unix int64, v float64) { s.request.enc.Value(unix, v) }

// Histogram implements seconds.Sink.
func (s *splitter) Histogram(unix int64, h *node.Histogram) { s.request.enc.Histogram(unix, h) }
