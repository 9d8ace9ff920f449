package verify

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/exporter/internal/runs"
)

// owners decides which of the seconds that some labels lack in the database are holes: seconds that the instance with these labels
// counted, and that may be written under them. A second of the log belongs to the run of the process that counted it, and the database
// has the run of each second beside its samples.
//
//   - Between two seconds that the labels have of a run, its other seconds are holes.
//   - Before the first and after the last of these, a second is a hole unless other labels have the run in it.
//   - A hole between labels that change belongs to the earlier ones: to those with the last second of the run before it or, if there is
//     none, with the first one after it.
//   - Labels that have a run at the same time for longer than the history and a minute are replicas, such as those of a pair of servers.
//     Each has holes of its own, whatever the other has. The first history that a new cursor gets makes no replica.
//   - If no labels have a run, its seconds are holes only of the labels under which the file of runs says that they were pushed.
//
// Every other second is not written, and the reason is reported. Limitations: only a day on both sides of the range is looked at; labels
// are those of one database, so two tenants with equal labels are one instance.
type owners struct {
	runs  *runs.File      // of the log
	by    map[int64]bool  // runs that are written all the same, 0 for seconds without one
	own   map[int64]int64 // the run of each second that the labels have
	has   map[int64]*run  // of the log, by ID
	since int64           // what was before is not known
	push  func(runs.Run) bool

	replicas map[string]bool
}

// run is a run of the log in the database.
type run struct {
	runs.Run
	own    []int64            // seconds that the labels have, ascending
	others map[string][]int64 // and that others have, by the label that tells them apart
}

// verdict is what a second of the log is that the labels lack.
type verdict struct {
	missing bool   // it should be there
	reason  string // why it is not written; empty if it is a hole
}

// replicaFor is for how many seconds other labels may have a run at the same time that are not a replica's, beside the history.
const replicaFor = 60

// findReplicas finds the labels that are replicas, once all runs are known.
func (o *owners) findReplicas(history int64) {
	o.replicas = map[string]bool{}
	for _, r := range o.has {
		most := replicaFor + cmp.Or(r.History, history)
		for name, theirs := range r.others {
			if together(r.own, theirs) > most {
				o.replicas[name] = true
			}
		}
	}
}

// together is the longest stretch of seconds that both have, while neither has one that the other lacks.
func together(a, b []int64) (longest int64) {
	n := int64(0)
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			n++
			longest = max(longest, n)
			a, b = a[1:], b[1:]
			continue
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
		n = 0
	}
	return longest
}

// judge decides about a second of the log that the labels lack, or lack in part.
func (o *owners) judge(unix int64) verdict {
	id := o.runs.ID(unix)
	if theirs := o.own[unix]; theirs != 0 && theirs != id {
		return verdict{false, "these labels have another run in these seconds"}
	}
	r := o.has[id]
	if id == 0 || r == nil {
		if o.by[id] {
			return verdict{missing: true}
		}
		return verdict{true, "the run of these seconds is not known"}
	}
	v := r.judge(unix, o)
	if o.by[id] {
		v = verdict{missing: true}
	}
	return v
}

func (r *run) judge(unix int64, o *owners) verdict {
	if n := len(r.own); n > 0 && r.own[0] <= unix && unix <= r.own[n-1] {
		return verdict{missing: true}
	}
	before, after := neighbours(r.own, unix)
	var earlier, later string // other labels that have a second at least as near
	for _, name := range slices.Sorted(maps.Keys(r.others)) {
		seconds := r.others[name]
		if len(seconds) == 0 || o.replicas[name] {
			continue
		}
		if _, has := slices.BinarySearch(seconds, unix); has {
			return verdict{false, name + " has these seconds"}
		}
		first, last := neighbours(seconds, unix)
		if first >= before && first != math.MinInt64 {
			before, earlier = first, name
		}
		if last <= after && last != math.MaxInt64 {
			after, later = last, name
		}
	}
	switch {
	case earlier != "":
		return verdict{false, earlier + " has the seconds before"}
	case before != math.MinInt64: // ours
		return verdict{missing: true}
	case len(r.own)+len(r.others) == 0 && o.push(r.Run):
		return verdict{missing: true}
	case len(r.own)+len(r.others) == 0:
		return verdict{true, fmt.Sprintf("no labels have the run of these seconds, which is %d", r.ID)}
	case later != "":
		return verdict{false, later + " has the seconds after"}
	case len(r.own) == 0: // and replicas have some
		return verdict{true, fmt.Sprintf("these labels have nothing of the run of these seconds, which is %d", r.ID)}
	case r.First < o.since:
		return verdict{true, fmt.Sprintf("whose run %d was a day before is not known", r.ID)}
	}
	return verdict{missing: true}
}

// neighbours are the nearest seconds on both sides of one.
func neighbours(all []int64, unix int64) (before, after int64) {
	before, after = math.MinInt64, math.MaxInt64
	i, has := slices.BinarySearch(all, unix)
	if i > 0 {
		before = all[i-1]
	}
	if has {
		i++
	}
	if i < len(all) {
		after = all[i]
	}
	return before, after
}

// difference tells labels from those of the instance: their values of the labels that differ.
func difference(own, other map[string]string) string {
	var all []string
	for _, name := range differing(own, other) {
		all = append(all, name+"="+other[name])
	}
	return oneLine(strings.Join(all, ","), nil)
}
