package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// owners decides which of the seconds that some labels lack in the database are holes: seconds that the instance with these labels
// counted, and that may be written under them. A second of the log belongs to the run of the process that counted it, and the database
// has the run of each second beside its samples. Each second of a run belongs to one instance:
//
//   - A second that labels have is theirs.
//   - A second that none have belongs to the labels with the last second of the run before it or, if there is none, with the first one
//     after it. So a hole at a junction belongs to the earlier labels. Of two with the same second the one with the nearer second on
//     the other side is it, and neither if that is the same, too.
//   - What lies before the first second that labels have is not theirs if a later process may have handed them what they have: it begins
//     no earlier than the history before that process.
//   - Labels that have a run at the same time for longer than the history and a minute are replicas, such as those of a pair of servers.
//     Each is judged as if there were no others. The first history that a new cursor gets makes no replica.
//   - A hole between two seconds that labels have is theirs if others have the run from the same second on, and share seconds with them
//     within a minute on both sides of the hole: they are scraped beside each other, for too short a time to be replicas.
//   - If no labels have a run, its seconds are holes only of the labels under which the file of runs says that they were pushed.
//
// Every other second is not written, and the reason is reported. Limitations: only a day on both sides of the range is looked at; labels
// are those of one database, so two tenants with equal labels are one instance.
type owners struct {
	by     []int64           // runs that are written all the same, 0 for seconds without one
	labels map[string]string // of the instance
	has    map[int64]*run    // of the log, by ID
	since  int64             // what was before is not known

	replicas  map[string]bool
	undecided map[string]bool // may be replicas
}

// run is a run of the log in the database.
type run struct {
	runs.Run
	// forwarded is the first second that a later process may have forwarded from the log: the lowest first second less history
	// of all later processes. It is after all seconds without a later process, and before all if a history is unknown.
	forwarded int64
	held      map[string][]int64 // the seconds that labels have, ascending, by what tells them from those of the instance, whose are at ""
}

// verdict is what a second of the log is that the labels lack.
type verdict struct {
	missing bool   // the database should have it under these labels
	held    bool   // it has it under others
	reason  string // why it is not written; empty if it is a hole
}

// hole is the verdict about a second that may be written.
var hole = verdict{missing: true}

// replicaFor is for how many seconds other labels may have a run at the same time that are not a replica's, beside the history.
const replicaFor = 60

// findReplicas finds the labels that are replicas, once all runs are known.
func (o *owners) findReplicas() {
	o.replicas, o.undecided = map[string]bool{}, map[string]bool{}
	for _, r := range o.has {
		for name, theirs := range r.held {
			if name == "" || r.History == 0 {
				continue
			}
			switch shared, longest, switches := overlap(r.held[""], theirs); {
			case longest > replicaFor+r.History, shared > replicaFor+(switches+1)*r.History:
				o.replicas[name] = true
			case shared > replicaFor+r.History && switches > 2: // more than labels that took over and back
				o.undecided[name] = true
			}
		}
	}
}

// overlap compares the seconds of two labels, both ascending. Shared is the number of seconds that both have, and longest the
// longest stretch of them in which neither has a second that the other lacks. Switches is the number of times that the
// labels with a second of their own change: 1 if b took over from a.
func overlap(a, b []int64) (shared, longest, switches int64) {
	var stretch, last int64 // last: 1 if a had the last separate second, 2 if b had it
	alone := func(who int64) {
		if stretch = 0; last != 0 && last != who {
			switches++
		}
		last = who
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			a = a[1:]
			alone(1)
		case len(a) == 0 || b[0] < a[0]:
			b = b[1:]
			alone(2)
		default:
			a, b = a[1:], b[1:]
			shared++
			stretch++
			longest = max(longest, stretch)
		}
	}
	return shared, longest, switches
}

// judge decides about a second of a run of the log that the labels lack, or lack in part. Of this second they have the run theirs, 0
// for none.
func (o *owners) judge(unix, id, theirs int64) verdict {
	r := o.has[id]
	switch {
	case theirs != 0 && id != 0 && theirs != id:
		return verdict{reason: "these labels have another run in these seconds"}
	case slices.Contains(o.by, id):
		return hole
	case r == nil:
		return verdict{missing: true, reason: "the run of these seconds is not known"}
	}
	own := r.held[""]
	before, after, has := neighbours(own, unix)
	if has {
		return hole
	}
	nearest, doubtful := "", "" // other labels that are at least as near; other labels that have the second
	for _, name := range slices.Sorted(maps.Keys(r.held)) {
		if name == "" || o.replicas[name] || r.beside(r.held[name], unix) {
			continue
		}
		first, last, has := neighbours(r.held[name], unix)
		switch {
		case has && o.undecided[name]:
			doubtful = name
		case has:
			return verdict{held: true, reason: name + " has these seconds"}
		}
		if first > before || first == before && last <= after {
			before, after, nearest = first, last, name
		}
	}
	switch {
	case doubtful != "":
		return verdict{missing: true, reason: doubtful + " has these seconds; whether it is a replica is undecided"}
	case nearest != "" && before != math.MinInt64:
		return verdict{reason: nearest + " has the seconds before"}
	case nearest != "":
		return verdict{reason: nearest + " has the seconds after"}
	case len(r.held) == 0 && o.pushed(r):
		return hole
	case len(r.held) == 0:
		return verdict{missing: true, reason: fmt.Sprintf("no labels have the run of these seconds, which is %d", id)}
	case len(own) == 0: // and replicas have some
		return verdict{missing: true, reason: fmt.Sprintf("these labels have nothing of the run of these seconds, which is %d", id)}
	case before == math.MinInt64 && own[0] >= r.forwarded && !o.pushed(r):
		return verdict{missing: true, reason: fmt.Sprintf("a later process may have handed on what these labels have of their run, which is %d", id)}
	case before == math.MinInt64 && r.First < o.since:
		return verdict{missing: true, reason: fmt.Sprintf("whose run %d was a day before is not known", id)}
	}
	return hole
}

