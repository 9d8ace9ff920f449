package verify

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/push"
)

// span are the seconds from one to another that some labels have of a run.
type span struct {
	labels   string // empty for the instance
	run      int64
	from, to int64
}

// world makes the owners of a log with these runs, and of a database with these spans.
func world(t *testing.T, list []runs.Run, spans ...span) *owners {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.json")
	b, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	file, e := runs.Load(path)
	if err != nil || e != nil {
		t.Fatal(err, e)
	}
	o := &owners{
		runs: file, by: map[int64]bool{}, own: map[int64]int64{}, has: map[int64]*run{}, since: 1,
		push: func(r runs.Run) bool { return r.Labels["a push"]["instance"] == "us" },
	}
	for _, r := range list {
		o.has[r.ID] = &run{Run: r, others: map[string][]int64{}}
	}
	for _, s := range spans {
		for at := s.from; at <= s.to; at++ {
			r := o.has[s.run]
			if s.labels != "" {
				r.others[s.labels] = append(r.others[s.labels], at)
				continue
			}
			if o.own[at] = s.run; r != nil {
				r.own = append(r.own, at)
			}
		}
	}
	o.findReplicas(600)
	return o
}

// The rule, case by case: what each second from 1 on is. A hole is h, one of others is o, and one that is missing and of which nobody
// knows whose it is, is a question mark; what the labels have is a dot.
func TestOwners(t *testing.T) {
	one := []runs.Run{{ID: 11, First: 1, Last: 20, History: 5}}
	two := []runs.Run{{ID: 11, First: 1, Last: 10, History: 5}, {ID: 22, First: 11, Last: 20, History: 5}}
	long := []runs.Run{{ID: 11, First: 1, Last: 1000, History: 5}, {ID: 22, First: 1001, History: 5}}
	for name, tc := range map[string]struct {
		runs     []runs.Run
		spans    []span
		from, to int64
		want     string
		reason   string
	}{
		"a hole":                           {one, []span{{"", 11, 1, 5}, {"", 11, 9, 20}}, 1, 20, ".....hhh............", ""},
		"edges":                            {one, []span{{"", 11, 5, 15}}, 1, 20, "hhhh...........hhhhh", ""},
		"a restart":                        {two, []span{{"", 11, 1, 8}, {"", 22, 13, 20}}, 1, 20, "........hhhh........", ""},
		"a restart as another instance":    {two, []span{{"pod-1", 11, 1, 8}, {"", 22, 13, 20}}, 1, 20, "oooooooooohh........", "pod-1 has these seconds"},
		"the one before it":                {two, []span{{"", 11, 1, 8}, {"pod-2", 22, 13, 20}}, 1, 20, "........hhoooooooooo", "pod-2 has these seconds"},
		"a changed label":                  {one, []span{{"old", 11, 1, 8}, {"", 11, 13, 20}}, 1, 20, "oooooooooooo........", "old has the seconds before"},
		"a label that will change":         {one, []span{{"", 11, 1, 8}, {"new", 11, 13, 20}}, 1, 20, "........hhhhoooooooo", "new has these seconds"},
		"the first history of a cursor":    {one, []span{{"old", 11, 1, 8}, {"", 11, 4, 20}}, 1, 20, "ooo.................", "old has these seconds"},
		"and a hole after it":              {one, []span{{"", 11, 1, 8}, {"new", 11, 4, 8}, {"new", 11, 13, 20}}, 1, 20, "........oooooooooooo", "new has the seconds before"},
		"the tail of a resumed cursor":     {two, []span{{"", 11, 1, 6}, {"pod-2", 11, 7, 10}, {"pod-2", 22, 11, 20}}, 1, 20, "......oooooooooooooo", "pod-2 has these seconds"},
		"the same, seen by the other":      {two, []span{{"pod-1", 11, 1, 6}, {"", 11, 7, 10}, {"", 22, 11, 20}}, 1, 20, "oooooo..............", "pod-1 has these seconds"},
		"nobody has the run":               {two, []span{{"", 22, 11, 20}}, 1, 20, "??????????..........", "no labels have the run"},
		"nobody has it, but it was pushed": {[]runs.Run{{ID: 11, First: 1, Last: 3, Labels: map[string]map[string]string{"a push": {"instance": "us"}}}}, nil, 1, 3, "hhh", ""},
		"it was pushed by another":         {[]runs.Run{{ID: 11, First: 1, Last: 3, Labels: map[string]map[string]string{"a push": {"instance": "them"}}}}, nil, 1, 3, "???", "no labels have the run"},
		"no runs":                          {nil, nil, 1, 3, "???", "is not known"},
		"between runs":                     {[]runs.Run{{ID: 11, First: 1, Last: 2}}, []span{{"", 11, 1, 2}}, 1, 4, "..??", "is not known"},
		"labels of two processes":          {one, []span{{"", 11, 1, 5}, {"", 99, 6, 8}, {"", 11, 9, 20}}, 1, 20, ".....ooo............", "another run"},
		"a replica":                        {long, []span{{"", 11, 10, 990}, {"b", 11, 1, 1000}}, 985, 1000, "......hhhhhhhhhh", ""},
		"a replica, away during a deploy":  {long, []span{{"", 11, 1, 995}, {"b", 11, 1, 1000}, {"b", 22, 1001, 1020}, {"", 22, 1010, 1020}}, 990, 1012, "......hhhhhhhhhhhhhh...", ""},
		"a replica of nothing of the run":  {long, []span{{"", 11, 1, 1000}, {"b", 11, 1, 1000}, {"b", 22, 1001, 1020}}, 999, 1003, "..???", "nothing of the run"},
		"no replica yet":                   {long, []span{{"", 11, 1, 60}, {"b", 11, 1, 65}}, 59, 66, "..oooooo", "b has"},
		"labels that come and go":          {one, []span{{"", 11, 1, 5}, {"b", 11, 6, 10}, {"", 11, 11, 15}, {"b", 11, 16, 20}}, 1, 20, ".....hhhhh.....ooooo", "b has these seconds"},
		"both begin at once":               {one, []span{{"", 11, 5, 20}, {"b", 11, 5, 20}}, 1, 5, "oooo.", "b has the seconds after"},
	} {
		t.Run(name, func(t *testing.T) {
			o := world(t, tc.runs, tc.spans...)
			got, reasons := "", ""
			for at := tc.from; at <= tc.to; at++ {
				v := o.judge(at)
				reasons += v.reason + "\n"
				switch {
				case o.own[at] != 0 && o.own[at] == o.runs.ID(at):
					got += "."
				case v.missing && v.reason == "":
					got += "h"
				case v.missing:
					got += "?"
				default:
					got += "o"
				}
			}
			if got != tc.want || !strings.Contains(reasons, tc.reason) {
				t.Errorf("got %s, want %s, and %q in %s", got, tc.want, tc.reason, slices.Compact(strings.Split(reasons, "\n")))
			}
			for id := range o.has { // decided by hand
				o.by[id] = true
			}
			o.by[0] = true
			for at := tc.from; at <= tc.to; at++ {
				if v := o.judge(at); v.reason != "" && !strings.Contains(v.reason, "another run") {
					t.Errorf("by hand: %v", v)
				}
			}
		})
	}
}

