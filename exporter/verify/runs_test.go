package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/runs"
)

// rename changes the instance of the points that match. The argument of match is in seconds since the beginning.
func (r *fixture) rename(instance string, match func(at int64) bool) {
	moved := map[string][]point{}
	for labels, points := range r.series {
		other := strings.Replace(labels, `"instance":"i"`, fmt.Sprintf(`"instance":%q`, instance), 1)
		for _, p := range points {
			to := labels
			if match(p.at/1000 - r.begin) {
				to = other
			}
			moved[to] = append(moved[to], p)
		}
	}
	r.series = moved
}

// lose removes the points of all instances from second from to before second to, counted from the beginning.
func (r *fixture) lose(from, to int64) {
	r.drop(func(_ string, at int64) bool { return at >= r.begin+from && at < r.begin+to })
}

// editRuns copies the log and changes its file of runs. It removes the file if edit returns nil.
func (r *fixture) editRuns(edit func([]runs.Run) []byte) {
	r.t.Helper()
	dir := r.t.TempDir()
	err := os.CopyFS(dir, os.DirFS(r.gap.Searcher.Dir))
	r.gap.Searcher.Dir = dir
	path := filepath.Join(dir, "shop-runs.json")
	list, e := runs.Read(path)
	if err != nil || e != nil || len(list) != 2 {
		r.t.Fatal(err, e, list)
	}
	if b := edit(list); b == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// rowWithRun matches a row of the total that ends with the run.
var rowWithRun = regexp.MustCompile(`(?m)(__total_inbound_traffic__(\|\d+){8})\|\d+$`)

// stripRuns removes the run from the rows of the log, as in logs of older versions.
func (r *fixture) stripRuns() {
	r.t.Helper()
	dir := r.gap.Searcher.Dir
	names, err := filepath.Glob(filepath.Join(dir, "shop-metrics.log.*"))
	if err != nil || len(names) == 0 {
		r.t.Fatal(names, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".idx") {
			_ = os.Remove(name) // its offsets would be wrong
			continue
		}
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, rowWithRun.ReplaceAll(b, []byte("$1")), 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func encoded(list []runs.Run) []byte {
	b, _ := json.Marshal(list)
	return b
}

// Two processes wrote the log, from second 0 to 200 and from 230 to 430. Each case changes the database, or the log,
// and states the seconds that are written, the number of seconds that other labels have, and the number of seconds that
// are not healed for other reasons.
func TestOwnersOfSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		change               func(r *fixture)
		written              string // ranges of seconds
		elsewhere, notHealed int64  // number of seconds
		text                 string // in the report
	}{
		"a complete database": {func(*fixture) {}, "", 0, 0, ""},
		"a gap":               {func(r *fixture) { r.lose(40, 45) }, "40-44", 0, 0, ""},
		"a restart as another instance": {func(r *fixture) {
			r.rename("old", func(at int64) bool { return at < 215 })
			r.lose(40, 45)
			r.lose(195, 235)
		}, "230-234", 190, 10, "instance=old has the seconds before"},
		"a label that was changed": {func(r *fixture) {
			r.rename("old", func(at int64) bool { return at < 100 })
			r.lose(40, 45)
			r.lose(95, 105)
			r.lose(150, 155)
		}, "150-154", 90, 15, "instance=old has the seconds before"},
		"a label that changes later": {func(r *fixture) {
			r.rename("new", func(at int64) bool { return at >= 100 })
			r.lose(40, 45)
			r.lose(95, 105)
		}, "40-44, 95-104", 295, 0, "instance=new has these seconds"},
		"a label that changes and changes back": {func(r *fixture) {
			r.rename("b", func(at int64) bool { return at >= 100 && at < 150 })
			r.lose(120, 125)
			r.lose(160, 165)
		}, "160-164", 45, 5, "instance=b has the seconds before"},
		"the end of a run that a resumed cursor got": {func(r *fixture) {
			r.rename("new", func(at int64) bool { return at >= 190 })
			r.lose(100, 105)
		}, "100-104", 210, 0, "instance=new has these seconds"},
		"a process without a scraper": {
			func(r *fixture) { r.lose(0, 150) }, "", 0, 150, "a later process may have forwarded",
		},
		"a truncated file of runs": {func(r *fixture) {
			r.editRuns(func(list []runs.Run) []byte { return encoded(list)[:40] })
			r.lose(40, 45)
		}, "40-44", 0, 0, ""},
		"a log without a file of runs": {func(r *fixture) {
			r.editRuns(func([]runs.Run) []byte { return nil })
			r.lose(40, 45)
		}, "40-44", 0, 0, ""},
		"a file of runs without the last process": {func(r *fixture) {
			r.editRuns(func(list []runs.Run) []byte { list[0].Last = 0; return encoded(list[:1]) })
			r.rename("new", func(at int64) bool { return at >= 215 })
			r.lose(40, 45)
			r.lose(300, 305)
		}, "40-44", 195, 5, "instance=new has the seconds before"},
		"a file of runs that is older than both processes": {func(r *fixture) {
			r.editRuns(func(list []runs.Run) []byte {
				return encoded([]runs.Run{{ID: 99, First: list[0].First - 1000, History: 60}})
			})
			r.rename("new", func(at int64) bool { return at >= 215 })
			r.lose(40, 45)
			r.lose(300, 305)
		}, "40-44", 195, 5, "instance=new has the seconds before"},
		"rows without a run, and no file": {func(r *fixture) {
			r.editRuns(func([]runs.Run) []byte { return nil })
			r.stripRuns()
			r.lose(40, 45)
		}, "", 0, 5, "is unknown"},
		"rows without a run, and a file with both runs": {func(r *fixture) {
			r.editRuns(func(list []runs.Run) []byte {
				list[1].Last = list[1].First + 500
				return encoded(list)
			})
			r.stripRuns()
			r.lose(40, 45)
		}, "40-44", 0, 0, ""},
		"rows without a run, and a file with the first run": {func(r *fixture) {
			r.editRuns(func(list []runs.Run) []byte { list[0].Last = 0; return encoded(list[:1]) })
			r.stripRuns()
			r.lose(40, 45)
		}, "", 0, 5, "is unknown"},
		"rows without a run, named by the user": {func(r *fixture) {
			r.editRuns(func([]runs.Run) []byte { return nil })
			r.stripRuns()
			r.options.Runs = []int64{0}
			r.lose(40, 45)
		}, "40-44", 0, 0, ""},
		"a log that was copied to another host": {func(r *fixture) {
			r.options.Labels["instance"] = "copy"
			r.series[seriesOf(pass, "steady", "instance", "copy")] = []point{{(r.begin + 2000) * 1000, 1}}
			r.lose(40, 45)
		}, "", 395, 5, "instance=i has the seconds before"},
		"a run in the future": {func(r *fixture) {
			r.editRuns(func(list []runs.Run) []byte {
				return encoded(append(list, runs.Run{ID: 77, First: time.Now().Unix() + 1000}))
			})
			r.lose(40, 45)
			r.lose(425, 430)
		}, "40-44, 425-429", 0, 0, ""},
		"runs that overlap": {func(r *fixture) {
			r.editRuns(func(list []runs.Run) []byte {
				list[0].Last = list[1].First + 50
				return encoded(list)
			})
			r.rename("old", func(at int64) bool { return at < 215 })
			r.lose(195, 235)
		}, "230-234", 195, 5, "instance=old has the seconds before"},
		"labels that two processes share": {func(r *fixture) {
			for labels, points := range r.series {
				for i := range points {
					if at := points[i].at/1000 - r.begin; at >= 60 && at < 80 {
						if points[i].value += 3; strings.Contains(labels, runName) {
							points[i].value = 99
						}
					}
				}
			}
			r.lose(40, 45)
			r.drop(func(labels string, at int64) bool {
				return strings.Contains(labels, "steady") && at >= r.begin+70 && at < r.begin+80
			})
		}, "40-44", 0, 20, "these labels have another run"},
		"a database that was restored from a snapshot": {
			func(r *fixture) { r.lose(150, 1000) }, "150-199", 0, 200, "no labels have run",
		},
		"a log that was restored from a snapshot": {func(r *fixture) {
			r.gap.To = time.Unix(r.begin+300, 0)
			r.editRuns(func(list []runs.Run) []byte {
				list[0].Last = list[0].First + 150
				return encoded(list[:1])
			})
		}, "", 0, 0, ""},
		"samples at shifted times": {func(r *fixture) {
			for _, points := range r.series {
				for i := range points {
					points[i].at += 500
				}
			}
		}, "0-199, 230-429", 0, 0, "at whole seconds"},
		"labels that an agent adds": {func(r *fixture) {
			moved := map[string][]point{}
			for labels, points := range r.series {
				moved[strings.Replace(labels, "{", `{"cluster":"c",`, 1)] = points
			}
			r.series = moved
			r.lose(40, 45)
		}, "40-44", 0, 0, ""},
		"sampled series": {
			func(r *fixture) { r.series[seriesOf("my_gauge", "steady")] = []point{{(r.begin + 7) * 1000, 9}} }, "", 0,
			0, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			r.options.Labels = map[string]string{"job": "j", "instance": "i"}
			tc.change(r)
			c := newComparison(r.gap, r.options)
			sink := newLogSamples(runName)
			c.sink = sink
			if err := c.prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			report, err := c.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			written := map[int64]bool{}
			for _, s := range sink.series {
				for _, x := range s.samples {
					written[x.unix] = true
				}
			}
			if got := ranges(written, r.begin); got != tc.written {
				t.Errorf("seconds %s are written, want %s", got, tc.written)
			}
			if n := total(report.Elsewhere); n != tc.elsewhere {
				t.Errorf("other labels have %d seconds, want %d: %+v", n, tc.elsewhere, report.Elsewhere)
			}
			if n := total(report.NotHealed); n != tc.notHealed {
				t.Errorf("%d seconds are not healed, want %d: %+v", n, tc.notHealed, report.NotHealed)
			}
			if text := fmt.Sprint(report.Elsewhere, report.NotHealed, report.Notes); !strings.Contains(text, tc.text) {
				t.Errorf("no %q in %s", tc.text, text)
			}
		})
	}
}

