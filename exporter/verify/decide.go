package verify

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// verdict is a column of the table in the package comment.
type verdict int

const (
	verdictNone      verdict = iota // nothing to decide, or the runs of the database cannot be read
	verdictWrite                    // counts as missing; may be written under the labels of the instance
	verdictMissing                  // counts as missing; must not be written
	verdictElsewhere                // other labels have the second
	verdictForeign                  // belongs to other labels, or the labels have another run
)

// missing reports whether the second counts as missing.
func (v verdict) missing() bool { return v == verdictWrite || v == verdictMissing }

// decision is the result for a second of the log that the labels of the instance lack, in part or entirely.
type decision struct {
	verdict verdict
	reason  string // why the second is not written; empty if it may be written
}

// ownership decides whether a second of the log may be written under the labels of the instance. It holds the runs of
// the log, and the labels that have them in the database.
type ownership struct {
	labels       map[string]string // of the instance
	chosen       []int64           // runs that the user named in Options.Runs, 0 for seconds without a run
	runs         map[int64]*run    // of the log, by ID
	searchedFrom int64             // first second of the queries for runs

	// Set by findReplicas, by the difference to the labels of the instance.
	replicas, maybeReplicas map[string]bool
}

// missingFor returns the decision verdictMissing with a reason.
func missingFor(format string, args ...any) decision {
	return decision{verdictMissing, fmt.Sprintf(format, args...)}
}

// decide returns the decision about the second unix. The run id counted the second; id is 0 if that run is unknown.
// stored is the run that the labels of the instance have in this second in the database, or 0 if they have none. The
// cases are the rows of the table in the package comment, in order.
func (o *ownership) decide(unix, id, stored int64) decision {
	r := o.runs[id]
	switch {
	case stored != 0 && id != 0 && stored != id:
		// Row 1: two processes share the labels. A sample of this run would change the series of the other process.
		return decision{verdictForeign, "these labels have another run in these seconds"}
	case slices.Contains(o.chosen, id):
		// Row 2: the user decides.
		return decision{verdict: verdictWrite}
	case r == nil:
		// Row 3: any process may have counted the second.
		return missingFor("the run of these seconds is unknown")
	}
	own := neighborsOf(r.own, unix)
	if own.has {
		// Row 4: the database has a part of the second, and lacks the rest.
		return decision{verdict: verdictWrite}
	}
	others := o.findRivals(r, unix, own)
	switch beforeOwn := own.before == none; {
	case others.holder != "":
		// Row 5: the instance had other labels in this second, or another process forwarded it.
		return decision{verdictElsewhere, others.holder + " has these seconds"}
	case others.maybeReplica != "":
		// Row 6: a replica would need the second, and labels that took over would not.
		return missingFor("%s has these seconds; whether it is a replica is undecided", others.maybeReplica)
	case others.nearest != "" && others.hasBefore:
		// Row 7: a gap between labels that change belongs to the earlier labels.
		return decision{verdictForeign, others.nearest + " has the seconds before"}
	case others.nearest != "":
		// Row 8: no labels are earlier, so the gap belongs to the first labels that have the run.
		return decision{verdictForeign, others.nearest + " has the seconds after"}
	case len(r.own)+len(r.others) == 0 && o.pushed(r):
		// Row 9: the labels of a push are in the file of runs, so a missing run is a gap of the push.
		return decision{verdict: verdictWrite}
	case len(r.own)+len(r.others) == 0:
		// Row 10: the database does not show the labels that the process had.
		return missingFor("no labels have run %d, which counted these seconds", id)
	case len(r.own) == 0:
		// Row 11: the database shows the labels of replicas, but not that the instance was scraped under these.
		return missingFor("these labels have no second of run %d, which counted these seconds", id)
	case beforeOwn && r.own[0] >= r.forwardedFrom && !o.pushed(r):
		// Row 12: a later process may have forwarded all seconds that these labels have, so this second may need other
		// labels.
		return missingFor("a later process may have forwarded the seconds that these labels have of run %d", id)
	case beforeOwn && r.First < o.searchedFrom:
		// Row 13: other labels may have earlier seconds of the run.
		return missingFor("run %d began more than a day before the compared range; "+
			"the database was not searched that far back", id)
	}
	// Row 14: the second is in a gap of these labels, after their last second, or before their first one.
	return decision{verdict: verdictWrite}
}

// rivals describes, for one second, the other label sets under which the database has the run of the second. Known
// replicas are left out.
type rivals struct {
	holder       string // labels that have the second
	maybeReplica string // labels that have the second and may be replicas
	nearest      string // labels that are nearer to the second than the labels of the instance, or equally near
	hasBefore    bool   // nearest has a second of the run before it
}

// findRivals compares the labels that have the run r with the labels of the instance. own holds the neighbors of unix
// in the seconds of the instance. Labels are nearer to unix if their last second before unix is later. If these last
// seconds are equal, labels are nearer if their first second after unix is earlier. Names are visited in order: equal
// data must give equal reasons.
func (o *ownership) findRivals(r *run, unix int64, own neighbors) (found rivals) {
	nearest := own
	for _, name := range slices.Sorted(maps.Keys(r.others)) {
		seconds := r.others[name]
		if o.replicas[name] || r.scrapedAlongside(seconds, unix) {
			continue
		}
		n := neighborsOf(seconds, unix)
		switch {
		case n.has && o.maybeReplicas[name]:
			found.maybeReplica = name
		case n.has:
			found.holder = name
			return found
		}
		if n.before > nearest.before || n.before == nearest.before && n.after <= nearest.after {
			nearest, found.nearest = n, name
		}
	}
	found.hasBefore = nearest.before != none
	return found
}

// pushed reports whether a run was pushed under the labels of the instance. The file of runs next to the log has the
// labels of each push.
func (o *ownership) pushed(r *run) bool {
	for _, labels := range r.Labels {
		if len(labels) > 0 && matches(labels, o.labels) {
			return true
		}
	}
	return false
}

// neighbors are the seconds of a list around one second.
type neighbors struct {
	before int64 // nearest second before it; none if there is no such second
	after  int64 // nearest second from it on; the maximum int64 if there is no such second
	has    bool  // the list has the second itself
}

// none is before all seconds.
const none = math.MinInt64

// neighborsOf returns the neighbors of unix in an ascending list.
func neighborsOf(list []int64, unix int64) neighbors {
	n := neighbors{before: none, after: math.MaxInt64}
	i, has := slices.BinarySearch(list, unix)
	if n.has = has; i > 0 {
		n.before = list[i-1]
	}
	if i < len(list) {
		n.after = list[i]
	}
	return n
}
