package httpstat

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
)

// Settle decides at once which names are earned, for whoever reads a log twice: successes are the calls that were answered
// with success, by plain name. At each place the values with most calls are kept apart; of the names, so many with most calls.
// All other names that were answered with success are [collector.Other], and nothing is learned any more. It must not be
// called while other methods are.
func (n *Names) Settle(successes map[string]int64, most int) {
	n.places = newPlaces(n.opts.MaxValues)
	var rows []pathCalls
	for _, plain := range slices.Sorted(maps.Keys(successes)) {
		if _, path, _ := strings.Cut(plain, "/"); path != "" {
			rows = append(rows, pathCalls{path, successes[plain]})
		}
	}
	n.places.settle(n.places.root, rows)
	calls := map[string]int64{}
	for plain, x := range successes {
		if !n.given[plain] {
			calls[collector.CleanName(n.places.name(plain, nil))] += x
		}
	}
	n.settled = map[string]bool{}
	for i, name := range byCalls(calls) {
		n.settled[name] = i < most
	}
}

// settledName is the name of a call when names are settled. It changes nothing, and takes no lock.
func (n *Names) settledName(plain string) (string, Standing) {
	name := collector.CleanName(n.places.name(plain, nil))
	kept, earned := n.settled[name]
	switch {
	case !earned:
		return name, Unearned
	case !kept:
		return collector.Other, Earned
	}
	return name, Earned
}

// pathCalls is how often a path, or the rest of one, was called.
type pathCalls struct {
	path  string
	calls int64
}

// settle keeps the values apart that most of the rows' calls have, here and at all places below.
func (p *places) settle(at *place, rows []pathCalls) {
	calls, below := map[string]int64{}, map[string][]pathCalls{}
	for _, row := range rows {
		if value, _, _ := strings.Cut(row.path, "/"); !fixedValue(value) {
			calls[value] += row.calls
		}
	}
	for _, value := range byCalls(calls)[:min(p.most, len(calls))] {
		p.admit(at, value, uint32(min(calls[value], maxCount)))
	}
	for _, row := range rows {
		value, rest, more := strings.Cut(row.path, "/")
		if !fixedValue(value) && at.values[value] == nil {
			value = "*"
		}
		if more {
			below[value] = append(below[value], pathCalls{rest, row.calls})
		}
	}
	for _, value := range slices.Sorted(maps.Keys(below)) {
		if next := p.below(at, value, true); next != nil {
			p.settle(next, below[value])
		}
	}
}

// byCalls are the keys with most calls first.
func byCalls(calls map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(calls), func(a, b string) int {
		return cmp.Or(cmp.Compare(calls[b], calls[a]), strings.Compare(a, b))
	})
}
