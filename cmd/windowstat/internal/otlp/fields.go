package otlp

import "google.golang.org/protobuf/encoding/protowire"

// field is a field of OTLP's messages that windowstat uses, with its number in protobuf and its name in JSON.
//
// Both decoders walk the same table of fields and pass over all other fields. They build no intermediate objects, so a
// request with any content costs little more memory than its bytes.
type field struct {
	number protowire.Number
	name   string
	kind   fieldKind
	// fields are the fields of a message.
	fields []*field
	// set receives the value of the field. For a message it is called at the end, with the zero value, and may be nil.
	set func(*batch, value)
}

// fieldKind is the type of a field.
type fieldKind uint8

const (
	message fieldKind = iota
	text
	// id is bytes. In JSON it has hexadecimal digits, unlike in protobuf's JSON.
	id
	// integer is a varint. In JSON it is a number or a string.
	integer
	// fixed64 has eight bytes. In JSON it is like integer.
	fixed64
	// fixed32 has four bytes. In JSON it is like integer.
	fixed32
	// double is a number or a string in JSON.
	double
	// spanKind is an enumeration. In JSON it is a number, a string with a number, or a name.
	spanKind
	// statusCode is an enumeration, like spanKind.
	statusCode
)

// wireType returns the type in protobuf. A field of another type is a different, unknown field for every decoder of
// protobuf. The decoder therefore compares number and type together.
func (k fieldKind) wireType() protowire.Type {
	switch k {
	case integer, spanKind, statusCode:
		return protowire.VarintType
	case fixed64, double:
		return protowire.Fixed64Type
	case fixed32:
		return protowire.Fixed32Type
	}
	return protowire.BytesType
}

// enumNames are the names of the values of enumerations. OTLP demands numbers in JSON, but senders that use protobuf's
// JSON write names.
var enumNames = map[fieldKind]map[string]int64{
	spanKind: {
		"SPAN_KIND_UNSPECIFIED": 0, "SPAN_KIND_INTERNAL": 1, "SPAN_KIND_SERVER": 2, "SPAN_KIND_CLIENT": 3,
		"SPAN_KIND_PRODUCER": 4, "SPAN_KIND_CONSUMER": 5,
	},
	statusCode: {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": statusError},
}

// enumTypes are the names of the enumerations, for errors.
var enumTypes = map[fieldKind]string{spanKind: "SpanKind", statusCode: "StatusCode"}

// attributeFields are the fields of a KeyValue. Of the seven types of values, three can hold a name or a number.
var attributeFields = []*field{
	{1, "key", text, nil, func(b *batch, v value) { b.key = v.text }},
	{2, "value", message, []*field{
		{1, "stringValue", text, nil, func(b *batch, v value) { b.value = v }},
		{3, "intValue", integer, nil, func(b *batch, v value) { b.value = v }},
		{4, "doubleValue", double, nil, func(b *batch, v value) { b.value = v }},
	}, nil},
}

// spanFields are the fields of a Span. Events and links are not read.
var spanFields = []*field{
	// Attributes come first, because most fields of a span are attributes and the search is linear.
	{9, "attributes", message, attributeFields, func(b *batch, _ value) { b.span.set(b.attribute()) }},
	{1, "traceId", id, nil, func(b *batch, v value) { b.span.trace = v.text }},
	{2, "spanId", id, nil, func(b *batch, v value) { b.span.id = v.text }},
	{3, "traceState", text, nil, func(b *batch, v value) { b.span.state = v.text }},
	{4, "parentSpanId", id, nil, func(b *batch, v value) { b.span.parent = len(v.text) > 0 }},
	{5, "name", text, nil, func(b *batch, v value) { b.span.name = v.text }},
	{6, "kind", spanKind, nil, func(b *batch, v value) { b.span.kind = kind(min(uint64(v.number), 255)) }},
	{7, "startTimeUnixNano", fixed64, nil, func(b *batch, v value) { b.span.start = uint64(v.number) }},
	{8, "endTimeUnixNano", fixed64, nil, func(b *batch, v value) { b.span.end = uint64(v.number) }},
	{15, "status", message, []*field{
		{3, "code", statusCode, nil, func(b *batch, v value) { b.span.failed = v.number == statusError }},
	}, nil},
	{16, "flags", fixed32, nil, func(b *batch, v value) { b.span.flags = uint64(v.number) }},
}

// request is an ExportTraceServiceRequest.
var request = &field{fields: []*field{
	{1, "resourceSpans", message, []*field{
		{1, "resource", message, []*field{{1, "attributes", message, attributeFields, (*batch).setResource}}, nil},
		{2, "scopeSpans", message, []*field{{2, "spans", message, spanFields, (*batch).endSpan}}, nil},
	}, (*batch).endResource},
}}

// end ends a message. It calls the set function of the message, which uses the decoded parts, and
// reports whether the batch can accept more.
func (b *batch) end(m *field) error {
	if m.set != nil {
		m.set(b, value{})
	}
	return b.full
}

// in adds the name of the field f to the path in the failure of its value. The decoders call it at each level on the
// way up, so the path costs nothing while a message is valid. Other failures, such as too many spans, have no field.
func (f *field) in(err error) error {
	switch x, ok := err.(*failure); {
	case !ok || x.reason != invalidMessage:
	case x.field == "":
		x.field = f.name
	default:
		x.field = f.name + "." + x.field
	}
	return err
}
