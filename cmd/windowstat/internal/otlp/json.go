package otlp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// json decodes a request. It decodes only the fields in the table. json.Valid refuses messages with more than 10,000
// levels, so the recursion is bounded.
func (b *batch) json(body []byte) error {
	if !json.Valid(body) {
		return invalid(jsonError(body))
	}
	// The message is scanned twice: json.Valid is fast, and the cursor needs no checks after it.
	c := cursor{all: body}
	return b.jsonMessage(request, &c, c.token())
}

// jsonError describes the syntax error in a message that is not JSON.
func jsonError(body []byte) string {
	// json.Valid reports no position, so the invalid message is scanned a second time.
	var syntax *json.SyntaxError
	if err := json.Unmarshal(body, new(json.RawMessage)); errors.As(err, &syntax) {
		return fmt.Sprintf(
			"the message is not JSON: %s at byte %d",
			strconv.QuoteToASCII(syntax.Error()),
			syntax.Offset,
		)
	}
	return "the message is not JSON"
}

// cursor splits valid JSON into tokens. Because the JSON is valid, every value is complete, and commas and colons carry
// no information.
type cursor struct {
	all []byte
	at  int
}

// token returns the next bracket, string, number or word.
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
				at++ // an escaped quote does not end the string
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

// skip passes over the value that begins with token.
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

// jsonMessage decodes the message that begins with token. The token null is a message without fields.
func (b *batch) jsonMessage(m *field, c *cursor, token []byte) error {
	switch token[0] {
	case 'n':
		return b.end(m)
	case '{':
	default:
		return invalid(describe(token) + " is not an object")
	}
	for key := c.token(); key[0] != '}'; key = c.token() {
		// A field with the value null is absent. Unknown fields are passed over, as the protocol demands.
		name, token := unquoted(key), c.token()
		i := slices.IndexFunc(m.fields, func(f *field) bool { return f.name == string(name) })
		if i < 0 || token[0] == 'n' {
			c.skip(token)
			continue
		}
		if err := b.jsonField(m.fields[i], c, token); err != nil {
			return m.fields[i].in(err)
		}
	}
	return b.end(m)
}

// jsonField decodes the value of a field, which begins with token. A message may be repeated, in an array.
func (b *batch) jsonField(f *field, c *cursor, token []byte) error {
	switch {
	case f.kind != message:
		return b.jsonScalar(f, token)
	case token[0] != '[':
		return b.jsonMessage(f, c, token)
	}
	for token = c.token(); token[0] != ']'; token = c.token() {
		if err := b.jsonMessage(f, c, token); err != nil {
			return err
		}
	}
	return nil
}

// jsonScalar decodes the value of a field that is not a message. An ID that is not hexadecimal becomes empty: its span
// is malformed, but the request is valid.
func (b *batch) jsonScalar(f *field, token []byte) error {
	if strings.IndexByte("{[tf", token[0]) >= 0 {
		return invalid(describe(token) + " is neither a string nor a number")
	}
	// Numbers may be in quotes: JavaScript cannot represent 64 bits in a number.
	v := value{text: unquoted(token)}
	switch f.kind {
	case text:
	case id:
		decoded, err := hex.AppendDecode(nil, v.text)
		if err != nil {
			decoded = nil
		}
		v.text = decoded
	default:
		number, err := jsonNumber(f.kind, string(v.text))
		if err != nil {
			return invalid(describe(token) + err.Error())
		}
		v = value{number: number, isNumber: true}
	}
	f.set(b, v)
	return nil
}

// jsonNumber parses a number, or the name of a value of an enumeration. The error continues a sentence that begins with
// the value.
func jsonNumber(k fieldKind, s string) (int64, error) {
	if k == double {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, errors.New(" is not a number")
		}
		return fromDouble(x), nil
	}
	if n, ok := enumNames[k][s]; ok {
		return n, nil
	}
	// Times in nanoseconds and flags are unsigned, and the values of attributes are signed.
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return int64(u), nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil:
		return n, nil
	case enumTypes[k] != "":
		return 0, errors.New(" is not a " + enumTypes[k])
	}
	return 0, errors.New(" is not an integer")
}

// describe returns a token for an error, shortened, as printable ASCII.
func describe(token []byte) string {
	const most = 40
	switch token[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	if s := unquoted(token); len(s) > most {
		return strconv.QuoteToASCII(string(s[:most])) + "..."
	}
	return strconv.QuoteToASCII(string(unquoted(token)))
}

// unquoted returns the text of a string, and any other token unchanged.
func unquoted(token []byte) []byte {
	if token[0] != '"' {
		return token
	}
	if bytes.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1]
	}
	var s string
	_ = json.Unmarshal(token, &s) // the string is valid
	return []byte(s)
}
