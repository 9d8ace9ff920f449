package logquery

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// quoted returns a name as a JSON string. It also escapes DEL and the control characters from U+0080 on, which JSON
// allows and a terminal may obey.
func quoted(name string) string {
	if plain(name) {
		return `"` + name + `"`
	}
	b, _ := json.Marshal(name) // a string causes no error
	var out strings.Builder
	for _, r := range string(b) {
		if r >= 0x7f && r < 0xa0 {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
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
