package otlp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is what is read of a message in JSON: its fields by their names.
type message map[string]jsonField

// jsonField is one: of a kind, or a message, or a list of messages. The zero value is one that is not read.
type jsonField struct {
	number protowire.Number
	kind   jsonKind
	of     message
}

type jsonKind uint8

const (
	text    jsonKind = iota + 1
	id               // in hex, which is not what protobuf's JSON has
	integer          // of 64 bits, as a string or a number
	inner            // a message
)

var jsonAttributes = message{"key": {attributeKey, text, nil}, "value": {attributeValue, inner, message{
	"stringValue": {valueString, text, nil}, "intValue": {valueInt, integer, nil},
}}}

var jsonSpan = message{
	"traceId": {spanTrace, id, nil}, "spanId": {spanID, id, nil}, "parentSpanId": {spanParent, id, nil},
	"traceState": {spanState, text, nil}, "name": {spanName, text, nil}, "kind": {spanKind, integer, nil}, "flags": {spanFlags, integer, nil},
	"startTimeUnixNano": {spanStart, integer, nil}, "endTimeUnixNano": {spanEnd, integer, nil},
	"attributes": {spanAttributes, inner, jsonAttributes}, "status": {spanStatus, inner, message{"code": {statusCode, integer, nil}}},
}

var jsonRequest = message{"resourceSpans": {requestResourceSpans, inner, message{
	"resource":   {resourceSpansResource, inner, message{"attributes": {resourceAttributes, inner, jsonAttributes}}},
	"scopeSpans": {resourceSpansScopes, inner, message{"spans": {scopeSpans, inner, jsonSpan}}},
}}}

// json decodes an ExportTraceServiceRequest as OTLP writes it in JSON: it writes the fields that count as protobuf. So one function knows
// what spans are made of, and where the resource may stand.
//
// A stranger's JSON costs little more than its bytes: nothing is made of what is not read, and what is read takes less in protobuf.
// json.Valid refuses what is nested more than 10,000 deep, and message goes only as deep as its table.
func (b *batch) json(request []byte) error {
	if !json.Valid(request) {
		return errJSON
	}
	c := cursor{all: request}
	encoded, err := c.message(make([]byte, 0, len(request)/2), jsonRequest, c.token())
	if err != nil {
		return err
	}
	return b.protobuf(encoded)
}

// cursor reads JSON that is valid. So what begins is whole, and nothing is to be learnt from commas and colons.
type cursor struct {
	all []byte
	at  int
}

// token passes over the next bracket, string, number or word, and returns it.
func (c *cursor) token() []byte {
	all, at := c.all, c.at
	for all[at] <= ' ' || all[at] == ',' || all[at] == ':' {
		at++
	}
	begin := at
	switch all[at] {
	case '{', '}', '[', ']':
	case '"':
		for at++; all[at] != '"'; at++ {
			if all[at] == '\\' {
				at++ // what follows is no end
			}
		}
	default:
		for at+1 < len(all) && all[at+1] > ' ' && all[at+1] != ',' && all[at+1] != ']' && all[at+1] != '}' {
			at++
		}
	}
	c.at = at + 1
	return all[begin:c.at]
}

// skip passes over the value that begins with a token.
func (c *cursor) skip(token []byte) {
	for depth := 0; ; token = c.token() {
		switch token[0] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			return
		}
	}
}

// message appends the fields of the message that begins with a token. There is none in null.
func (c *cursor) message(b []byte, of message, token []byte) ([]byte, error) {
	if token[0] == 'n' {
		return b, nil
	}
	if token[0] != '{' {
		return b, errJSON
	}
	for key := c.token(); key[0] != '}'; key = c.token() {
		f, token := of[string(unquoted(key))], c.token()
		var err error
		switch {
		case f.kind == 0 || token[0] == 'n':
			c.skip(token)
		case f.kind != inner:
			b, err = appendScalar(b, f, token)
		case token[0] == '[':
			for token = c.token(); token[0] != ']' && err == nil; token = c.token() {
				b, err = c.nested(b, f, token)
			}
		default:
			b, err = c.nested(b, f, token)
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// nested appends a message within a message. Its length stands before it, and is known when it is written.
func (c *cursor) nested(b []byte, f jsonField, token []byte) ([]byte, error) {
	b = protowire.AppendTag(b, f.number, protowire.BytesType)
	begin := len(b)
	b, err := c.message(b, f.of, token)
	var length [10]byte
	return slices.Insert(b, begin, protowire.AppendVarint(length[:0], uint64(len(b)-begin))...), err
}

// appendScalar appends a field that is no message. An id that is not hex has no bytes, and is malformed.
func appendScalar(b []byte, f jsonField, token []byte) ([]byte, error) {
	v := unquoted(token)
	switch {
	case strings.IndexByte("{[tf", token[0]) >= 0:
		return b, errJSON
	case f.kind == integer:
		n, err := strconv.ParseUint(string(v), 10, 64)
		if signed, negative := strconv.ParseInt(string(v), 10, 64); negative == nil {
			n, err = uint64(signed), nil
		}
		if err != nil {
			return b, errJSON
		}
		return protowire.AppendVarint(protowire.AppendTag(b, f.number, protowire.VarintType), n), nil
	case f.kind == id:
		decoded, err := hex.AppendDecode(nil, v)
		if err != nil {
			decoded = nil
		}
		v = decoded
	}
	return protowire.AppendBytes(protowire.AppendTag(b, f.number, protowire.BytesType), v), nil
}

// unquoted returns what a string says, and any other token as it is.
func unquoted(token []byte) []byte {
	if token[0] != '"' {
		return token
	}
	if bytes.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1]
	}
	var s string
	_ = json.Unmarshal(token, &s) // it is valid
	return []byte(s)
}
