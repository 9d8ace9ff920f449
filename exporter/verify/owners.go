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

// owners decides which seconds, of those that the labels of the instance lack in the database, are gaps: seconds that the
// instance counted, and that may be written under its labels. A second of the log belongs to the run of the process that
// counted it, and the database has the run of each second next to its samples. Each second of a run belongs to one instance.
// The first row that applies decides; judge follows the rows in this order:
//
//	the labels have another run in the second                          not written
//	the user named the run, or 0 for none                              gap
//	the run is unknown                                                 missing, not written
//	the labels have samples of the second                              gap
//	other labels have the second, and are neither replicas nor near    theirs
//	labels that may be replicas have the second                        missing, not written
//	other labels have the last second of the run before it, or
//	without one the first second after it                              not written
//	no labels have the run, and it was pushed under these labels       gap
//	no labels have the run                                             missing, not written
//	the labels have nothing of the run, and replicas have some         missing, not written
//	it is before the first second of the labels, and a later process
//	may have forwarded that second                                     missing, not written
//	it is before the first second of the labels, and the run began
//	before the range of the queries                                    missing, not written
//	none of these                                                      gap
//
// So a gap between labels that change belongs to the earlier labels. If two labels are equally near, neither gets the second.
//
// Replicas are labels that have a run at the same time, such as those of a pair of servers: see findReplicas. Each is judged
// as if there were no others. Others are near if they have the run from the same second on, and share seconds with the labels
// within a minute on both sides of the gap: they are scraped at the same time, but not long enough to be known as replicas.
//
// The reason for each second that is not written is reported. Limitations: only a day on both sides of the range is searched,
// and labels identify an instance only within one database, so two tenants with equal labels are one instance.
type owners struct {
	forced []int64           // runs that the user named, 0 for seconds without a run
	labels map[string]string // of the instance
	runs   map[int64]*run    // of the log, by ID
	since  int64             // first second of the queries

	replicas  map[string]bool
	undecided map[string]bool // may be replicas
}

// run is a run of the log, with the seconds that labels have of it in the database.
type run struct {
	runs.Run
	// forwarded is the first second that a later process may have forwarded from the log: the minimum of first second less
	// history over all later processes. Without a later process it is after all seconds. If a history is unknown, it is
	// before all seconds.
	forwarded int64
	held      map[string][]int64 // the seconds that labels have, ascending, by the difference to the labels of the instance, whose key is ""
}

// verdict is the decision about a second of the log that the labels lack.
type verdict struct {
	missing bool   // counted as missing
	held    bool   // other labels have it
	reason  string // why it is not written; empty for a gap
}

// hole is the verdict about a second that may be written.
var hole = verdict{missing: true}

// replicaFor is the number of seconds that labels which are not replicas may share, in addition to what takeovers explain.
const replicaFor = 60

// findReplicas finds the labels that are replicas, and those that may be. Labels that take over from others begin with one
// history of seconds that the others have already. Replicas share more: a stretch of seconds longer than that, or, if one of
// them has frequent gaps, more seconds than all changes between the two explain. A run of unknown history shows no replicas.
func (o *owners) findReplicas() {
	o.replicas, o.undecided = map[string]bool{}, map[string]bool{}
	for _, r := range o.runs {
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

// judge decides about a second of the run id that the labels lack, or lack in part; id is 0 if the run is unknown. Theirs is
// the run that the labels have in this second, or 0.
func (o *owners) judge(unix, id, theirs int64) verdict {
	r := o.runs[id]
	switch {
	case theirs != 0 && id != 0 && theirs != id:
		return verdict{reason: "these labels have another run in these seconds"}
	case slices.Contains(o.forced, id):
		return hole
	case r == nil:
		return verdict{missing: true, reason: "the run of these seconds is unknown"}
	}
	own := r.held[""]
	before, after, has := neighbours(own, unix)
	if has {
		return hole
	}
	nearest, doubtful := "", "" // other labels that are at least as near; other labels that have the second
	for _, name := range slices.Sorted(maps.Keys(r.held)) {
		if name == "" || o.replicas[name] || r.near(r.held[name], unix) {
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
		return verdict{missing: true, reason: fmt.Sprintf("no labels have run %d, which counted these seconds", id)}
	case len(own) == 0: // and replicas have some
		return verdict{missing: true, reason: fmt.Sprintf("these labels have no second of run %d, which counted these seconds", id)}
	case before == math.MinInt64 && own[0] >= r.forwarded && !o.pushed(r):
		return verdict{missing: true, reason: fmt.Sprintf("a later process may have forwarded the seconds that these labels have of run %d", id)}
	case before == math.MinInt64 && r.First < o.since:
		return verdict{missing: true, reason: fmt.Sprintf("run %d began more than a day before the compared range; the database was not searched that far back", id)}
	}
	return hole
}

// beginTogether is the largest distance between the first seconds of two labels that both have a run from its start: a
// push begins with the second in which it is created, a scrape with the first second that has ended.
const beginTogether = 2

// near reports whether other labels are scraped at the same time as these, although not long enough to be known as
// replicas: both have the run from the same second on, and they share seconds within a minute on both sides of unix.
// Labels that took over from these have no such seconds.
func (r *run) near(others []int64, unix int64) bool {
	all := r.held[""]
	if len(others) == 0 || len(all) == 0 || max(others[0]-all[0], all[0]-others[0]) > beginTogether {
		return false // one took over from the other, perhaps with a new cursor, which begins with the history
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

// neighbours returns the nearest seconds before and after unix, and whether unix is in the list.
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
	around   = 24 * 60 * 60 // seconds on both sides of a gap that are searched for runs
	runsPart = 6 * 60 * 60  // seconds of a query
)

// owners queries which labels have the runs of the gap in the database.
func (c *comparison) owners(ctx context.Context) (*owners, error) {
	o := &owners{labels: c.report.Labels, forced: c.options.Runs, runs: map[int64]*run{}}
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	begin, end := from, to
	for at := from; at <= to; {
		r, until := c.runs.At(at)
		if c.runs.ID(at) != 0 {
			o.runs[r.ID] = newRun(r, c.runs)
			begin, end = min(begin, r.First), max(end, cmp.Or(r.Last, time.Now().Unix()))
		}
		at = until
	}
	o.since, end = max(begin, from-around), min(end, to+around)
	for at := o.since; at <= end && len(o.runs) > 0; at += runsPart {
		err := divided(at, min(at+runsPart-1, end), func(from, to int64) error { return c.findRuns(ctx, o, from, to) })
		if err != nil {
			return nil, fmt.Errorf("cannot find the instances of these seconds: %v", err) // a smaller part does not help
		}
	}
	for _, r := range o.runs {
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

// findRuns finds the labels that have the runs in a part of the range.
func (c *comparison) findRuns(ctx context.Context, o *owners, from, to int64) error {
	metric := table.Run(c.gap.namespace()).Name
	ids := slices.Sorted(maps.Keys(o.runs))
	// Most instances of a fleet cannot have one of them: their runs are below the first or above the last ID.
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
				if r := o.runs[int64(p.value)]; r != nil {
					r.held[name] = append(r.held[name], p.at/1000)
				}
			}
		}
	}
	return nil
}
