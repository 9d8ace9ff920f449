package otlp

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// batch is the spans of a request.
type batch struct {
	spans  []span // calls that are well-formed
	counts counts // of the others
	err    error  // what is wrong with the first malformed one
}

// maxSpans is how many spans of a request are kept at a time.
const maxSpans = 1 << 16

// add takes a span that is decoded.
func (b *batch) add(s *span) error {
	switch err := s.check(); {
	case err != nil:
		if b.counts[malformed]++; b.err == nil {
			b.err = err
		}
	case !s.kind.call():
		b.counts[internal]++
	case len(b.spans) == maxSpans:
		return errTooMany
	default:
		b.spans = append(b.spans, *s)
	}
	return nil
}

// Numbers of fields in OpenTelemetry's protocol.
const (
	requestResourceSpans                                         = 1
	resourceSpansResource, resourceSpansScopes                   = 1, 2
	resourceAttributes, scopeSpans                               = 1, 2
	spanTrace, spanID, spanState, spanParent, spanName, spanKind = 1, 2, 3, 4, 5, 6
	spanStart, spanEnd, spanAttributes, spanStatus, spanFlags    = 7, 8, 9, 15, 16
	statusCode, statusError                                      = 3, 2
	attributeKey, attributeValue                                 = 1, 2
	valueString, valueInt                                        = 1, 3
)

// field is one of a message: bytes, or a number.
type field struct {
	number protowire.Number
	bytes  []byte
	value  uint64
}

// each calls f for each field of a message that is bytes or a number.
func each(message []byte, f func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errHalf
		}
		message = message[n:]
		x := field{number: number}
		switch kind {
		case protowire.BytesType:
			x.bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			x.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			x.value, n = protowire.ConsumeFixed64(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			x.value = uint64(v)
		default:
			x.number, n = 0, protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errHalf
		}
		message = message[n:]
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls f for each message in the field of a number.
func eachOf(message []byte, number protowire.Number, f func([]byte) error) error {
	return each(message, func(x field) error {
		if x.number != number {
			return nil
		}
		return f(x.bytes)
	})
}

// protobuf decodes an ExportTraceServiceRequest. It reads the fields that count, and passes over others, however many there are.
func (b *batch) protobuf(request []byte) error {
	return eachOf(request, requestResourceSpans, func(of []byte) error {
		// So the message is read twice, and no span is kept without its service.
		var service []byte // the resource may come after its spans
		err := eachOf(of, resourceSpansResource, func(resource []byte) error {
			return eachOf(resource, resourceAttributes, func(attribute []byte) error {
				key, v, err := keyValue(attribute)
				if string(key) == "service.name" {
					service = v.text
				}
				return err
			})
		})
		if err != nil {
			return err
		}
		return eachOf(of, resourceSpansScopes, func(scope []byte) error {
			return eachOf(scope, scopeSpans, func(message []byte) error {
				s := span{service: service}
				if err := s.protobuf(message); err != nil {
					return err
				}
				return b.add(&s)
			})
		})
	})
}

// protobuf decodes a span.
func (s *span) protobuf(message []byte) error {
	return each(message, func(x field) (err error) {
		switch x.number {
		case spanTrace:
			s.trace = x.bytes
		case spanID:
			s.id = x.bytes
		case spanState:
			s.state = x.bytes
		case spanParent:
			s.parent = len(x.bytes) > 0
		case spanName:
			s.name = x.bytes
		case spanKind:
			s.kind = kind(min(x.value, 255))
		case spanStart:
			s.start = x.value
		case spanEnd:
			s.end = x.value
		case spanFlags:
			s.flags = x.value
		case spanStatus:
			return each(x.bytes, func(x field) error {
				if x.number == statusCode {
					s.failed = x.value == statusError
				}
				return nil
			})
		case spanAttributes:
			var key []byte
			var v value
			key, v, err = keyValue(x.bytes)
			s.set(key, v)
		}
		return err
	})
}

// keyValue decodes an attribute.
func keyValue(message []byte) (key []byte, v value, err error) {
	err = each(message, func(x field) error {
		switch x.number {
		case attributeKey:
			key = x.bytes
		case attributeValue:
			return each(x.bytes, func(x field) error {
				switch x.number {
				case valueString:
					v = value{text: x.bytes}
				case valueInt:
					v = value{number: int64(x.value), isNumber: true}
				}
				return nil
			})
		}
		return nil
	})
	return key, v, err
}