// Whatever was lost, a second is a hole of labels that had it, or that would have had it, and of no others.
func TestOwnersAgainstAnOracle(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var list []runs.Run
		truth, kept := map[int64]string{}, map[string][]span{} // whose second it was, and what the database has
		at, turn := int64(1), 0
		for id := int64(1); id <= 4; id++ {
			r := runs.Run{ID: id, First: at, History: 600}
			for range 1 + random.IntN(3) { // labels change
				labels := fmt.Sprint("pod-", turn)
				turn++
				for range 5 + random.IntN(20) {
					if truth[at] = labels; random.IntN(3) > 0 {
						kept[labels] = append(kept[labels], span{"", id, at, at})
					}
					at++
				}
			}
			r.Last = at - 1
			list = append(list, r)
		}
		claims := map[int64]int{}
		for labels := range kept {
			var spans []span
			for name, all := range kept {
				for _, s := range all {
					if s.labels = name; name == labels {
						s.labels = ""
					}
					spans = append(spans, s)
				}
			}
			slices.SortFunc(spans, func(a, b span) int { return int(a.from - b.from) })
			o := world(t, list, spans...)
			for second := range truth {
				v := o.judge(second)
				if !v.missing || v.reason != "" || o.own[second] != 0 {
					continue
				}
				claims[second]++
				// What was lost at the very edge cannot be told from the neighbour's; it is of labels of the same run.
				id := o.runs.ID(second)
				if truth[second] != labels && len(o.has[id].own) == 0 {
					t.Errorf("seed %d: %s claims second %d of %s", seed, labels, second, truth[second])
				}
			}
		}
		for second, n := range claims {
			if n > 1 {
				t.Errorf("seed %d: %d labels claim second %d", seed, n, second)
			}
		}
	}
}

// A log that outlives the address of its process: what the earlier instance has, or lacks, is not written under the later labels.
func TestHealOfTheOtherInstance(t *testing.T) {
	r := newReplica(t)
	// The first process was scraped as another instance, and lost some.
	moved := map[string][]point{}
	for labels, points := range r.series {
		var first, second []point
		for _, p := range points {
			if p.at < (r.begin+215)*1000 {
				first = append(first, p)
			} else {
				second = append(second, p)
			}
		}
		moved[labels], moved[strings.Replace(labels, `"instance":"i"`, `"instance":"old"`, 1)] = second, first
	}
	r.series = moved
	r.drop(func(_ string, at int64) bool {
		return at >= r.begin+40 && at < r.begin+45 || at >= r.begin+195 && at < r.begin+235
	})
	sink := newExpected("")
	c, err := newComparison(r.gap, r.options)
	if err != nil {
		t.Fatal(err)
	}
	r.options.defaults(DefaultDelay)
	c.timeout, c.heal = r.options.Timeout, sink
	if err := c.find(t.Context(), &r.gap, r.options); err != nil {
		t.Fatal(err)
	}
	report, err := c.run(t.Context(), r.gap)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range sink.series {
		for _, x := range s.samples {
			if n++; x.unix < r.begin+230 {
				t.Errorf("%s of second %d is written", s.metric, x.unix-r.begin)
			}
		}
	}
	if n == 0 || report.Missing != 5 || len(report.NotHealed) == 0 || !strings.Contains(fmt.Sprint(report.NotHealed), "instance=old has") {
		t.Errorf("%d samples, %d missing; %+v", n, report.Missing, report.NotHealed)
	}
}

// One heal at a time: two would write twice into a server that keeps duplicates.
func TestOneHealAtATime(t *testing.T) {
	r := newReplica(t)
	file, _, err := filelock.Lock(filepath.Join(r.gap.Searcher.Dir, "shop-heal.lck"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	_, err = Heal(t.Context(), r.gap, r.options, Target{Push: push.Options{URL: "http://127.0.0.1:1"}})
	if err == nil || !strings.Contains(err.Error(), "another heal of this log is under way") {
		t.Errorf("%v", err)
	}
}
