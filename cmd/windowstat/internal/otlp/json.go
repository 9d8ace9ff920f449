package otlp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// json decodes a request. json.Valid refuses what is nested more than 10,000 deep, and only what the table of fields has is decoded.
func (b *batch) json(body []byte) error {
	if !json.Valid(body) {
		return errJSON
	}
	c := cursor{all: body}
	return b.jsonMessage(request, &c, c.token())
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

// jsonMessage decodes the message that begins with a token. There is none in null.
func (b *batch) jsonMessage(m *field, c *cursor, token []byte) error {
	switch token[0] {
	case 'n':
		return b.end(m)
	case '{':
	default:
		return errJSON
	}
	for key := c.token(); key[0] != '}'; key = c.token() {
		name, token := unquoted(key), c.token()
		i := slices.IndexFunc(m.of, func(f *field) bool { return f.name == string(name) })
		var err error
		switch {
		case i < 0 || token[0] == 'n':
			c.skip(token)
		case m.of[i].kind != message:
			err = b.jsonScalar(m.of[i], token)
		case token[0] == '[':
			for token = c.token(); token[0] != ']' && err == nil; token = c.token() {
				err = b.jsonMessage(m.of[i], c, token)
			}
		default:
			err = b.jsonMessage(m.of[i], c, token)
		}
		if err != nil {
			return err
		}
	}
	return b.end(m)
}

// jsonScalar decodes a field that is no message. An id that is not hex has no bytes, and is malformed.
func (b *batch) jsonScalar(f *field, token []byte) error {
	v := value{text: unquoted(token), isNumber: f.kind == integer}
	switch {
	case strings.IndexByte("{[tf", token[0]) >= 0:
		return errJSON
	case f.kind == integer:
		n, err := strconv.ParseUint(string(v.text), 10, 64)
		if v.number = int64(n); err != nil {
			v.number, err = strconv.ParseInt(string(v.text), 10, 64)
		}
		v.text = nil // a number is no text
		if err != nil {
			return errJSON
		}
	case f.kind == id:
		decoded, err := hex.AppendDecode(nil, v.text)
		if err != nil {
			decoded = nil
		}
		v.text = decoded
	}
	f.set(b, v)
	return nil
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
