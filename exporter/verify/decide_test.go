package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/exporter/internal/runs"
)

// span is a range of seconds of a run that some labels have, both ends included.
type span struct {
	labels   string // empty for the labels of the instance
	run      int64
	from, to int64
}

// world is a log and a database.
type world struct {
	ownership
	runs   *runs.File
	stored map[int64]int64 // by second: the run that the labels of the instance have
}

// newWorld returns a log with the runs, and a database with the spans.
func newWorld(t *testing.T, list []runs.Run, spans ...span) *world {
	t.Helper()
	file := runs.New(list)
	w := &world{runs: file, stored: map[int64]int64{}}
	w.ownership = ownership{
		labels: map[string]string{"job": "j", "instance": "us"}, runs: map[int64]*run{}, searchedFrom: 1,
	}
	for _, r := range list {
		w.ownership.runs[r.ID] = newRun(r, file)
	}
	for _, s := range spans {
		for at := s.from; at <= s.to; at++ {
			if s.labels == "" {
				w.stored[at] = s.run
			}
			if r := w.ownership.runs[s.run]; r != nil {
				r.add(s.labels, at)
			}
		}
	}
	w.findReplicas()
	return w
}

// decide returns the decision about a second.
func (w *world) decide(unix int64) decision {
	return w.ownership.decide(unix, w.runs.ID(unix), w.stored[unix])
}

// has reports whether the labels of the instance have the second with the run of the log.
func (w *world) has(unix int64) bool { return w.stored[unix] != 0 && w.stored[unix] == w.runs.ID(unix) }

