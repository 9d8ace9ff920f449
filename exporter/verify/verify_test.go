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
		finding, note             string
	}{
		"a complete database, across a restart": {func(*fixture) {}, 0, 0, 0, "", "the log begins at"},
		"Prometheus 2":                          {func(r *fixture) { r.closed = true }, 0, 0, 0, "", ""},
		"a server that limits samples": {
			func(r *fixture) { r.maxSamples, r.closed = 100, true }, 0, 0, 0, "", "",
		},
		"ten seconds of all": {func(r *fixture) {
			r.drop(func(_ string, at int64) bool { return at >= r.begin+100 && at < r.begin+110 })
		}, 10, 0, 0, "rare pass missing 100+10", ""},
		"one sample": {func(r *fixture) {
			r.drop(func(s string, at int64) bool { return s == steady && at == r.begin+7 })
		}, 1, 0, 0, "steady pass missing 7+1", ""},
		"two gaps": {func(r *fixture) {
			r.drop(func(s string, at int64) bool { return s == steady && (at == r.begin+7 || at == r.begin+9) })
		}, 2, 0, 0, "steady pass missing 7+1, 9+1", ""},
		"one gap across the restart": {func(r *fixture) {
			r.drop(func(s string, at int64) bool { return s == steady && at >= r.begin+195 && at < r.begin+235 })
		}, 10, 0, 0, "steady pass missing 195+10", ""},
		"a resource": {func(r *fixture) {
			r.drop(func(s string, _ int64) bool { return strings.Contains(s, `"rare"`) })
		}, 0, 0, 0, "", "does not have 1 resources"},
		"a resource, with Options.All": {func(r *fixture) {
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
		"a metric that is not scraped, with Options.All": {func(r *fixture) {
			r.options.All = true
			r.drop(func(s string, _ int64) bool { return strings.Contains(s, block) })
		}, 400, 0, 0, "steady block missing 0+400", ""},
		"other labels": {func(r *fixture) { clear(r.series) }, 400, 0, 0, "", "no series with these labels"},
		"a value": {
			func(r *fixture) { r.series[steady][3].value++ }, 0, 1, 0, "steady pass different 3: 1 and 2", "",
		},
		"a value of an idle second": {func(r *fixture) {
			s := seriesOf(pass, "rare")
			i := slices.IndexFunc(r.series[s], func(p point) bool { return p.at == (r.begin+30)*1000 })
			r.series[s][i].value = 4
		}, 0, 1, 0, "rare pass different 30: 0 and 4", ""},
		"a second that the log does not have": {func(r *fixture) {
			more := []point{{(r.begin + 210) * 1000, 5}, {(r.begin + 211) * 1000, 0}}
			r.series[steady] = append(r.series[steady], more...)
		}, 0, 0, 1, "steady pass extra 210+1", ""},
		"a resource that the log does not have": {func(r *fixture) {
			r.series[seriesOf(pass, "stranger")] = []point{{r.begin * 1000, 1}, {(r.begin + 1) * 1000, 1}}
		}, 0, 0, 2, "stranger pass extra 0+2", ""},
		"two samples of a second": {
			func(r *fixture) { r.series[steady] = append(r.series[steady], r.series[steady][8]) }, 0, 0, 1,
			"steady pass extra 8+1", "-dedup.minScrapeInterval",
		},
		"a sample between two seconds": {func(r *fixture) {
			r.series[steady] = append(r.series[steady], point{r.begin*1000 + 500, 5})
		}, 0, 0, 1, "steady pass extra 0+1", "honor_timestamps"},
		"a stale marker": {func(r *fixture) {
			r.series[steady] = append(r.series[steady], point{r.begin*1000 + 1000, math.NaN()})
		}, 0, 0, 0, "", ""},
		"one resource": {func(r *fixture) {
			r.gap.Match = func(resource string) bool { return resource == "steady" }
			r.drop(func(s string, at int64) bool { return at == r.begin+7 })
		}, 1, 0, 0, "steady pass missing 7+1", ""},
		"one resource, which the second process did not have": {func(r *fixture) {
			r.gap.Match = func(resource string) bool { return resource == "early" }
		}, 0, 0, 0, "", "idle seconds"},
		"a metric that the database does not have": {func(r *fixture) {
			r.drop(func(s string, _ int64) bool { return !strings.Contains(s, block) })
		}, 0, 0, 0, "", pass + " of the instance"},
		"all seconds are younger than the delay": {
			func(r *fixture) { r.options.Delay = time.Hour }, 0, 0, 0, "", "younger than 1h",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			tc.change(r)
			report, err := Check(t.Context(), r.gap, r.options)
			if err != nil {
				t.Fatal(err)
			}
			got := [3]int64{report.Missing, report.Different, report.Extra}
			want := [3]int64{tc.missing, tc.different, tc.extra}
			if got != want || report.Clean() != (want == [3]int64{}) {
				t.Errorf("missing, different and extra: %v, want %v; clean: %v", got, want, report.Clean())
			}
			if found := r.show(report); !strings.Contains(found, tc.finding) {
				t.Errorf("no %q in\n%s", tc.finding, found)
			}
			if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, tc.note) {
				t.Errorf("no %q in %s", tc.note, notes)
			}
			if r.maxSamples > 0 && (r.queries < 40 || report.Seconds != 400) {
				t.Errorf("%d queries, %d seconds", r.queries, report.Seconds)
			}
		})
	}
}

// show returns the findings as text, with seconds counted from the beginning.
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
		metric := strings.TrimPrefix(f.Metric, "windowstat_persecond_")
		fmt.Fprintf(&b, "%s %s %s\n", f.Resource, metric, strings.Join(words, ", "))
	}
	return b.String()
}

// If the labels select two instances, the error names the label that differs.
func TestCheckOfSeveralInstances(t *testing.T) {
	for name, other := range map[string]string{"of the same resource": "steady", "of another one": "other"} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.series[seriesOf(pass, other, "pod", "b")] = []point{{r.begin * 1000, 1}}
			_, err := Check(t.Context(), r.gap, r.options)
			if !errors.Is(err, ErrSeveralInstances) || !strings.Contains(err.Error(), "pod=b") {
				t.Errorf("%v", err)
			}
		})
	}
}

// Check finds exactly the samples that were removed at random.
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
			r.drop(func(s string, at int64) bool {
				return at >= from && at < from+n && (all || strings.Contains(s, only))
			})
		}
		// A sample is missing if the database lacks the second of all resources, or if there is a second with events at
		// or before the sample, and one at or after it, and the database has no sample between these two seconds.
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

// Small chunks give the same result. If retention deletes a part of the log during the comparison, a note states the
// seconds that are not compared.
func TestCheckDuringRetention(t *testing.T) {
	for _, cut := range []bool{false, true} {
		r := newFixture(t)
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(r.gap.Searcher.Dir)); err != nil {
			t.Fatal(err)
		}
		r.gap.Searcher.Dir = dir
		r.drop(func(_ string, at int64) bool { return at == r.begin+5 || at == r.begin+425 })
		deleted := 0
		r.onQuery = func() {
			files, err := filepath.Glob(filepath.Join(dir, "*.log.*"))
			if err != nil {
				t.Error(err)
			}
			files = slices.DeleteFunc(files, func(name string) bool {
				return strings.HasSuffix(name, "lck") || strings.HasSuffix(name, "idx")
			})
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
		noted := strings.Contains(strings.Join(report.Notes, "\n"), "retention deleted a part of the log")
		if noted != cut || cut && (deleted < 2 || report.Seconds > 350) {
			t.Errorf("%v, %d files were deleted", report.Notes, deleted)
		}
	}
}
