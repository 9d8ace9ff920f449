package logquery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/windowstat/windowstat/collector"
)

// PatternHelp describes the syntax of a pattern.
const PatternHelp = "NAME, where * matches any characters, / included, or ~ and a regular expression for the whole name"

// Pattern matches names of resources.
type Pattern struct {
	text    string
	matches func(name string) bool
}

// ParsePattern parses a pattern, see [PatternHelp].
func ParsePattern(p string) (Pattern, error) {
	if p == "" {
		return Pattern{}, errors.New("is empty; a pattern is " + PatternHelp)
	}
	if expression, ok := strings.CutPrefix(p, "~"); ok {
		if _, err := regexp.Compile(expression); err != nil {
			return Pattern{}, fmt.Errorf("%q: %w", p, err)
		}
		return Pattern{p, regexp.MustCompile(`^(?s:` + expression + `)$`).MatchString}, nil
	}
	return Pattern{p, collector.Limit{Resource: p}.Matches}, nil // patterns of limits have the same syntax
}

// Visible returns a name for output. It escapes unprintable characters, characters that change the output after them,
// and backslashes, as in Go: \x1b, \u202e or \\.
func Visible(name string) string {
	if plain(name) {
		return name
	}
	// Most other names have letters of other alphabets, which stay unchanged.
	quoted := strconv.Quote(name)
	if len(quoted) == len(name)+len(`""`) {
		return name
	}
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// quoted returns a name as a JSON string, with the escapes of [WriteJSON].
func quoted(name string) string {
	if plain(name) {
		return `"` + name + `"`
	}
	b, _ := json.Marshal(name) // cannot fail for a string
	return string(escapeJSON(b))
}

// WriteJSON writes v as an indented JSON object. Characters that cannot be printed are escaped in its strings, because
// JSON allows characters that a terminal obeys, such as U+009B, or that change the direction of text, such as U+202E.
func WriteJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(escapeJSON(b), '\n'))
	return err
}

// escapeJSON escapes the characters of JSON text that cannot be printed. Package json has escaped those of ASCII,
// except DEL, and others occur only within strings.
func escapeJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r < 0x7f || strconv.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// plain reports whether all formats show a name unchanged. Most names are plain, and the check is faster than escaping.
func plain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '\\' || c == '"' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// List joins the first 20 elements for a message.
func List[T any](things []T) string {
	const limit = 20
	var names []string
	for i, x := range things {
		if i == limit {
			names = append(names, fmt.Sprintf("%d more", len(things)-limit))
			break
		}
		names = append(names, Visible(fmt.Sprint(x)))
	}
	return strings.Join(names, ", ")
}

// nearest returns up to five names around the position of a pattern in alphabetical order. It ignores case.
func nearest(names map[string]bool, pattern string) []string {
	fold := func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }
	all := slices.SortedFunc(maps.Keys(names), fold)
	at, _ := slices.BinarySearchFunc(all, strings.Trim(pattern, "~*"), fold)
	// Half of the names are before the pattern, half after it.
	const limit = 5
	from := max(0, min(at-limit/2, len(all)-limit))
	return all[from:min(len(all), from+limit)]
}