// Each case shows the decisions about consecutive seconds: w is written, o is elsewhere, f is foreign, ? is missing and
// not written, and the labels of the instance have the seconds with a dot.
func TestDecisions(t *testing.T) {
	one := []runs.Run{{ID: 11, First: 1, Last: 20, History: 5}}
	two := []runs.Run{{ID: 11, First: 1, Last: 10, History: 5}, {ID: 22, First: 11, Last: 20, History: 5}}
	long := []runs.Run{{ID: 11, First: 1, Last: 1000, History: 5}, {ID: 22, First: 1001, Last: 2000, History: 5}}
	pushed := func(first, last int64, instance string) runs.Run {
		labels := map[string]map[string]string{"a push": {"instance": instance}}
		return runs.Run{ID: 11, First: first, Last: last, Labels: labels}
	}
	for name, tc := range map[string]struct {
		runs     []runs.Run
		spans    []span
		from, to int64
		want     string
		reason   string
	}{
		"a gap": {
			one,
			[]span{{"", 11, 1, 5}, {"", 11, 9, 20}},
			1, 20, ".....www............", "",
		},
		"both ends of a run": {
			one,
			[]span{{"", 11, 5, 15}},
			1, 20, "wwww...........wwwww", "",
		},
		"a restart": {
			two,
			[]span{{"", 11, 1, 8}, {"", 22, 13, 20}},
			1, 20, "........wwww........", "",
		},
		"a restart as another instance": {
			two,
			[]span{{"pod-1", 11, 1, 8}, {"", 22, 13, 20}},
			1, 20, "ooooooooffww........", "pod-1 has these seconds",
		},
		"a restart, seen by the first instance": {
			two,
			[]span{{"", 11, 1, 8}, {"pod-2", 22, 13, 20}},
			1, 20, "........wwffoooooooo", "pod-2 has these seconds",
		},
		"a changed label": {
			one,
			[]span{{"old", 11, 1, 8}, {"", 11, 13, 20}},
			1, 20, "ooooooooffff........", "old has the seconds before",
		},
		"a changed label, seen by the first labels": {
			one,
			[]span{{"", 11, 1, 8}, {"new", 11, 13, 20}},
			1, 20, "........wwwwoooooooo", "new has these seconds",
		},
		"a new cursor begins with the history": {
			one,
			[]span{{"old", 11, 1, 8}, {"", 11, 4, 20}},
			1, 20, "ooo.................", "old has these seconds",
		},
		"a new cursor, and a gap after its history": {
			one,
			[]span{{"", 11, 1, 8}, {"new", 11, 4, 8}, {"new", 11, 13, 20}},
			1, 20, "........ffffoooooooo", "new has the seconds before",
		},
		"a new cursor and a gap, seen by the later labels": {
			one,
			[]span{{"old", 11, 1, 8}, {"", 11, 4, 8}, {"", 11, 13, 20}},
			1, 20, "ooo.....wwww........", "old has these seconds",
		},
		"the end of a run that a resumed cursor got": {
			two,
			[]span{{"", 11, 1, 6}, {"pod-2", 11, 7, 10}, {"pod-2", 22, 11, 20}},
			1, 20, "......oooooooooooooo", "pod-2 has these seconds",
		},
		"a resumed cursor, seen by the later instance": {
			two,
			[]span{{"pod-1", 11, 1, 6}, {"", 11, 7, 10}, {"", 22, 11, 20}},
			1, 20, "oooooo..............", "pod-1 has these seconds",
		},
		"only seconds that a later process may have forwarded": {
			two,
			[]span{{"", 11, 7, 10}, {"", 22, 11, 20}},
			1, 20, "??????..............", "a later process may have forwarded",
		},
		"a gap in seconds that may have been forwarded": {
			two,
			[]span{{"", 11, 7, 7}, {"", 11, 10, 10}, {"", 22, 11, 20}},
			1, 20, "??????.ww...........", "a later process may have forwarded",
		},
		"more seconds than a later process can have forwarded": {
			two,
			[]span{{"", 11, 5, 10}, {"", 22, 11, 20}},
			1, 20, "wwww................", "",
		},
		"seconds that may have been forwarded, of a push": {
			[]runs.Run{pushed(1, 3, "us"), {ID: 22, First: 4, Last: 5}},
			[]span{{"", 11, 2, 3}, {"", 22, 4, 5}},
			1, 5, "w....", "",
		},
		"no labels have the run": {
			two,
			[]span{{"", 22, 11, 20}},
			1, 20, "??????????..........", "no labels have run",
		},
		"no labels have the run, and it was pushed": {
			[]runs.Run{pushed(1, 3, "us")},
			nil,
			1, 3, "www", "",
		},
		"no labels have the run, and others pushed it": {
			[]runs.Run{pushed(1, 3, "them")},
			nil,
			1, 3, "???", "no labels have run",
		},
		"no runs": {
			nil,
			nil,
			1, 3, "???", "is unknown",
		},
		"between runs": {
			[]runs.Run{{ID: 11, First: 1, Last: 2}},
			[]span{{"", 11, 1, 2}},
			1, 4, "..??", "is unknown",
		},
		"labels of two processes": {
			one,
			[]span{{"", 11, 1, 5}, {"", 99, 6, 8}, {"", 11, 9, 20}},
			1, 20, ".....fff............", "another run",
		},
		"a replica": {
			long,
			[]span{{"", 11, 10, 990}, {"b", 11, 1, 1000}},
			985, 1000, "......wwwwwwwwww", "",
		},
		"a replica that was down during a deploy": {
			long,
			[]span{{"", 11, 1, 995}, {"b", 11, 1, 1000}, {"b", 22, 1001, 1020}, {"", 22, 1010, 1020}},
			990, 1012, "......wwwwwwwwwwwwww...", "",
		},
		"only a replica has the run": {
			long,
			[]span{{"", 11, 1, 1000}, {"b", 11, 1, 1000}, {"b", 22, 1001, 1020}},
			999, 1003, "..???", "have no second of run",
		},
		"too few shared seconds for a replica": {
			long,
			[]span{{"", 11, 1, 60}, {"b", 11, 1, 65}},
			59, 66, "..ooooof", "b has",
		},
		"labels that alternate": {
			one,
			[]span{{"", 11, 1, 5}, {"b", 11, 6, 10}, {"", 11, 11, 15}, {"b", 11, 16, 20}},
			1, 20, ".....ooooo.....ooooo", "b has these seconds",
		},
		"labels that alternate, and a gap of the others": {
			one,
			[]span{{"", 11, 1, 5}, {"b", 11, 6, 7}, {"b", 11, 10, 10}, {"", 11, 11, 20}},
			1, 20, ".....ooffo..........", "b has the seconds before",
		},
		"labels that alternate, and an own gap": {
			one,
			[]span{{"a", 11, 1, 5}, {"", 11, 6, 7}, {"", 11, 10, 10}, {"a", 11, 11, 20}},
			1, 20, "ooooo..ww.oooooooooo", "",
		},
		"a pair that lacks the same seconds": {
			one,
			[]span{{"", 11, 1, 5}, {"", 11, 9, 20}, {"b", 11, 1, 5}, {"b", 11, 9, 20}},
			1, 20, ".....www............", "",
		},
		"a young pair with different gaps": {
			one,
			[]span{{"", 11, 1, 5}, {"", 11, 9, 20}, {"b", 11, 1, 8}, {"b", 11, 11, 20}},
			1, 20, ".....www............", "",
		},
		"a young pair": {
			one,
			[]span{{"", 11, 1, 5}, {"", 11, 9, 20}, {"b", 11, 1, 19}},
			1, 20, ".....www............", "",
		},
		"others took over and back by new cursors": {
			one,
			[]span{{"", 11, 1, 5}, {"b", 11, 4, 15}, {"", 11, 14, 20}},
			1, 20, ".....oooooooo.......", "b has these seconds",
		},
		"these took over and back by new cursors": {
			one,
			[]span{{"b", 11, 1, 5}, {"", 11, 4, 9}, {"b", 11, 8, 15}, {"", 11, 14, 20}},
			1, 20, "ooo......oooo.......", "b has these seconds",
		},
		"equally near labels": {
			one,
			[]span{{"", 11, 5, 20}, {"b", 11, 5, 20}},
			1, 5, "ffff.", "b has the seconds after",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.runs, tc.spans...)
			letters := map[verdict]string{
				verdictWrite: "w", verdictMissing: "?", verdictElsewhere: "o", verdictForeign: "f",
			}
			got, reasons := "", ""
			for at := tc.from; at <= tc.to; at++ {
				d := w.decide(at)
				if reasons += d.reason + "\n"; w.has(at) {
					got += "."
				} else {
					got += letters[d.verdict]
				}
				if (d.verdict == verdictWrite) != (d.reason == "") {
					t.Errorf("second %d: %+v", at, d)
				}
			}
			if got != tc.want || !strings.Contains(reasons, tc.reason) {
				t.Errorf("got %s, want %s, and %q in %s",
					got, tc.want, tc.reason, slices.Compact(strings.Split(reasons, "\n")))
			}
			for id := range w.ownership.runs { // the user names all runs
				w.chosen = append(w.chosen, id)
			}
			w.chosen = append(w.chosen, 0)
			for at := tc.from; at <= tc.to; at++ {
				if d := w.decide(at); d.reason != "" && !strings.Contains(d.reason, "another run") {
					t.Errorf("chosen by the user, second %d: %+v", at, d)
				}
			}
		})
	}
}

