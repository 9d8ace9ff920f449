package otlp

import (
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// protobuf decodes a request. It passes over unknown fields, however many there are.
func (b *batch) protobuf(body []byte) error { return b.protobufMessage(request, body) }

// protobufMessage decodes the fields of the message m. Unknown fields are passed over as a whole, so the recursion is
// never deeper than the table of fields.
//
// A field may occur more than once. The last value wins, as in every decoder of protobuf, except that repeated messages
// are decoded one after the other.
func (b *batch) protobufMessage(m *field, body []byte) error {
	for len(body) > 0 {
		number, wire, n := protowire.ConsumeTag(body)
		if n < 0 {
			return invalid("the message is not protobuf, or is truncated")
		}
		body = body[n:]
		i := slices.IndexFunc(m.fields, func(f *field) bool { return f.number == number && f.kind.wireType() == wire })
		if i < 0 {
			if n = protowire.ConsumeFieldValue(number, wire, body); n < 0 {
				return invalid("an unknown field is not protobuf, or is truncated")
			}
			body = body[n:]
			continue
		}
		// The values of text and of messages are slices of body. Nothing is copied.
		f := m.fields[i]
		v, n := protobufValue(f, body)
		if n < 0 {
			return f.in(invalid("the value is truncated"))
		}
		body = body[n:]
		if f.kind != message {
			f.set(b, v)
		} else if err := b.protobufMessage(f, v.text); err != nil {
			return f.in(err)
		}
	}
	return b.end(m)
}

// protobufValue decodes the value of a field. It returns the number of bytes, or a negative number if they are invalid.
func protobufValue(f *field, body []byte) (v value, n int) {
	v.isNumber = true
	var x uint64
	switch f.kind.wireType() {
	case protowire.VarintType:
		x, n = protowire.ConsumeVarint(body)
	case protowire.Fixed64Type:
		x, n = protowire.ConsumeFixed64(body)
	case protowire.Fixed32Type:
		var short uint32
		short, n = protowire.ConsumeFixed32(body)
		x = uint64(short)
	default:
		v.isNumber = false
		v.text, n = protowire.ConsumeBytes(body)
	}
	v.number = int64(x)
	if f.kind == double {
		v.number = fromDouble(math.Float64frombits(x))
	}
	return v, n
}
