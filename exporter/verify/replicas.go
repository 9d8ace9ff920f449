package verify

import "slices"

// replicaMargin is the number of seconds that two labels may share without being replicas, in addition to the seconds
// that takeovers explain.
const replicaMargin = 60

// findReplicas finds the labels that are, or may be, replicas of the instance.
//
// Labels that take over from others begin with seconds that the others have already, one history at most, because a new
// cursor gets the whole history. Replicas share more seconds. Two labels are replicas if they share a stretch of
// seconds that is longer than the history. If one of them has frequent gaps, they are replicas if they share more
// seconds than all changes between the two explain, with one history for each change. If the history of a run is
// unknown, the run does not identify replicas.
//
// With a history of 600 seconds, labels that took over once share up to 600 seconds with the earlier labels. Labels
// that share a stretch of 661 seconds are replicas. Labels that share 1,861 seconds in short stretches are also
// replicas, if the owner of the seconds between the stretches changes twice.
func (o *ownership) findReplicas() {
	o.replicas, o.maybeReplicas = map[string]bool{}, map[string]bool{}
	for _, r := range o.runs {
		if r.History == 0 {
			continue
		}
		for name, seconds := range r.others {
			switch shared, longest, changes := overlap(r.own, seconds); {
			case longest > replicaMargin+r.History, shared > replicaMargin+(changes+1)*r.History:
				o.replicas[name] = true
			case shared > replicaMargin+r.History && changes > 2: // more than labels that took over and back
				o.maybeReplicas[name] = true
			}
		}
	}
}

// overlap compares the seconds of two labels, both ascending. A second is separate if only one of them has it. Shared
// is the number of seconds that both have, and longest is the longest stretch of them without a separate second.
// Changes is the number of times that the owner of the separate seconds changes: 1 if b took over from a.
func overlap(a, b []int64) (shared, longest, changes int64) {
	const ownerA, ownerB = 1, 2
	var stretch, lastOwner int64 // lastOwner is 0 before the first separate second
	separate := func(owner int64) {
		if stretch = 0; lastOwner != 0 && lastOwner != owner {
			changes++
		}
		lastOwner = owner
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			a = a[1:]
			separate(ownerA)
		case len(a) == 0 || b[0] < a[0]:
			b = b[1:]
			separate(ownerB)
		default:
			a, b = a[1:], b[1:]
			shared++
			stretch++
			longest = max(longest, stretch)
		}
	}
	return shared, longest, changes
}

// startTolerance is the maximum distance between the first seconds of two labels that both have a run from its start. A
// push begins with the second of its creation, and a scrape with the first second that has ended.
const startTolerance = 2

// scrapedAlongside reports whether other labels are scraped at the same time as the labels of the instance, but not yet
// long enough for findReplicas. Both must have the run from about the same second on (see startTolerance), and share
// seconds within a minute on both sides of unix. Labels that took over share no seconds on one side.
func (r *run) scrapedAlongside(others []int64, unix int64) bool {
	if len(others) == 0 || len(r.own) == 0 {
		return false
	}
	if d := others[0] - r.own[0]; max(d, -d) > startTolerance {
		return false // one took over from the other, perhaps with a new cursor, which begins with the history
	}
	i, _ := slices.BinarySearch(r.own, unix)
	shares := func(own []int64) bool {
		return slices.ContainsFunc(own, func(second int64) bool {
			_, has := slices.BinarySearch(others, second)
			return has
		})
	}
	return shares(r.own[max(0, i-replicaMargin):i]) && shares(r.own[i:min(len(r.own), i+replicaMargin)])
}
