package verify

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	steady := seriesOf(pass, "steady")
	for name, tc := range map[string]struct {
		change                    func(r *fixture)
		missing, different, extra int64
		finds, notes              string
	}{
		"all is well, across a restart": {func(*fixture) {}, 0, 0, 0, "", "the log begins at"},
		"Prometheus 2":                  {func(r *fixture) { r.closed = true }, 0, 0, 0, "", ""},
		"a server that answers little":  {func(r *fixture) { r.maxSamples, r.closed = 100, true }, 0, 0, 0, "", ""},
		"ten seconds of all": {func(r *fixture) {
			r.drop(func(_ string, at int64) bool { return at >= r.begin+100 && at < r.begin+110 })
		}, 10, 0, 0, "rare pass missing 100+10", ""},
		"one sample": {func(r *fixture) {
			r.drop(func(s string, at int64) bool { return s == steady && at == r.begin+7 })
		}, 1, 0, 0, "steady pass missing 7+1", ""},
		"two holes": {func(r *fixture) {
			r.drop(func(s string, at int64) bool { return s == steady && (at == r.begin+7 || at == r.begin+9) })
		}, 2, 0, 0, "steady pass missing 7+1, 9+1", ""},
		"a hole over the restart is one": {func(r *fixture) {
			r.drop(func(s string, at int64) bool { return s == steady && at >= r.begin+195 && at < r.begin+235 })
		}, 10, 0, 0, "steady pass missing 195+10", ""},
		"a resource": {func(r *fixture) {
			r.drop(func(s string, _ int64) bool { return strings.Contains(s, `"rare"`) })
		}, 0, 0, 0, "", "does not have 1 resources"},
		"a resource, of all": {func(r *fixture) {
			r.options.All = true
			r.drop(func(s string, _ int64) bool { return strings.Contains(s, `"rare"`) })
		}, 395, 0, 0, "rare pass missing", "idle"},
		"zeros of idle seconds": {func(r *fixture) {
			r.drop(func(s string, at int64) bool {
				return strings.Contains(s, `"rare"`) && at >= r.begin+20 && at < r.begin+50
			})
		}, 0, 0, 0, "", "samples of idle seconds"},
		"a metric that is not scraped": {func(r *fixture) {
			r.drop(func(s string, _ int64) bool { return strings.Contains(s, block) })
		}, 0, 0, 0, "", "does not have " + block},
		"a metric that is not scraped, of all": {func(r *fixture) {
			r.options.All = true
			r.drop(func(s string, _ int64) bool { return strings.Contains(s, block) })
		}, 400, 0, 0, "steady block missing 0+400", ""},
		"other labels": {func(r *fixture) { clear(r.series) }, 400, 0, 0, "", "no series with these labels"},
		"a value":      {func(r *fixture) { r.series[steady][3].value++ }, 0, 1, 0, "steady pass different 3: 1 and 2", ""},
		"a value of an idle second": {func(r *fixture) {
			s := seriesOf(pass, "rare")
			i := slices.IndexFunc(r.series[s], func(p point) bool { return p.at == (r.begin+30)*1000 })
			r.series[s][i].value = 4
		}, 0, 1, 0, "rare pass different 30: 0 and 4", ""},
		"more than the log": {func(r *fixture) {
			r.series[steady] = append(r.series[steady], point{(r.begin + 210) * 1000, 5}, point{(r.begin + 211) * 1000, 0})
		}, 0, 0, 1, "steady pass extra 210+1", ""},
		"a resource that the log does not have": {func(r *fixture) {
			r.series[seriesOf(pass, "stranger")] = []point{{r.begin * 1000, 1}, {(r.begin + 1) * 1000, 1}}
		}, 0, 0, 2, "stranger pass extra 0+2", ""},
		"a second twice": {func(r *fixture) { r.series[steady] = append(r.series[steady], r.series[steady][8]) }, 0, 0, 1, "steady pass extra 8+1", "-dedup.minScrapeInterval"},
		"not at a whole second": {func(r *fixture) {
			r.series[steady] = append(r.series[steady], point{r.begin*1000 + 500, 5})
		}, 0, 0, 1, "steady pass extra 0+1", "honor_timestamps"},
		"stale": {func(r *fixture) {
			r.series[steady] = append(r.series[steady], point{r.begin*1000 + 1000, math.NaN()})
		}, 0, 0, 0, "", ""},
		"one resource": {func(r *fixture) {
			r.gap.Match = func(resource string) bool { return resource == "steady" }
			r.drop(func(s string, at int64) bool { return at == r.begin+7 })
		}, 1, 0, 0, "steady pass missing 7+1", ""},
		"one resource, which the second process was not asked for": {func(r *fixture) {
			r.gap.Match = func(resource string) bool { return resource == "early" }
		}, 0, 0, 0, "", "idle seconds"},
		"a metric that only the others have": {func(r *fixture) {
			r.drop(func(s string, _ int64) bool { return !strings.Contains(s, block) })
		}, 0, 0, 0, "", pass + " of the instance"},
		"nothing is old enough": {func(r *fixture) { r.options.Delay = time.Hour }, 0, 0, 0, "", "younger than 1h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			tc.change(r)
			report, err := Check(t.Context(), r.gap, r.options)
			if err != nil {
				t.Fatal(err)
			}
			if report.Missing != tc.missing || report.Different != tc.different || report.Extra != tc.extra || report.Clean() != (tc.missing+tc.different+tc.extra == 0) {
				t.Errorf("%d missing, %d different, %d extra, want %d, %d, %d", report.Missing, report.Different, report.Extra, tc.missing, tc.different, tc.extra)
			}
			if found := r.show(report); !strings.Contains(found, tc.finds) {
				t.Errorf("no %q in\n%s", tc.finds, found)
			}
			if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, tc.notes) {
				t.Errorf("no %q in %s", tc.notes, notes)
			}
			if r.maxSamples > 0 && (r.queries < 40 || report.Seconds != 400) {
				t.Errorf("%d queries, %d seconds", r.queries, report.Seconds)
			}
		})
	}
}

