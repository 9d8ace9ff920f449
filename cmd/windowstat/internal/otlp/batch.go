package otlp

import "slices"

// maxSpans is the maximum number of calls in a request.
const maxSpans = 1 << 16

// statusError is the status code of a span that has failed.
const statusError = 2

// batch collects the spans of a request while a decoder reads it. The decoder calls the set functions of the fields.
//
// A request contains resources, which contain scopes, which contain spans. The decoders report the end of each message
// after its fields, so a batch needs only one span, one attribute and one resource at a time. The spans refer to the
// bytes of the body: the owner of the batch must clear them before it releases the body.
type batch struct {
	// spans are the well-formed spans that are calls.
	spans []span
	// counts has the results of the other spans.
	counts counts
	// err is the error of the first malformed span.
	err error
	// full is errTooMany after maxSpans spans.
	full error

	// The parts that are being decoded.
	span span
	// key and value belong to an attribute.
	key   []byte
	value value
	// service belongs to a resource.
	service []byte
	// named is the number of spans whose service is set.
	named int
}

// attribute returns the attribute that has ended.
func (b *batch) attribute() (key []byte, v value) {
	key, v = b.key, b.value
	b.key, b.value = nil, value{}
	return key, v
}

// setResource records an attribute of a resource.
func (b *batch) setResource(value) {
	if key, v := b.attribute(); string(key) == "service.name" {
		b.service = v.text
	}
}

// endResource sets the service of the spans of a resource. In a message the resource may follow its spans.
func (b *batch) endResource(value) {
	for i := range b.spans[b.named:] {
		b.spans[b.named+i].service = b.service
	}
	// The next resource must not inherit the service.
	b.named, b.service = len(b.spans), nil
}

// endSpan adds the span that has ended, or counts it if it is not a call.
func (b *batch) endSpan(value) {
	// Malformed spans are rejected one by one: the others of the request count. Spans that are not calls are dropped
	// here, before they take memory: they are most spans of many services.
	switch err := b.span.check(); {
	case err != nil:
		if b.counts[malformed]++; b.err == nil {
			b.err = err
		}
	case !b.span.isCall():
		b.counts[internal]++
	case len(b.spans) == maxSpans:
		b.full = errTooMany
	default:
		if n := len(b.spans); n == cap(b.spans) {
			b.spans = slices.Grow(b.spans, max(n, 64)) // append would copy a large slice several times
		}
		b.spans = append(b.spans, b.span)
	}
	b.span = span{}
}
