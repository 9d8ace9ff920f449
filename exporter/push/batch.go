package push

import (
	"bytes"
	"hash/fnv"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// request is sent in one attempt, and resent unchanged until it is settled: a server that has it rejects it as a whole, and
// would reject new samples with it.
type request struct {
	group    group
	body     []byte
	samples  int
	verdict  verdict // of the last attempt, and lastErr its error
	lastErr  error
	doubt    bool  // an attempt ended without a clear result: the server may have it
	errors   int   // responses with status 500
	rejected int64 // samples that the server did not take of a request that it accepted
}

// batch is the seconds from the position on and before one, which are sent together: in one request, or in several with a part of the
// series each. The requests are resent unchanged until all of them are settled.
type batch struct {
	to       int64 // the second before which they are
	requests []*request
	logged   bool // they are from the log, so what the server refuses is too old, as a rule
	lost     bool // the server refused some of them: they are counted as lost, not as sent
}

func (b *batch) add(r *request) { b.requests = append(b.requests, r) }

// maxParts is how many requests are on the way at a time, at most.
const maxParts = 16

// next makes the batch of the next seconds before open, one second at least and as many as fit into what can be on the way at a time, and
// saves that it is about to be sent.
func (p *Pusher) next(open int64) {
	second := seconds.Size{} // of one second
	for i, stream := range p.streams {
		second = second.Add(stream.Size(p.selection(i), p.at.Next))
	}
	fit := func(parts int) int64 {
		return seconds.Size{Samples: parts * p.opts.MaxSamples, Bytes: parts * maxBytes}.Fit(second)
	}
	n := min(p.line.Count(p.at.Next, open), max(fit(maxParts), 1))
	parts := 1
	for parts < maxParts && fit(parts) < n {
		parts++
	}
	clear(p.encoders[parts*int(groups):]) // the memory for what an outage has left
	p.batch = batch{to: p.line.After(p.at.Next, n)}
	// A request that is sent again after a kill is refused as a whole by a server that has some of it, so several seconds of a series
	// stay together.
	x := splitter{
		sender: p.sender, Labelled: NewLabelled(nil, p.opts.Labels), parts: parts, one: n > 1 || fit(maxParts) > 0, done: p.batch.add,
	}
	for i, stream := range p.streams {
		stream.Emit(p.selection(i), p.at.Next, p.batch.to, seconds.Limit{Seconds: n}, &x)
	}
	x.finish()
	p.save(p.batch.to, parts)
}

// maxBytes is about how long a request is at most, not compressed.
const maxBytes = 64 << 20

// selection returns what is sent of a stream: the selection of the resources, which are the first stream, and everything of the
// others.
func (p *sender) selection(stream int) *seconds.Selection {
	if stream > 0 {
		return new(seconds.Selection)
	}
	s := &seconds.Selection{Metrics: p.opts.Metrics, Resources: p.opts.Resources}
	if s.Sums, s.Histogram = p.opts.Format.temporality(); !p.opts.Histogram || p.noHistograms.Load() {
		s.Histogram = seconds.None
	}
	return s
}

// splitter is a Sink that splits series into requests, and adds the common labels. It uses the sender's encoders, so there is one at a
// time. Its own Sink is the encoder that has the present series.
type splitter struct {
	*sender
	*Labelled
	parts int            // among which the series are divided; all are in one if 0
	one   bool           // a part is one request of each group
	done  func(*request) // takes a request when it is complete
}

// part returns the part of a series, the same in each process.
func (s *splitter) part(f *table.Family, values []string) int {
	if s.parts <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(f.Name))
	for _, v := range values {
		_, _ = h.Write([]byte(v))
	}
	n := h.Sum32()
	return int((n ^ n>>16) % uint32(s.parts))
}

// finish completes the requests.
func (s *splitter) finish() {
	for i := range s.encoders {
		s.complete(i)
	}
}

// complete makes a request of what an encoder has, if it has any samples. The encoder keeps its body, which has room for much more, and
// is empty then: one with samples is a request in the making, and there is no other list of these.
func (s *splitter) complete(i int) {
	enc := s.encoders[i]
	if enc == nil {
		return
	}
	if n := enc.Samples(); n > 0 {
		s.done(&request{group: group(i % int(groups)), samples: n, body: bytes.Clone(enc.Body())})
	}
	enc.Reset()
}

// Series implements seconds.Sink.
func (s *splitter) Series(f *table.Family, names, values []string) {
	g := s.opts.Format.group(f)
	i := int(g)
	if g != histograms { // which are few
		i += s.part(f, values) * int(groups)
	}
	if s.encoders[i] == nil {
		s.encoders[i] = s.opts.Format.encoder()
	}
	if !s.one && s.encoders[i].Samples() >= s.opts.MaxSamples {
		s.complete(i)
	}
	s.Sink = s.encoders[i]
	s.Labelled.Series(f, names, values)
}
