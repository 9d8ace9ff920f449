package push

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendHead appends what is before a message of this size.
func appendHead(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

func appendString[T string | []byte](b []byte, field protowire.Number, text T) []byte {
	return append(appendHead(b, field, len(text)), text...)
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFixed(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return appendFixed(b, field, math.Float64bits(v))
}

// sizeString is how much appendString appends, for a message around it.
func sizeString[T string | []byte](field protowire.Number, text T) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(len(text))
}

// sizeVarint is how much appendVarint appends.
func sizeVarint(field protowire.Number, v uint64) int {
	return protowire.SizeTag(field) + protowire.SizeVarint(v)
}

// eachField calls f for each varint and each string or message of a protobuf message. The message may be cut off: then so is its last
// string.
func eachField(b []byte, f func(no protowire.Number, v uint64, text []byte)) {
	for len(b) > 0 {
		no, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.VarintType && kind != protowire.BytesType {
			return
		}
		v, size := protowire.ConsumeVarint(b[n:])
		if size < 0 {
			return
		}
		var text []byte
		if b = b[n+size:]; kind == protowire.BytesType {
			end := min(v, uint64(len(b)))
			text, b = b[:end], b[end:]
		}
		f(no, v, text)
	}
}
