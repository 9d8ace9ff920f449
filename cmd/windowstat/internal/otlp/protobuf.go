package otlp

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// protobuf decodes a request. It passes over the fields that do not count, however many there are.
func (b *batch) protobuf(body []byte) error { return b.protobufMessage(request, body) }

func (b *batch) protobufMessage(m *field, body []byte) error {
	for len(body) > 0 {
		number, kind, n := protowire.ConsumeTag(body)
		if n < 0 {
			return errHalf
		}
		body = body[n:]
		v, x := value{isNumber: kind != protowire.BytesType}, uint64(0)
		switch kind {
		case protowire.BytesType:
			v.text, n = protowire.ConsumeBytes(body)
		case protowire.VarintType:
			x, n = protowire.ConsumeVarint(body)
		case protowire.Fixed64Type:
			x, n = protowire.ConsumeFixed64(body)
		case protowire.Fixed32Type:
			var short uint32
			short, n = protowire.ConsumeFixed32(body)
			x = uint64(short)
		default:
			number, n = 0, protowire.ConsumeFieldValue(number, kind, body)
		}
		if n < 0 {
			return errHalf
		}
		body, v.number = body[n:], int64(x)
		// A field of another type than its own is another field, as for all decoders of protobuf.
		i := slices.IndexFunc(m.of, func(f *field) bool { return f.number == number && (f.kind == integer) == v.isNumber })
		switch {
		case i < 0:
		case m.of[i].kind == message:
			if err := b.protobufMessage(m.of[i], v.text); err != nil {
				return err
			}
		default:
			m.of[i].set(b, v)
		}
	}
	return b.end(m)
}
