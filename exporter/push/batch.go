package push

import (
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// request is sent in one attempt, and resent unchanged until it is settled: a server that has it rejects it as a whole, and
// would reject new samples with it.
type request struct {
	enc       encoder
	body      []byte
	samples   int
	err       error // from encoding
	histogram bool  // it has one
	lastErr   error // of the last attempt
	doubt     bool  // an attempt ended without a clear result: the server may have it
	kept      bool  // the transport may still read the body
	errors    int   // responses with status 500
	rejected  int64 // samples that the server did not take of a request that it accepted
}

// batch is the seconds of a shard before one, which are sent together: in one request, or, if one second is larger than that, in
// several. The requests are resent unchanged until all of them are settled.
type batch struct {
	to       int64 // the second before which they are
	requests []*request
	logged   bool // they are from the log, so what the server refuses is too old, as a rule
	lost     bool // the server refused some of them: they are counted as lost, not as sent
}

// encode makes the requests of a shard for the seconds in [from, to).
func (p *Pusher) encode(s *shard, from, to int64) {
	x, n := splitter{sender: p.sender, labels: newLabels(p.opts.Labels)}, p.line.Count(from, to)
	x.one = n > 1
	for i, stream := range p.streams {
		stream.Emit(p.selection(i, s.slots), from, to, seconds.Limit{Seconds: n}, &x)
	}
	s.batch = batch{to: to, requests: x.finish()}
}

// splitter is a Sink that splits series into requests and adds the common labels.
type splitter struct {
	*sender
	labels labels
	one    bool   // all in one request, or in two if some families are apart
	full   func() // is called when a request is full, and takes what there is; nil to collect it
	all    []*request
	making [2]*request // those in the making: the second has the families that are apart
	now    *request    // the one that has the present series
}

// finish completes the requests; one that is empty is dropped.
func (s *splitter) finish() (all []*request) {
	for _, r := range s.all {
		if r.finish() {
			all = append(all, r)
		} else {
			s.free.Put(r)
		}
	}
	s.all, s.making = nil, [2]*request{}
	return all
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
	i := 0
	if s.opts.Format.apart(f) {
		i = 1
	}
	if s.now = s.making[i]; s.now == nil || !s.one && s.now.enc.Samples() >= s.opts.MaxSamples {
		if s.full != nil {
			s.full()
		}
		r := s.free.Get().(*request)
		r.enc.Reset()
		*r = request{enc: r.enc}
		s.all, s.making[i], s.now = append(s.all, r), r, r
	}
	s.labels.merge(names, values)
	s.now.enc.Series(f, s.labels.names, s.labels.values)
}

// Start implements seconds.Starter, for formats with cumulative series.
func (s *splitter) Start(unix int64) {
	if enc, ok := s.now.enc.(seconds.Starter); ok {
		enc.Start(unix)
	}
}

// Value implements seconds.Sink.
func (s *splitter) Value(unix int64, v float64) { s.now.enc.Value(unix, v) }

// Histogram implements seconds.Sink.
func (s *splitter) Histogram(unix int64, h *node.Histogram) {
	s.now.histogram = true
	s.now.enc.Histogram(unix, h)
}
