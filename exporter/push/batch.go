package push

import (
	"bytes"
	"hash/fnv"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// request is the body of one attempt. It is resent unchanged until it is settled: a server that already has it rejects
// it as a whole, and would also reject new samples in it.
type request struct {
	format   Format
	group    group
	body     []byte
	samples  int
	verdict  verdict // result of the last attempt
	lastErr  error   // error of the last attempt
	doubt    bool    // the server may have the samples from an attempt with an unclear result
	errors   int     // number of responses with status 500
	rejected int64   // samples that the server dropped from an accepted request
}

// batch holds the requests for the seconds from the position up to, but not including, to. All samples are in one
// request, or in several requests that each contain a part of the series. The requests are resent unchanged until all
// of them are settled.
type batch struct {
	to       int64 // first second after the batch
	requests []*request
	logged   bool // the seconds are from the log; the server usually refuses them because they are too old
	lost     bool // the server refused samples; the seconds count as lost, not as sent
}

// add adds a request.
func (b *batch) add(r *request) { b.requests = append(b.requests, r) }

// maxParts is the maximum number of requests in progress.
const maxParts = 16

// next encodes the batch of the next seconds before open. It takes at least one second, and as many as fit into the
// requests that may be in progress at a time. Then it saves that the batch is about to be sent.
func (p *Pusher) next(open int64) {
	second := seconds.Size{} // size of one second
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
	// Seconds that an earlier process may have sent are sent as before. A server that has some of them then refuses
	// exactly the same requests.
	resent := p.at.InDoubt()
	if resent {
		n, parts = p.line.Count(p.at.Next, p.at.UnackedTo), max(p.at.Parts, 1)
	}
	clear(p.encoders[parts*int(groups):]) // free the memory that the parts of an outage needed
	p.batch = batch{to: p.line.After(p.at.Next, n)}
	// A server that has some samples of a request refuses the whole request when it is resent after a kill. Several
	// seconds of a series therefore stay in one request.
	x := splitter{
		sender: p.sender, Labelled: NewLabelled(nil, p.opts.Labels), parts: parts,
		whole: n > 1 || fit(maxParts) > 0, done: p.batch.add,
	}
	for i, stream := range p.streams {
		p.batch.to = stream.Emit(p.selection(i), p.at.Next, p.batch.to, seconds.Limit{Seconds: n}, &x)
	}
	x.finish()
	for _, r := range p.batch.requests {
		r.doubt = resent
	}
	p.save(p.batch.to, parts)
}

// maxBytes is the approximate maximum length of a request before compression.
const maxBytes = 64 << 20

// selection returns the selection for a stream: the configured selection for stream 0, the resources, and everything
// for the other streams.
func (p *sender) selection(stream int) *seconds.Selection {
	if stream > 0 {
		return new(seconds.Selection)
	}
	s := &seconds.Selection{Metrics: p.opts.Metrics, Resources: p.opts.Resources}
	if s.Sums, s.Histogram = p.format().temporality(); !p.opts.Histogram || p.noHistograms.Load() {
		s.Histogram = seconds.None
	}
	return s
}

// formatEncoder is an encoder with its format.
type formatEncoder struct {
	encoder
	format Format
}

// splitter is a Sink that distributes series among requests and adds the common labels. It uses the encoders of the
// sender, so only one splitter may be in use at a time. Its embedded Sink is the encoder of the current series.
type splitter struct {
	*sender
	*Labelled
	parts int            // number of parts of the series; 0 and 1 mean no division
	whole bool           // do not split a part of a group at MaxSamples
	done  func(*request) // receives each complete request
}

// part returns the part of a series. The result is the same in every process.
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

// finish completes all requests.
func (s *splitter) finish() {
	for i := range s.encoders {
		s.complete(i)
	}
}

// complete creates a request from the samples of an encoder, if it has any, and resets the encoder. The request gets a
// copy of the body, because the encoder keeps its much larger buffer. A request is incomplete exactly while its encoder
// has samples; no separate list of incomplete requests exists.
func (s *splitter) complete(i int) {
	enc := s.encoders[i]
	if enc.encoder == nil {
		return
	}
	if n := enc.Samples(); n > 0 {
		g := group(i % int(groups))
		s.done(&request{format: enc.format, group: g, samples: n, body: bytes.Clone(enc.Body())})
	}
	if enc.Reset(); enc.format != s.format() { // the server does not accept the format
		s.encoders[i] = formatEncoder{}
	}
}

// Series implements seconds.Sink.
func (s *splitter) Series(f *table.Family, names, values []string) {
	g := s.format().group(f)
	i := int(g)
	if g != histograms { // histograms are few and need no division
		i += s.part(f, values) * int(groups)
	}
	if !s.whole && s.encoders[i].encoder != nil && s.encoders[i].Samples() >= s.opts.MaxSamples {
		s.complete(i)
	}
	if s.encoders[i].encoder == nil {
		format := s.format()
		s.encoders[i] = formatEncoder{format.encoder(), format}
	}
	s.Sink = s.encoders[i].encoder
	s.Labelled.Series(f, names, values)
}
