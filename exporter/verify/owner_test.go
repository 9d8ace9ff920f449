package verify

import (
	"fmt"
	"math/rand/v2"
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

// world is a log and a database.
type world struct {
	owners
	runs *runs.File
	own  map[int64]int64 // the run of each second that the instance has
}

// newWorld makes a log with these runs, and a database with these spans.
func newWorld(t *testing.T, list []runs.Run, spans ...span) *world {
	t.Helper()
	file := runs.New(list)
	w := &world{runs: file, own: map[int64]int64{}}
	w.owners = owners{labels: map[string]string{"job": "j", "instance": "us"}, runs: map[int64]*run{}, since: 1}
	for _, r := range list {
		w.owners.runs[r.ID] = newRun(r, file)
	}
	for _, s := range spans {
		for at := s.from; at <= s.to; at++ {
			r := w.owners.runs[s.run]
			if s.labels == "" {
				w.own[at] = s.run
			}
			if r != nil {
				r.held[s.labels] = append(r.held[s.labels], at)
			}
		}
	}
	w.findReplicas()
	return w
}

func (w *world) judge(unix int64) verdict { return w.owners.judge(unix, w.runs.ID(unix), w.own[unix]) }

// has reports whether the labels have the second as the log has it.
func (w *world) isOwn(unix int64) bool { return w.own[unix] != 0 && w.own[unix] == w.runs.ID(unix) }

// The rule, case by case: what each second from 1 on is. A hole is h, one that others have is o, one that they lack is l, and one that
// is missing and of which nobody knows whose it is, is a question mark; what the labels have is a dot.
func TestOwners(t *testing.T) {
	one := []runs.Run{{ID: 11, First: 1, Last: 20, History: 5}}
	two := []runs.Run{{ID: 11, First: 1, Last: 10, History: 5}, {ID: 22, First: 11, Last: 20, History: 5}}
	long := []runs.Run{{ID: 11, First: 1, Last: 1000, History: 5}, {ID: 22, First: 1001, Last: 2000, History: 5}}
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
		"a restart as another instance":    {two, []span{{"pod-1", 11, 1, 8}, {"", 22, 13, 20}}, 1, 20, "oooooooollhh........", "pod-1 has these seconds"},
		"the one before it":                {two, []span{{"", 11, 1, 8}, {"pod-2", 22, 13, 20}}, 1, 20, "........hhlloooooooo", "pod-2 has these seconds"},
		"a changed label":                  {one, []span{{"old", 11, 1, 8}, {"", 11, 13, 20}}, 1, 20, "oooooooollll........", "old has the seconds before"},
		"a label that will change":         {one, []span{{"", 11, 1, 8}, {"new", 11, 13, 20}}, 1, 20, "........hhhhoooooooo", "new has these seconds"},
		"the first history of a cursor":    {one, []span{{"old", 11, 1, 8}, {"", 11, 4, 20}}, 1, 20, "ooo.................", "old has these seconds"},
		"and a hole after it":              {one, []span{{"", 11, 1, 8}, {"new", 11, 4, 8}, {"new", 11, 13, 20}}, 1, 20, "........lllloooooooo", "new has the seconds before"},
		"the same, seen by the later":      {one, []span{{"old", 11, 1, 8}, {"", 11, 4, 8}, {"", 11, 13, 20}}, 1, 20, "ooo.....hhhh........", "old has these seconds"},
		"the tail of a resumed cursor":     {two, []span{{"", 11, 1, 6}, {"pod-2", 11, 7, 10}, {"pod-2", 22, 11, 20}}, 1, 20, "......oooooooooooooo", "pod-2 has these seconds"},
		"the same, seen by the other":      {two, []span{{"pod-1", 11, 1, 6}, {"", 11, 7, 10}, {"", 22, 11, 20}}, 1, 20, "oooooo..............", "pod-1 has these seconds"},
		"nothing but what was handed on":   {two, []span{{"", 11, 7, 10}, {"", 22, 11, 20}}, 1, 20, "??????..............", "a later process may have forwarded"},
		"what was handed on has a hole":    {two, []span{{"", 11, 7, 7}, {"", 11, 10, 10}, {"", 22, 11, 20}}, 1, 20, "??????.hh...........", "a later process may have forwarded"},
		"more than could be handed on":     {two, []span{{"", 11, 5, 10}, {"", 22, 11, 20}}, 1, 20, "hhhh................", ""},
		"it was handed on and pushed":      {[]runs.Run{{ID: 11, First: 1, Last: 3, Labels: map[string]map[string]string{"a push": {"instance": "us"}}}, {ID: 22, First: 4, Last: 5}}, []span{{"", 11, 2, 3}, {"", 22, 4, 5}}, 1, 5, "h....", ""},
		"nobody has the run":               {two, []span{{"", 22, 11, 20}}, 1, 20, "??????????..........", "no labels have run"},
		"nobody has it, but it was pushed": {[]runs.Run{{ID: 11, First: 1, Last: 3, Labels: map[string]map[string]string{"a push": {"instance": "us"}}}}, nil, 1, 3, "hhh", ""},
		"it was pushed by another":         {[]runs.Run{{ID: 11, First: 1, Last: 3, Labels: map[string]map[string]string{"a push": {"instance": "them"}}}}, nil, 1, 3, "???", "no labels have run"},
		"no runs":                          {nil, nil, 1, 3, "???", "is unknown"},
		"between runs":                     {[]runs.Run{{ID: 11, First: 1, Last: 2}}, []span{{"", 11, 1, 2}}, 1, 4, "..??", "is unknown"},
		"labels of two processes":          {one, []span{{"", 11, 1, 5}, {"", 99, 6, 8}, {"", 11, 9, 20}}, 1, 20, ".....lll............", "another run"},
		"a replica":                        {long, []span{{"", 11, 10, 990}, {"b", 11, 1, 1000}}, 985, 1000, "......hhhhhhhhhh", ""},
		"a replica, away during a deploy":  {long, []span{{"", 11, 1, 995}, {"b", 11, 1, 1000}, {"b", 22, 1001, 1020}, {"", 22, 1010, 1020}}, 990, 1012, "......hhhhhhhhhhhhhh...", ""},
		"a replica of nothing of the run":  {long, []span{{"", 11, 1, 1000}, {"b", 11, 1, 1000}, {"b", 22, 1001, 1020}}, 999, 1003, "..???", "have no second of run"},
		"no replica yet":                   {long, []span{{"", 11, 1, 60}, {"b", 11, 1, 65}}, 59, 66, "..oooool", "b has"},
		"labels that come and go":          {one, []span{{"", 11, 1, 5}, {"b", 11, 6, 10}, {"", 11, 11, 15}, {"b", 11, 16, 20}}, 1, 20, ".....ooooo.....ooooo", "b has these seconds"},
		"and have a hole":                  {one, []span{{"", 11, 1, 5}, {"b", 11, 6, 7}, {"b", 11, 10, 10}, {"", 11, 11, 20}}, 1, 20, ".....oollo..........", "b has the seconds before"},
		"which is one of those between":    {one, []span{{"a", 11, 1, 5}, {"", 11, 6, 7}, {"", 11, 10, 10}, {"a", 11, 11, 20}}, 1, 20, "ooooo..hh.oooooooooo", ""},
		"both lack the same":               {one, []span{{"", 11, 1, 5}, {"", 11, 9, 20}, {"b", 11, 1, 5}, {"b", 11, 9, 20}}, 1, 20, ".....hhh............", ""},
		"a young pair, holes in turn":      {one, []span{{"", 11, 1, 5}, {"", 11, 9, 20}, {"b", 11, 1, 8}, {"b", 11, 11, 20}}, 1, 20, ".....hhh............", ""},
		"a young pair":                     {one, []span{{"", 11, 1, 5}, {"", 11, 9, 20}, {"b", 11, 1, 19}}, 1, 20, ".....hhh............", ""},
		"and back, by new cursors":         {one, []span{{"", 11, 1, 5}, {"b", 11, 4, 15}, {"", 11, 14, 20}}, 1, 20, ".....oooooooo.......", "b has these seconds"},
		"and forth, by new cursors":        {one, []span{{"b", 11, 1, 5}, {"", 11, 4, 9}, {"b", 11, 8, 15}, {"", 11, 14, 20}}, 1, 20, "ooo......oooo.......", "b has these seconds"},
		"both begin at once":               {one, []span{{"", 11, 5, 20}, {"b", 11, 5, 20}}, 1, 5, "llll.", "b has the seconds after"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWorld(t, tc.runs, tc.spans...)
			got, reasons := "", ""
			for at := tc.from; at <= tc.to; at++ {
				v := o.judge(at)
				reasons += v.reason + "\n"
				switch {
				case o.isOwn(at):
					got += "."
				case v == hole:
					got += "h"
				case v.missing:
					got += "?"
				case v.held:
					got += "o"
				default:
					got += "l"
				}
			}
			if got != tc.want || !strings.Contains(reasons, tc.reason) {
				t.Errorf("got %s, want %s, and %q in %s", got, tc.want, tc.reason, slices.Compact(strings.Split(reasons, "\n")))
			}
			for id := range o.owners.runs { // decided by hand
				o.forced = append(o.forced, id)
			}
			o.forced = append(o.forced, 0)
			for at := tc.from; at <= tc.to; at++ {
				if v := o.judge(at); v.reason != "" && !strings.Contains(v.reason, "another run") {
					t.Errorf("by hand: %v", v)
				}
			}
		})
	}
}

