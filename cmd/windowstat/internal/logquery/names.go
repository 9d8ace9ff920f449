package logquery

import (
	"cmp"
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

// parsePatterns makes one function of patterns, any of which a name may match; nil if there are none. The error names all that
// are wrong.
func parsePatterns(patterns []string) (func(name string) bool, error) {
	var all []func(string) bool
	var errs []error
	for _, p := range patterns {
		match, err := parsePattern(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("--resource: %w", err))
		}
		all = append(all, match)
	}
	if err := errors.Join(errs...); err != nil || len(all) == 0 {
		return nil, err
	}
	return func(name string) bool {
		return slices.ContainsFunc(all, func(match func(string) bool) bool { return match(name) })
	}, nil
}

func parsePattern(p string) (func(string) bool, error) {
	if p == "" {
		return nil, errors.New("is empty; " + PatternHelp + " is needed")
	}
	if expression, ok := strings.CutPrefix(p, "~"); ok {
		if _, err := regexp.Compile(expression); err != nil {
			return nil, fmt.Errorf("%q: %w", p, err)
		}
		return regexp.MustCompile(`^(?s:` + expression + `)$`).MatchString, nil
	}
	return collector.Limit{Resource: p}.Matches, nil // limits have the same patterns
}

// Visible returns a name with what cannot be printed, or would change how the rest is shown, escaped as in Go: \x1b or \u202e. A
// backslash beside such a character is two.
func Visible(name string) string {
	quoted := strconv.Quote(name)
	if len(quoted) == len(name)+len(`""`) {
		return name
	}
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// noFormula returns a visible name, with an apostrophe before it if a spreadsheet would calculate it as a formula.
func noFormula(name string) string {
	s := Visible(name)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// quoted returns a name as a JSON string. DEL and the control characters from U+0080 on, which JSON allows and a terminal may
// obey, are escaped, too.
func quoted(name string) string {
	b, err := json.Marshal(name)
	if err != nil {
		panic(err) // it is a string
	}
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

// names caches how names are shown.
type names struct {
	shown func(string) string
	known map[string]string
}

func (n *names) of(name string) string {
	s, ok := n.known[name]
	if !ok {
		const most = 10_000
		if n.known == nil || len(n.known) >= most {
			n.known = map[string]string{}
		}
		s = n.shown(name)
		n.known[name] = s
	}
	return s
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

// nearest returns the names that are most like a pattern, the most first.
func nearest(names map[string]bool, pattern string) []string {
	pattern = strings.ToLower(strings.Trim(pattern, "~*"))
	distances := map[string]int{}
	for name := range names {
		distances[name] = edits(strings.ToLower(name), pattern)
	}
	all := slices.SortedFunc(maps.Keys(distances), func(a, b string) int {
		return cmp.Or(distances[a]-distances[b], strings.Compare(a, b))
	})
	const most = 5
	return all[:min(len(all), most)]
}

// edits returns how many bytes must be inserted, deleted or changed to make b of a; of long ones only the beginnings count.
func edits(a, b string) int {
	const most = 100
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	costs := make([]int, len(b)+1) // of b's beginnings, for what is read of a
	for j := range costs {
		costs[j] = j
	}
	for i := range len(a) {
		before := costs[0]
		costs[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = costs[j+1]
			costs[j+1] = min(change, before+1, costs[j]+1)
		}
	}
	return costs[len(b)]
}