// show shows the findings, with seconds from the beginning.
func (r *fixture) show(report Report) string {
	var b strings.Builder
	for _, f := range report.Findings {
		var words []string
		show := func(what string, ranges []Range) {
			for i, x := range ranges {
				if i == 0 {
					words = append(words, what+fmt.Sprintf(" %d+%d", x.From.Unix()-r.begin, x.Seconds))
				} else {
					words = append(words, fmt.Sprintf("%d+%d", x.From.Unix()-r.begin, x.Seconds))
				}
			}
		}
		show("missing", f.Missing)
		show("extra", f.Extra)
		for _, x := range f.Values {
			words = append(words, fmt.Sprintf("different %d: %v and %v", x.At.Unix()-r.begin, x.Log, x.Database))
		}
		fmt.Fprintf(&b, "%s %s %s\n", f.Resource, strings.TrimPrefix(f.Metric, "windowstat_persecond_"), strings.Join(words, ", "))
	}
	return b.String()
}

// Series of two instances are not compared.
func TestCheckOfSeveral(t *testing.T) {
	for name, other := range map[string]string{"of the same resource": "steady", "of another one": "other"} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.series[seriesOf(pass, other, "pod", "b")] = []point{{r.begin * 1000, 1}}
			if _, err := Check(t.Context(), r.gap, r.options); !errors.Is(err, ErrSeveral) || !strings.Contains(err.Error(), "pod=b") {
				t.Errorf("%v", err)
			}
		})
	}
}

// What was lost at random is what is found, sample by sample.
func TestCheckAgainstAnOracle(t *testing.T) {
	for seed := range uint64(10) {
		r, random := newFixture(t), rand.New(rand.NewPCG(seed, 0))
		all := newLogSamples(runName)
		first := Gap{Searcher: r.gap.Searcher, From: time.Unix(r.begin, 0), To: r.gap.To}
		if _, err := first.emit(t.Context(), nil, 1<<30, all, func(time.Time) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for range 1 + random.IntN(4) {
			from, n, all := r.begin+random.Int64N(400), 1+random.Int64N(40), random.IntN(2) == 0
			only := []string{`"steady"`, `"rare"`, `"late"`, block}[random.IntN(4)]
			r.drop(func(s string, at int64) bool { return at >= from && at < from+n && (all || strings.Contains(s, only)) })
		}
		// The rule, word by word: missing is what the log has events of, what all resources lack, and what is between.
		has := map[int64]bool{}
		for _, points := range r.series {
			for _, p := range points {
				has[p.at/1000] = true
			}
		}
		want := map[string]int{}
		for _, s := range all.series {
			held := map[int64]bool{}
			for _, p := range r.series[seriesOf(s.metric, s.resource)] {
				held[p.at/1000] = true
			}
			for i, x := range s.samples {
				events := func(step int) bool { // before the next sample that is there
					for k := i; k >= 0 && k < len(s.samples) && !held[s.samples[k].unix]; k += step {
						if all.active[s.resource][s.samples[k].unix] {
							return true
						}
					}
					return false
				}
				if !held[x.unix] && (!has[x.unix] || events(-1) && events(1)) {
					want[s.resource+" "+s.metric]++
				}
			}
		}
		report, err := Check(t.Context(), r.gap, r.options)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			n := int64(0)
			for _, x := range f.Missing {
				n += x.Seconds
			}
			if name := f.Resource + " " + f.Metric; int64(want[name]) != n || len(f.Extra)+len(f.Values) > 0 {
				t.Errorf("seed %d: %s: %d missing, want %d; %+v", seed, name, n, want[name], f)
			} else {
				delete(want, name)
			}
		}
		if len(want) > 0 {
			t.Errorf("seed %d: not found: %v", seed, want)
		}
	}
}

// Small parts find the same; what retention deletes from the log meanwhile is not compared, and said.
func TestCheckOfALogThatIsCut(t *testing.T) {
	for _, cut := range []bool{false, true} {
		r := newFixture(t)
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(r.gap.Searcher.Dir)); err != nil {
			t.Fatal(err)
		}
		r.gap.Searcher.Dir = dir
		r.drop(func(_ string, at int64) bool { return at == r.begin+5 || at == r.begin+425 })
		deleted := 0
		r.asked = func() {
			files, err := filepath.Glob(filepath.Join(dir, "*.log.*"))
			if err != nil {
				t.Error(err)
			}
			files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "lck") || strings.HasSuffix(name, "idx") })
			for _, name := range files[:len(files)-2] {
				if cut && r.queries == 3 && os.Remove(name) == nil {
					deleted++
				}
			}
		}
		c := newComparison(r.gap, r.options)
		c.chunkSize = 20
		r.queries = -1000
		if err := c.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.queries = 0
		report, err := c.run(t.Context())
		if err != nil || report.Missing != 2 || report.Extra+report.Different != 0 || r.queries < 20 {
			t.Errorf("%v: %+v, %d queries", err, report, r.queries)
		}
		if said := strings.Contains(strings.Join(report.Notes, "\n"), "retention deleted a part of the log"); said != cut || cut && (deleted < 2 || report.Seconds > 350) {
			t.Errorf("%v, %d files were deleted", report.Notes, deleted)
		}
	}
}