// Whichever process comes later, it may have forwarded what its history covers.
func TestForwardedByAnyLaterProcess(t *testing.T) {
	list := []runs.Run{
		{ID: 11, First: 1, Last: 100, History: 50},
		{ID: 22, First: 101, Last: 110, History: 10}, // too short for what follows
		{ID: 33, First: 111, Last: 200, History: 60},
	}
	o := newWorld(t, list, span{"", 11, 60, 100}, span{"", 33, 111, 200})
	if v := o.judge(55); v.reason == "" || !v.missing {
		t.Errorf("a second before what process 33 may have forwarded is %+v", v)
	}
	list[2].History = 40
	o = newWorld(t, list, span{"", 11, 60, 100}, span{"", 33, 111, 200})
	if v := o.judge(55); v != hole {
		t.Errorf("a second that no later process can have forwarded is %+v", v)
	}
	list[2].History = 0
	o = newWorld(t, list, span{"", 11, 60, 100}, span{"", 33, 111, 200})
	if v := o.judge(55); v.reason == "" || !v.missing {
		t.Errorf("with a later process of unknown history it is %+v", v)
	}
}

// A second scraper with frequent gaps is a replica: it gets its seconds back. Labels that took over are not, and if both
// kinds of evidence are there, the seconds are undecided: they count as missing and are not written.
func TestFrequentGaps(t *testing.T) {
	list := []runs.Run{{ID: 11, First: 1, Last: 2000, History: 120}}
	gappy := func(labels string, from int64) (spans []span) {
		for at := from; at < 2000; at += 120 {
			spans = append(spans, span{labels, 11, at, min(at+79, 2000)})
		}
		return spans
	}
	for name, tc := range map[string]struct {
		spans  []span
		second int64
		want   verdict
	}{
		"gaps of one":    {append(gappy("", 1), span{"b", 11, 1, 2000}), 100, hole},
		"a takeover":     {[]span{{"", 11, 1, 1000}, {"b", 11, 881, 2000}}, 1500, verdict{held: true, reason: "b has these seconds"}},
		"gaps of both":   {append(gappy("", 1), gappy("b", 61)...), 100, verdict{missing: true, reason: "b has these seconds; whether it is a replica is undecided"}},
		"two takeovers":  {[]span{{"", 11, 1, 600}, {"b", 11, 481, 1300}, {"", 11, 1181, 2000}}, 800, verdict{held: true, reason: "b has these seconds"}},
		"one gap of one": {[]span{{"", 11, 1, 900}, {"", 11, 1000, 2000}, {"b", 11, 1, 2000}}, 950, hole},
	} {
		if v := newWorld(t, list, tc.spans...).judge(tc.second); v != tc.want {
			t.Errorf("%s: %+v, want %+v", name, v, tc.want)
		}
	}
}

