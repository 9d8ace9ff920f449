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

// PatternHelp describes the syntax of a pattern, for --help and for errors.
const PatternHelp = "NAME, where * matches any characters, / included, or ~ and a regular expression for the whole name"

// Pattern matches names of resources.
type Pattern struct {
	text    string
	matches func(name string) bool
}

// ParsePattern parses a pattern, see [PatternHelp]. Patterns without ~ have the syntax of limits.
func ParsePattern(p string) (Pattern, error) {
	if p == "" {
		return Pattern{}, errors.New("is empty; a pattern is " + PatternHelp)
	}
	if expression, ok := strings.CutPrefix(p, "~"); ok {
		if _, err := regexp.Compile(expression); err != nil {
			return Pattern{}, fmt.Errorf("%q: %w", p, err)
		}
		// Check the expression alone before, because a text such as "a)(b" becomes valid between the added parentheses.
		// The flag s lets a dot match a line break, because names may contain line breaks.
		return Pattern{p, regexp.MustCompile(`^(?s:` + expression + `)$`).MatchString}, nil
	}
	// A limit and a search with the same text match the same resources.
	return Pattern{p, collector.Limit{Resource: p}.Matches}, nil
}

// Visible returns a name in a form that is safe to print. It escapes backslashes, unprintable characters, and
// characters that change the text after them, in the syntax of Go: \\, \x1b or \u202e. A name may be from an untrusted
// client, and a terminal would obey the escape sequences in it.
func Visible(name string) string {
	if plain(name) {
		return name
	}
	// Most of the other names have letters of a different alphabet. If quoting changes no character, return them
	// unchanged.
	// Quote escapes every character that strconv.IsPrint refuses, which includes marks for the direction of text.
	quoted := strconv.Quote(name)
	if len(quoted) == len(name)+len(`""`) {
		return name
	}
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// quoted returns a name as a JSON string, escaped like the strings of [WriteJSON].
func quoted(name string) string {
	if plain(name) {
		return `"` + name + `"`
	}
	b, _ := json.Marshal(name) // does not fail for a string
	return string(escapeJSON(b))
}

// WriteJSON writes v as an indented JSON object. In its strings, it escapes all characters that cannot be printed. JSON
// allows such characters, but a terminal obeys some of them, such as U+009B, and others change the direction of text,
// such as U+202E.
func WriteJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(escapeJSON(b), '\n'))
	return err
}

// escapeJSON escapes the unprintable characters of JSON text that package json leaves unchanged: DEL, and characters
// that are not ASCII. They can occur only within strings.
func escapeJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r < 0x7f || strconv.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			// JSON writes characters above U+FFFF as two escapes, a surrogate pair of UTF-16.
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// plain reports whether all formats show a name unchanged. Most names are plain, and this check is faster than escaping
// them.
func plain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '\\' || c == '"' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// List joins the first 20 elements for a message, and states the number of the others.
func List[T any](things []T) string {
	// A message with hundreds of names would hide the other messages in the terminal.
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

// nearest returns up to five names that are close to a pattern in alphabetical order, as hints for a misspelled name.
// It ignores case.
func nearest(names map[string]bool, pattern string) []string {
	fold := func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }
	all := slices.SortedFunc(maps.Keys(names), fold)
	// The position is right even if no name equals the pattern: names near it in the alphabet often have the same
	// beginning.
	at, _ := slices.BinarySearchFunc(all, strings.Trim(pattern, "~*"), fold)
	// Two of the five names precede the pattern, unless it is at an end of the list.
	const limit = 5
	from := max(0, min(at-limit/2, len(all)-limit))
	return all[from:min(len(all), from+limit)]
}
