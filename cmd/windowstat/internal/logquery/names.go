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

// PatternHelp is what a pattern of resources may look like.
const PatternHelp = "NAME, in which * stands for any characters, / too, or ~ and a regular expression for the whole name"

// Pattern is one of names of resources.
type Pattern struct {
	text    string
	matches func(name string) bool
}

// ParsePattern parses a pattern, see [PatternHelp].
func ParsePattern(p string) (Pattern, error) {
	if p == "" {
		return Pattern{}, errors.New("is empty; " + PatternHelp + " is needed")
	}
	if expression, ok := strings.CutPrefix(p, "~"); ok {
		if _, err := regexp.Compile(expression); err != nil {
			return Pattern{}, fmt.Errorf("%q: %w", p, err)
		}
		return Pattern{p, regexp.MustCompile(`^(?s:` + expression + `)$`).MatchString}, nil
	}
	return Pattern{p, collector.Limit{Resource: p}.Matches}, nil // limits have the same patterns
}

// Visible returns a name with what cannot be printed, or would change how the rest is shown, escaped as in Go: \x1b or \u202e. A
// backslash beside such a character is two.
func Visible(name string) string {
	if plain(name) {
		return name
	}
	// Most names that are not plain are letters of other alphabets, which are shown as they are.
	quoted := strconv.Quote(name)
	if len(quoted) == len(name)+len(`""`) {
		return name
	}
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// quoted returns a name as a JSON string. DEL and the control characters from U+0080 on, which JSON allows and a terminal may
// obey, are escaped, too.
func quoted(name string) string {
	if plain(name) {
		return `"` + name + `"`
	}
	b, _ := json.Marshal(name) // which a string cannot make fail
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

// plain reports whether a name is shown as it is everywhere, which is faster found than another text made.
func plain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '\\' || c == '"' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// List returns the first of some things, for a message.
func List[T any](things []T) string {
	const most = 20
	var names []string
	for i, x := range things {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(things)-most))
			break
		}
		names = append(names, Visible(fmt.Sprint(x)))
	}
	return strings.Join(names, ", ")
}

// nearest returns the names that stand beside a pattern in the order of the alphabet, without regard to case.
func nearest(names map[string]bool, pattern string) []string {
	fold := func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }
	all := slices.SortedFunc(maps.Keys(names), fold)
	at, _ := slices.BinarySearchFunc(all, strings.Trim(pattern, "~*"), fold)
	// Half of them before the pattern, and half behind it.
	const most = 5
	from := max(0, min(at-most/2, len(all)-most))
	return all[from:min(len(all), from+most)]
}