// beginTogether is how many seconds lie at most between the first ones of two that have a run from its start: a push begins with the
// second in which it is made, a scrape with the first one that has ended.
const beginTogether = 2

// beside reports whether others have the run beside these labels: from the first seconds of these on, and some of the same seconds
// within a minute on both sides of one that these lack. Labels that took over have no such seconds.
func (r *run) beside(others []int64, unix int64) bool {
	all := r.held[""]
	if len(others) == 0 || len(all) == 0 || max(others[0]-all[0], all[0]-others[0]) > beginTogether {
		return false // one took over from the other, perhaps by a new cursor, which begins with the history
	}
	i, _ := slices.BinarySearch(all, unix)
	shared := func(own []int64) bool {
		return slices.ContainsFunc(own, func(second int64) bool {
			_, has := slices.BinarySearch(others, second)
			return has
		})
	}
	return shared(all[max(0, i-replicaFor):i]) && shared(all[i:min(len(all), i+replicaFor)])
}

// pushed reports whether a run was pushed under these labels.
func (o *owners) pushed(r *run) bool {
	for _, labels := range r.Labels {
		if len(labels) > 0 && matches(labels, o.labels) {
			return true
		}
	}
	return false
}

// neighbours are the nearest seconds on both sides of one, and whether that is among them.
func neighbours(all []int64, unix int64) (before, after int64, has bool) {
	before, after = math.MinInt64, math.MaxInt64
	i, has := slices.BinarySearch(all, unix)
	if i > 0 {
		before = all[i-1]
	}
	if i < len(all) {
		after = all[i]
	}
	return before, after, has
}

const (
	around   = 24 * 60 * 60 // seconds on both sides of a gap in which runs are looked for
	runsPart = 6 * 60 * 60  // seconds of them that are asked for at a time
)

// owners asks the database which labels have the runs of the gap, beside those of the instance.
func (c *comparison) owners(ctx context.Context) (*owners, error) {
	o := &owners{labels: c.report.Labels, by: c.options.Runs, has: map[int64]*run{}}
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	begin, end := from, to
	for at := from; at <= to; {
		r, until := c.runs.At(at)
		if c.runs.ID(at) != 0 {
			o.has[r.ID] = newRun(r, c.runs)
			begin, end = min(begin, r.First), max(end, cmp.Or(r.Last, time.Now().Unix()))
		}
		at = until
	}
	o.since, end = max(begin, from-around), min(end, to+around)
	for at := o.since; at <= end && len(o.has) > 0; at += runsPart {
		err := divided(at, min(at+runsPart-1, end), func(from, to int64) error { return c.findRuns(ctx, o, from, to) })
		if err != nil {
			return nil, fmt.Errorf("whose seconds these are cannot be found out: %v", err) // a smaller part does not help
		}
	}
	for _, r := range o.has {
		for _, list := range r.held {
			slices.Sort(list)
		}
	}
	o.findReplicas()
	return o, nil
}

// newRun returns a run of the log.
func newRun(of runs.Run, file *runs.File) *run {
	r := &run{Run: of, held: map[string][]int64{}, forwarded: math.MaxInt64}
	for _, later := range file.After(of.First) {
		if later.History == 0 { // unknown
			r.forwarded = math.MinInt64
			break
		}
		r.forwarded = min(r.forwarded, later.First-later.History)
	}
	return r
}

// findRuns finds who has the runs in a part.
func (c *comparison) findRuns(ctx context.Context, o *owners, from, to int64) error {
	metric := table.Run(c.gap.namespace()).Name
	ids := slices.Sorted(maps.Keys(o.has))
	// Most of a fleet cannot have them: they are between the first and the last.
	runs := "(" + metric + window(from, to) + ")"
	some := fmt.Sprintf("last_over_time%s and max_over_time%s >= %d and min_over_time%s <= %d", runs, runs, ids[0], runs, ids[len(ids)-1])
	candidates, err := c.query(ctx, some, to, "vector")
	if err != nil {
		return err
	}
	for _, candidate := range candidates {
		series, err := c.samples(ctx, selector([]string{metric}, candidate.labels), from, to)
		if err != nil {
			return err
		}
		name := difference(o.labels, candidate.labels)
		for _, s := range series {
			if !maps.Equal(s.labels, candidate.labels) {
				continue
			}
			for _, p := range s.points {
				if r := o.has[int64(p.value)]; r != nil {
					r.held[name] = append(r.held[name], p.at/1000)
				}
			}
		}
	}
	return nil
}
