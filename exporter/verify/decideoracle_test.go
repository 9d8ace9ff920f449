package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windowstat/windowstat/exporter/internal/runs"
)

// randomLog is the truth about a random log and database. A few processes run one after the other, and their labels
// change.
type randomLog struct {
	runs  []runs.Run
	run   map[int64]int64   // by second: the run that counted it
	truth map[int64]string  // by second: the labels that the process had
	has   map[int64]string  // by second: the labels that have it in the database
	spans map[string][]span // by labels: the same as has

	scraped   map[int64]bool // runs that the database has
	forwarded map[int64]bool // runs of which the database has only seconds that a later process may have forwarded
}

// newRandomLog returns four processes. Each was scraped with gaps or not at all.
func newRandomLog(random *rand.Rand) *randomLog {
	l := &randomLog{
		run: map[int64]int64{}, truth: map[int64]string{}, has: map[int64]string{}, spans: map[string][]span{},
		scraped: map[int64]bool{}, forwarded: map[int64]bool{},
	}
	at, changes := int64(1), 0
	for id := int64(1); id <= 4; id++ {
		r := runs.Run{ID: id, First: at, History: 1 + random.Int64N(40)}
		scraped := random.IntN(4) > 0
		for range 1 + random.IntN(3) { // labels change
			labels := fmt.Sprint("pod-", changes)
			if changes++; random.IntN(3) == 0 { // to labels that existed before
				labels = fmt.Sprint("pod-", random.IntN(changes))
			}
			for range 5 + random.IntN(20) {
				l.run[at], l.truth[at] = id, labels
				if scraped && random.IntN(3) > 0 {
					l.add(labels, id, at)
				}
				at++
			}
		}
		r.Last = at - 1
		l.runs = append(l.runs, r)
	}
	l.forward()
	return l
}

// add adds a second of a run to the database.
func (l *randomLog) add(labels string, id, at int64) {
	l.has[at], l.scraped[id] = labels, true
	l.spans[labels] = append(l.spans[labels], span{"", id, at, at})
}

// forward lets each process forward the end of the run before it, if that run was never scraped.
func (l *randomLog) forward() {
	for i, next := range l.runs[1:] {
		r := l.runs[i]
		from := max(r.First, next.First-next.History)
		for at, missed := from, !l.scraped[r.ID]; at <= r.Last && missed; at++ {
			l.add(l.truth[next.First], r.ID, at)
		}
		for _, later := range l.runs[i+1:] {
			from = min(from, max(r.First, later.First-later.History))
		}
		l.forwarded[r.ID] = true
		for at := r.First; at < from; at++ {
			l.forwarded[r.ID] = l.forwarded[r.ID] && l.has[at] == ""
		}
	}
}

// world returns the log, and the database as seen by the labels.
func (l *randomLog) world(t *testing.T, labels string) *world {
	var spans []span
	for name, all := range l.spans {
		for _, s := range all {
			if s.labels = name; name == labels {
				s.labels = ""
			}
			spans = append(spans, s)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.from - b.from) })
	return newWorld(t, l.runs, spans...)
}

// nearest returns the labels that have the nearest second of the same run: the nearest before the second or, without
// one, the nearest after it.
func (l *randomLog) nearest(second int64) (labels string) {
	for _, step := range []int64{-1, 1} {
		for at := second; labels == "" && l.run[at] == l.run[second]; at += step {
			labels = l.has[at]
		}
	}
	return labels
}

// Exactly one instance gets each lost second of a run that the database has: the labels of the nearest second. No
// labels get it if a later process may have forwarded everything that the database has of the run.
func TestDecisionsAgainstAnOracle(t *testing.T) {
	for seed := range uint64(300) {
		l := newRandomLog(rand.New(rand.NewPCG(seed, 1)))
		writers := map[int64]int{} // by second: the number of labels that may write it
		for labels := range l.spans {
			w := l.world(t, labels)
			for second := range l.truth {
				if w.decide(second).verdict != verdictWrite || w.stored[second] != 0 {
					continue
				}
				writers[second]++
				if nearest := l.nearest(second); nearest != labels {
					t.Errorf("seed %d: %s gets second %d of %s, and %s has the nearest second",
						seed, labels, second, l.truth[second], nearest)
				}
			}
		}
		for second := range l.truth {
			id, want, before := l.run[second], 1, false
			for at := second; l.run[at] == id; at-- {
				before = before || l.has[at] != ""
			}
			if l.has[second] != "" || !l.scraped[id] || l.forwarded[id] && !before {
				want = 0
			}
			if writers[second] != want {
				t.Errorf("seed %d: %d labels get second %d, want %d", seed, writers[second], second, want)
			}
		}
	}
}
