package otlp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is what is read of a message in JSON: its fields by their names.
type message map[string]jsonField

// jsonField is one: of a message, or of messages in a list, or of a kind.
type jsonField struct {
	number protowire.Number
	kind   jsonKind
	of     message
}

type jsonKind uint8

const (
	inner jsonKind = iota
	text
	id      // in hex, which is not what protobuf's JSON has
	integer // of 64 bits, as a string or a number
	fixed   // the same, as eight bytes
)

var jsonAttributes = message{"key": {attributeKey, text, nil}, "value": {attributeValue, inner, message{
	"stringValue": {valueString, text, nil}, "intValue": {valueInt, integer, nil},
}}}

var jsonSpan = message{
	"traceId": {spanTrace, id, nil}, "spanId": {spanID, id, nil}, "parentSpanId": {spanParent, id, nil},
	"traceState": {spanState, text, nil}, "name": {spanName, text, nil}, "kind": {spanKind, integer, nil}, "flags": {spanFlags, integer, nil},
	"startTimeUnixNano": {spanStart, fixed, nil}, "endTimeUnixNano": {spanEnd, fixed, nil},
	"attributes": {spanAttributes, inner, jsonAttributes}, "status": {spanStatus, inner, message{"code": {statusCode, integer, nil}}},
}

var jsonRequest = message{"resourceSpans": {requestResourceSpans, inner, message{
	"resource":   {resourceSpansResource, inner, message{"attributes": {resourceAttributes, inner, jsonAttributes}}},
	"scopeSpans": {resourceSpansScopes, inner, message{"spans": {scopeSpans, inner, jsonSpan}}},
}}}

// json decodes an ExportTraceServiceRequest as OTLP writes it in JSON: it writes the fields that count as protobuf.
func (b *batch) json(request []byte) error {
	if !json.Valid(request) {
		return errJSON
	}
	c := cursor{all: request}
	encoded, err := c.message(make([]byte, 0, len(request)/2), jsonRequest)
	if err != nil {
		return err
	}
	return b.protobuf(encoded)
}

// cursor is where the reading of JSON is. That is valid, so what begins is whole, and no end has to be looked for.
type cursor struct {
	all []byte
	at  int
}

// message appends the fields of a message.
func (c *cursor) message(b []byte, of message) ([]byte, error) {
	err := c.each('{', func() (err error) {
		key := c.text()
		c.next()
		c.at++ // the colon
		f, ok := of[string(key)]
		switch {
		case !ok:
			c.skip()
		case f.kind != inner:
			b, err = c.scalar(b, f)
		case c.next() == '[':
			err = c.each('[', func() (err error) {
				b, err = c.nested(b, f)
				return err
			})
		default:
			b, err = c.nested(b, f)
		}
		return err
	})
	return b, err
}

// nested appends a message within a message.
func (c *cursor) nested(b []byte, f jsonField) ([]byte, error) {
	b = protowire.AppendTag(b, f.number, protowire.BytesType)
	begin := len(b)
	b, err := c.message(b, f.of)
	var length [10]byte
	return slices.Insert(b, begin, protowire.AppendVarint(length[:0], uint64(len(b)-begin))...), err
}

// scalar appends a field that is no message. An id that is not hex has no bytes, and is malformed.
func (c *cursor) scalar(b []byte, f jsonField) ([]byte, error) {
	var v []byte
	switch first := c.next(); {
	case first == 'n':
		c.skip()
		return b, nil
	case first == '"':
		v = c.text()
	case first == '-' || '0' <= first && first <= '9':
		v = c.skip()
	default:
		return b, errJSON
	}
	switch f.kind {
	case text:
		return protowire.AppendBytes(protowire.AppendTag(b, f.number, protowire.BytesType), v), nil
	case id:
		decoded, err := hex.AppendDecode(nil, v)
		if err != nil {
			decoded = nil
		}
		return protowire.AppendBytes(protowire.AppendTag(b, f.number, protowire.BytesType), decoded), nil
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		var signed int64
		if signed, err = strconv.ParseInt(string(v), 10, 64); err != nil {
			return b, errJSON
		}
		n = uint64(signed)
	}
	if f.kind == fixed {
		return protowire.AppendFixed64(protowire.AppendTag(b, f.number, protowire.Fixed64Type), n), nil
	}
	return protowire.AppendVarint(protowire.AppendTag(b, f.number, protowire.VarintType), n), nil
}

// next passes over white space, and returns what comes then.
func (c *cursor) next() byte {
	for c.all[c.at] <= ' ' {
		c.at++
	}
	return c.all[c.at]
}

// each calls f for each element of an array, or each key of an object. There is none in null.
func (c *cursor) each(begin byte, f func() error) error {
	switch c.next() {
	case 'n':
		c.skip()
		return nil
	case begin:
	default:
		return errJSON
	}
	c.at++
	for end := begin + 2; c.next() != end; { // in ASCII
		if c.all[c.at] == ',' {
			c.at++
			c.next()
		}
		if err := f(); err != nil {
			return err
		}
	}
	c.at++
	return nil
}

// text passes over a string, and returns it.
func (c *cursor) text() []byte {
	quoted := c.skip()
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is valid
	return []byte(s)
}

// skip passes over a value, and returns it.
func (c *cursor) skip() []byte {
	c.next()
	begin, depth := c.at, 0
	for {
		switch c.all[c.at] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			for c.at++; c.all[c.at] != '"'; c.at++ {
				if c.all[c.at] == '\\' {
					c.at++ // what follows is no end
				}
			}
		}
		c.at++
		// A string, an object and an array are over by themselves, a word or a number where something else begins.
		if depth == 0 && (c.at == len(c.all) || c.all[c.at] <= ' ' || bytes.IndexByte(ends, c.all[c.at]) >= 0) {
			return c.all[begin:c.at]
		}
	}
}

// ends are what may come after a value or a key, besides white space.
var ends = []byte(",:]}")