// Whatever was lost, a second is a hole of labels that had it, or that would have had it, and of no others.
func TestOwnersAgainstAnOracle(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var list []runs.Run
		truth, has, kept := map[int64]string{}, map[int64]string{}, map[string][]span{} // whose second it was, and what the database has
		at, turn, known := int64(1), 0, map[int64]bool{}                                // the runs that the database has
		for id := int64(1); id <= 4; id++ {
			r := runs.Run{ID: id, First: at, History: 1 + random.Int64N(40)}
			read := random.IntN(4) > 0     // while it ran
			for range 1 + random.IntN(3) { // labels change
				labels := fmt.Sprint("pod-", turn)
				if turn++; random.IntN(3) == 0 { // one that was before
					labels = fmt.Sprint("pod-", random.IntN(turn))
				}
				for range 5 + random.IntN(20) {
					if truth[at] = labels; read && random.IntN(3) > 0 {
						has[at], known[id] = labels, true
						kept[labels] = append(kept[labels], span{"", id, at, at})
					}
					at++
				}
			}
			r.Last = at - 1
			list = append(list, r)
		}
		handed := map[int64]bool{} // runs of which the database has no more than the next process may have handed on
		for i, next := range list[1:] {
			r, from := list[i], max(list[i].First, next.First-next.History)
			for at := from; at <= r.Last && !known[r.ID]; at++ {
				labels := truth[next.First]
				has[at] = labels
				kept[labels] = append(kept[labels], span{"", r.ID, at, at})
			}
			known[r.ID], handed[r.ID] = true, true
			for _, later := range list[i+1:] { // any later process may have forwarded them
				from = min(from, max(r.First, later.First-later.History))
			}
			for at := r.First; at < from; at++ {
				handed[r.ID] = handed[r.ID] && has[at] == ""
			}
		}
		claims := map[int64]int{} // how many labels would be given it
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
			o := newWorld(t, list, spans...)
			for second := range truth {
				v := o.judge(second)
				if !v.missing || v.reason != "" || o.own[second] != 0 {
					continue
				}
				claims[second]++
				// The rule, word by word: the nearest second of the run before it, or after it, that any have is of these labels.
				id, nearest := o.runs.ID(second), ""
				for _, step := range []int64{-1, 1} {
					for at := second; nearest == "" && o.runs.ID(at) == id && id != 0; at += step {
						nearest = has[at]
					}
				}
				if nearest != labels {
					t.Errorf("seed %d: %s claims second %d of %s, next to one of %s", seed, labels, second, truth[second], nearest)
				}
			}
		}
		file := newWorld(t, list).runs
		for second := range truth {
			id, n := list[len(list)-1].ID, claims[second]
			for _, r := range list {
				if r.First <= second && second <= r.Last {
					id = r.ID
				}
			}
			want, before := 1, false
			for at := second; file.ID(at) == id; at-- {
				before = before || has[at] != ""
			}
			if has[second] != "" || !known[id] || handed[id] && !before {
				want = 0
			}
			if n != want {
				t.Errorf("seed %d: %d labels claim second %d, want %d", seed, n, second, want)
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
	c := newComparison(r.gap, r.options)
	c.heal = sink
	if err := c.find(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := c.run(t.Context())
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
	if n == 0 || report.Missing != 5 || !strings.Contains(fmt.Sprint(report.Elsewhere), "instance=old has these seconds") ||
		!strings.Contains(fmt.Sprint(report.NotHealed), "instance=old has the seconds before") {
		t.Errorf("%d samples, %d missing; %+v, %+v", n, report.Missing, report.Elsewhere, report.NotHealed)
	}
}

// One heal at a time: two would write twice into a server that keeps duplicates.
func TestOneHealAtATime(t *testing.T) {
	r := newReplica(t)
	file, err := filelock.Lock(filepath.Join(r.gap.Searcher.Dir, "shop-heal.lck"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	_, err = Heal(t.Context(), r.gap, r.options, Target{Push: push.Options{URL: "http://127.0.0.1:1"}})
	if err == nil || !strings.Contains(err.Error(), "another heal of this log is under way") {
		t.Errorf("%v", err)
	}
}
