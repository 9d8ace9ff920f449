package otlp

import "google.golang.org/protobuf/encoding/protowire"

// batch is the spans of a request, and what is decoded of the next one.
type batch struct {
	spans  []span // calls that are well-formed
	counts counts // of the others
	err    error  // what is wrong with the first malformed one
	full   error  // that there are too many

	span    span
	key     []byte // of an attribute
	value   value
	service []byte // of a resource
	named   int    // how many spans have theirs
}

// field is one of OpenTelemetry's protocol that is read: by its number in protobuf, by its name in JSON. What spans are made of is so
// written once, and a decoder has nothing to build: it calls what takes the field. A stranger's request costs little more than its bytes.
type field struct {
	number protowire.Number
	name   string
	kind   fieldKind
	of     []*field            // those of a message
	set    func(*batch, value) // takes the value; of a message, its end, or nil
}

type fieldKind uint8

const (
	message fieldKind = iota
	text
	id      // in JSON hex, which is not what protobuf's JSON has
	integer // in JSON a string or a number
)

var attributeFields = []*field{
	{1, "key", text, nil, func(b *batch, v value) { b.key = v.text }},
	{2, "value", message, []*field{
		{1, "stringValue", text, nil, func(b *batch, v value) { b.value = v }},
		{3, "intValue", integer, nil, func(b *batch, v value) { b.value = v }},
	}, nil},
}

var spanFields = []*field{
	{9, "attributes", message, attributeFields, func(b *batch, _ value) { b.span.set(b.attribute()) }}, // first: most fields are attributes
	{1, "traceId", id, nil, func(b *batch, v value) { b.span.trace = v.text }},
	{2, "spanId", id, nil, func(b *batch, v value) { b.span.id = v.text }},
	{3, "traceState", text, nil, func(b *batch, v value) { b.span.state = v.text }},
	{4, "parentSpanId", id, nil, func(b *batch, v value) { b.span.parent = len(v.text) > 0 }},
	{5, "name", text, nil, func(b *batch, v value) { b.span.name = v.text }},
	{6, "kind", integer, nil, func(b *batch, v value) { b.span.kind = kind(min(uint64(v.number), 255)) }},
	{7, "startTimeUnixNano", integer, nil, func(b *batch, v value) { b.span.start = uint64(v.number) }},
	{8, "endTimeUnixNano", integer, nil, func(b *batch, v value) { b.span.end = uint64(v.number) }},
	{15, "status", message, []*field{{3, "code", integer, nil, func(b *batch, v value) { b.span.failed = v.number == statusError }}}, nil},
	{16, "flags", integer, nil, func(b *batch, v value) { b.span.flags = uint64(v.number) }},
}

// statusError is the code of a span that has failed.
const statusError = 2

// request is an ExportTraceServiceRequest.
var request = &field{of: []*field{
	{1, "resourceSpans", message, []*field{
		{1, "resource", message, []*field{{1, "attributes", message, attributeFields, (*batch).resource}}, nil},
		{2, "scopeSpans", message, []*field{{2, "spans", message, spanFields, (*batch).add}}, nil},
	}, (*batch).name},
}}

// end ends a message.
func (b *batch) end(m *field) error {
	if m.set != nil {
		m.set(b, value{})
	}
	return b.full
}

// attribute returns the attribute that has ended.
func (b *batch) attribute() (key []byte, v value) {
	key, v = b.key, b.value
	b.key, b.value = nil, value{}
	return key, v
}

// resource takes an attribute of a resource.
func (b *batch) resource(value) {
	if key, v := b.attribute(); string(key) == "service.name" {
		b.service = v.text
	}
}

// name gives the spans of a resource their service: the resource may come after its spans.
func (b *batch) name(value) {
	for i := range b.spans[b.named:] {
		b.spans[b.named+i].service = b.service
	}
	b.named, b.service = len(b.spans), nil
}

// maxSpans is how many spans of a request are kept at a time.
const maxSpans = 1 << 16

// add takes a span that has ended.
func (b *batch) add(value) {
	switch err := b.span.check(); {
	case err != nil:
		if b.counts[malformed]++; b.err == nil {
			b.err = err
		}
	case !b.span.kind.call():
		b.counts[internal]++
	case len(b.spans) == maxSpans:
		b.full = errTooMany
	default:
		b.spans = append(b.spans, b.span)
	}
	b.span = span{}
}