// ranges lists ranges of seconds, counted from the beginning.
func ranges(of map[int64]bool, begin int64) string {
	var all []string
	list := []int64{}
	for at := range of {
		list = append(list, at-begin)
	}
	slices.Sort(list)
	for i := 0; i < len(list); {
		first := i
		for i++; i < len(list) && list[i] == list[i-1]+1; i++ {
		}
		all = append(all, fmt.Sprintf("%d-%d", list[first], list[i-1]))
	}
	return strings.Join(all, ", ")
}

// total returns the number of seconds in ranges.
func total(list []NotHealed) (n int64) {
	for _, x := range list {
		n += x.Seconds
	}
	return n
}

// After a restart as another instance, the window of a Checker has seconds of the earlier instance. The Checker neither
// counts them as missing nor logs an error. Two Checkers of one URL have separate metrics and messages.
func TestCheckerAcrossARestart(t *testing.T) {
	r := newFixture(t)
	r.rename("old", func(at int64) bool { return at < 215 })
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	o := r.options
	o.Delay, o.Window, o.Logger = time.Minute, time.Hour, slog.New(slog.NewTextHandler(&logged, nil))
	later, err := New(c, r.gap, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Labels = map[string]string{"job": "j", "instance": "old"}
	earlier, err := New(c, r.gap, o)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want map[string]string) {
		t.Helper()
		got := map[string]string{}
		for _, m := range c.Metrics() {
			m.Each(func(v float64, labels ...string) {
				if m.Name == "database_missing_seconds" {
					got[labels[1]] = fmt.Sprint(v)
				}
			})
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	later.check(t.Context())
	earlier.check(t.Context())
	expect(map[string]string{`{instance="i",job="j"}`: "0", `{instance="old",job="j"}`: "0"})
	if logged.Len() > 0 {
		t.Errorf("an error is logged: %s", &logged)
	}
	r.lose(40, 45) // of the earlier instance
	later.check(t.Context())
	earlier.check(t.Context())
	expect(map[string]string{`{instance="i",job="j"}`: "0", `{instance="old",job="j"}`: "5"})
	if text := logged.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, `instance=\"old\"`) {
		t.Errorf("%s", text)
	}
}