// Any later process may have forwarded the seconds in its history.
func TestForwardedByAnyLaterProcess(t *testing.T) {
	list := []runs.Run{
		{ID: 11, First: 1, Last: 100, History: 50},
		{ID: 22, First: 101, Last: 110, History: 10}, // does not reach second 60
		{ID: 33, First: 111, Last: 200, History: 60},
	}
	decide := func() decision {
		return newWorld(t, list, span{"", 11, 60, 100}, span{"", 33, 111, 200}).decide(55)
	}
	if d := decide(); d.verdict != verdictMissing || d.reason == "" {
		t.Errorf("process 33 may have forwarded the following seconds: %+v", d)
	}
	list[2].History = 40
	if d := decide(); d != (decision{verdict: verdictWrite}) {
		t.Errorf("no later process can have forwarded the following seconds: %+v", d)
	}
	list[2].History = 0
	if d := decide(); d.verdict != verdictMissing || d.reason == "" {
		t.Errorf("the history of a later process is unknown: %+v", d)
	}
}

// A run that began before the queries of the database may have earlier seconds under other labels.
func TestRunThatBeganBeforeTheQueries(t *testing.T) {
	w := newWorld(t, []runs.Run{{ID: 11, First: 1, Last: 20, History: 5}}, span{"", 11, 10, 20})
	if d := w.decide(9); d != (decision{verdict: verdictWrite}) {
		t.Errorf("the whole run was queried: %+v", d)
	}
	w.searchedFrom = 2
	if d := w.decide(9); d.verdict != verdictMissing || !strings.Contains(d.reason, "began more than a day before") {
		t.Errorf("second 1 was not queried: %+v", d)
	}
}
