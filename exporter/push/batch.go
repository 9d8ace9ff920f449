package push

import (
	"bytes"
	"slices"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// request is sent in one attempt, and resent unchanged until it is settled: a server that has it rejects it as a whole, and
// would reject new samples with it.
type request struct {
	body      []byte
	samples   int
	err       error // from encoding
	histogram bool  // it has one
	lastErr   error // of the last attempt
	doubt     bool  // an attempt ended without a clear result: the server may have it
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
	p.encoding.Lock()
	defer p.encoding.Unlock()
	x, n := splitter{sender: p.sender, labels: newLabels(p.opts.Labels)}, p.line.Count(from, to)
	x.one = n > 1
	for i, stream := range p.streams {
		stream.Emit(p.selection(i, s.slots), from, to, seconds.Limit{Seconds: n}, &x)
	}
	s.batch = batch{to: to, requests: x.finish()}
}

// splitter is a Sink that splits series into requests and adds the common labels. Whoever shares the sender holds its encoding.
type splitter struct {
	*sender
	labels labels
	one    bool   // all in one request, or in two if some families are apart
	full   func() // is called when a request is full, and takes what there is; nil to collect it
	all    []*request
	making [2]*request // those in the making, by the encoders: the second has the families that are apart
	now    int         // the one that has the present series
}

// finish completes the requests; one that is empty is dropped.
func (s *splitter) finish() []*request {
	s.complete(0)
	s.complete(1)
	all := slices.DeleteFunc(s.all, func(r *request) bool { return r.samples == 0 })
	s.all = nil
	return all
}

// complete makes the body of a request in the making. The encoder keeps its own, which has room for much more.
func (s *splitter) complete(i int) {
	r, enc := s.making[i], s.encoders[i]
	s.making[i] = nil
	if r == nil || enc.Samples() == 0 {
		return
	}
	body, err := enc.Body()
	r.samples, r.body, r.err = enc.Samples(), bytes.Clone(body), err
}

// Series implements seconds.Sink.
func (s *splitter) Series(f *table.Family, names, values []string) {
	i := 0
	if s.opts.Format.apart(f) {
		i = 1
	}
	if s.now = i; s.making[i] == nil || !s.one && s.encoders[i].Samples() >= s.opts.MaxSamples {
		if s.complete(i); s.full != nil {
			s.full()
		}
		s.encoders[i].Reset()
		s.making[i] = new(request)
		s.all = append(s.all, s.making[i])
	}
	s.labels.merge(names, values)
	s.encoders[i].Series(f, s.labels.names, s.labels.values)
}

// Start implements seconds.Starter, for formats with cumulative series.
func (s *splitter) Start(unix int64) {
	if enc, ok := s.encoders[s.now].(seconds.Starter); ok {
		enc.Start(unix)
	}
}

// Value implements seconds.Sink.
func (s *splitter) Value(unix int64, v float64) { s.encoders[s.now].Value(unix, v) }

// Histogram implements seconds.Sink.
func (s *splitter) Histogram(unix int64, h *node.Histogram) {
	s.making[s.now].histogram = true
	s.encoders[s.now].Histogram(unix, h)
}
