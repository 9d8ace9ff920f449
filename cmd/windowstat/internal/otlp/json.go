package otlp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is what is read of a message in JSON: its fields by their names.
type message map[string]jsonField

// jsonField is one: of a message, in a list or not, or of a kind.
type jsonField struct {
	number protowire.Number
	kind   jsonKind
	of     message
}

type jsonKind uint8

const (
	single jsonKind = iota // message
	list                   // of messages
	text
	id      // in hex, which is not what protobuf's JSON has
	integer // of 64 bits, as a string or a number
	fixed   // the same, as eight bytes
)

var jsonAttributes = message{"key": {attributeKey, text, nil}, "value": {attributeValue, single, message{
	"stringValue": {valueString, text, nil}, "intValue": {valueInt, integer, nil},
}}}

var jsonSpan = message{
	"traceId": {spanTrace, id, nil}, "spanId": {spanID, id, nil}, "parentSpanId": {spanParent, id, nil},
	"traceState": {spanState, text, nil}, "name": {spanName, text, nil}, "kind": {spanKind, integer, nil}, "flags": {spanFlags, integer, nil},
	"startTimeUnixNano": {spanStart, fixed, nil}, "endTimeUnixNano": {spanEnd, fixed, nil},
	"attributes": {spanAttributes, list, jsonAttributes}, "status": {spanStatus, single, message{"code": {statusCode, integer, nil}}},
}

var jsonRequest = message{"resourceSpans": {requestResourceSpans, list, message{
	"resource":   {resourceSpansResource, single, message{"attributes": {resourceAttributes, list, jsonAttributes}}},
	"scopeSpans": {resourceSpansScopes, list, message{"spans": {scopeSpans, list, jsonSpan}}},
}}}

// json decodes an ExportTraceServiceRequest as OTLP writes it in JSON: it writes the fields that count as protobuf.
func (b *batch) json(request []byte) error {
	d := stream{json.NewDecoder(bytes.NewReader(request))}
	d.UseNumber()
	encoded, err := d.message(nil, jsonRequest)
	if err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errJSON
	}
	return b.protobuf(encoded)
}

// stream reads JSON token by token, which keeps what does not count out of the memory.
type stream struct{ *json.Decoder }

// message appends the fields of a message.
func (d stream) message(b []byte, of message) ([]byte, error) {
	err := d.within('{', func() error {
		key, err := d.Token()
		if err != nil {
			return errJSON
		}
		f, ok := of[key.(string)] // keys are strings, as the Decoder has checked
		switch {
		case !ok:
			return d.skip()
		case f.kind == list:
			return d.within('[', func() (err error) {
				b, err = d.nested(b, f)
				return err
			})
		case f.kind == single:
			b, err = d.nested(b, f)
		default:
			b, err = d.scalar(b, f)
		}
		return err
	})
	return b, err
}

// nested appends a message within a message.
func (d stream) nested(b []byte, f jsonField) ([]byte, error) {
	inner, err := d.message(nil, f.of)
	return protowire.AppendBytes(protowire.AppendTag(b, f.number, protowire.BytesType), inner), err
}

// scalar appends a field that is no message. An id that is not hex has no bytes, and is malformed.
func (d stream) scalar(b []byte, f jsonField) ([]byte, error) {
	token, err := d.Token()
	if err != nil {
		return b, errJSON
	}
	var s string
	switch v := token.(type) {
	case nil:
		return b, nil
	case string:
		s = v
	case json.Number:
		s = v.String()
	default:
		return b, errJSON
	}
	switch f.kind {
	case text:
		return protowire.AppendString(protowire.AppendTag(b, f.number, protowire.BytesType), s), nil
	case id:
		decoded, _ := hex.DecodeString(s)
		return protowire.AppendBytes(protowire.AppendTag(b, f.number, protowire.BytesType), decoded), nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		var signed int64
		if signed, err = strconv.ParseInt(s, 10, 64); err != nil {
			return b, errJSON
		}
		n = uint64(signed)
	}
	if f.kind == fixed {
		return protowire.AppendFixed64(protowire.AppendTag(b, f.number, protowire.Fixed64Type), n), nil
	}
	return protowire.AppendVarint(protowire.AppendTag(b, f.number, protowire.VarintType), n), nil
}

// within calls f while there is more between a delimiter and its other half; null is an empty object or array.
func (d stream) within(begin json.Delim, f func() error) error {
	switch t, err := d.Token(); {
	case err == nil && t == nil:
		return nil
	case err != nil || t != begin:
		return errJSON
	}
	for d.More() {
		if err := f(); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errJSON
	}
	return nil
}

// skip passes over a value.
func (d stream) skip() error {
	if d.Decode(new(skipped)) != nil {
		return errJSON
	}
	return nil
}

// skipped is a value that is not kept.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }
