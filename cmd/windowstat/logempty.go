package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// asked is what was looked for, and the names that were looked at, for who finds nothing.
type asked struct {
	resources, where []string // as they were given
	seen             map[string]bool
}

// maxSeen bounds the names that are remembered.
const maxSeen = 10_000

// match remembers the names that are looked at; nil stays nil.
func (a *asked) match(match func(string) bool) func(string) bool {
	if match == nil {
		return nil
	}
	a.seen = map[string]bool{}
	return func(name string) bool {
		if len(a.seen) < maxSeen {
			a.seen[name] = true
		}
		return match(name)
	}
}

// sayEmpty prints that there was nothing of what was looked for, and what there is. So many rows did not meet --where.
func (s *search) sayEmpty(rows int) {
	show := func(t time.Time) string { return t.In(s.zone).Format(timeLayout) }
	given := func(flag string, values []string) (text string) {
		for _, v := range values {
			text += fmt.Sprintf(" --%s '%s'", flag, visible(v))
		}
		return text
	}
	says := []string{fmt.Sprintf("no rows from %s to %s%s%s", show(s.query.From), show(s.query.To), given("resource", s.asked.resources), given("where", s.asked.where))}
	if rows > 0 {
		says = append(says, fmt.Sprintf("without --where there are %d", rows))
	} else if n := len(s.asked.seen); n > 0 {
		says = append(says, fmt.Sprintf("this time has %d resources, the nearest are %s", n, list(nearest(s.asked.seen, s.asked.resources[0]))))
	}
	if first, last, err := s.Span(s.pids...); err == nil && !first.IsZero() {
		says = append(says, fmt.Sprintf("the log is from %s to %s", show(first), show(last)))
	}
	if rows == 0 && len(s.asked.seen) == 0 {
		if rows, err := s.Search(metriclog.Query{From: s.query.To.Add(time.Second), PIDs: s.pids}); err == nil {
			for row := range rows.All() {
				says = append(says, "the next row is of "+show(row.Start))
				break
			}
			_ = rows.Close()
		}
	}
	fmt.Fprintf(s.stderr, "windowstat: %s\n", strings.Join(says, "; "))
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

// edits is how many bytes must be inserted, deleted or changed to make b of a; of long ones only the beginnings count.
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
