package verify

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/push"
)

// A log may outlive the address of its process. The seconds of the earlier instance are not written under the later
// labels.
func TestHealOfTheOtherInstance(t *testing.T) {
	r := newFixture(t)
	// The first process was scraped as another instance. The database lacks some seconds of both.
	r.rename("old", func(at int64) bool { return at < 215 })
	r.lose(40, 45)
	r.lose(195, 235)
	sink := newLogSamples("")
	c := newComparison(r.gap, r.options)
	c.sink = sink
	if err := c.prepare(t.Context()); err != nil {
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
				t.Errorf("%s: second %d is written", s.metric, x.unix-r.begin)
			}
		}
	}
	if n == 0 || report.Missing != 5 ||
		!strings.Contains(fmt.Sprint(report.Elsewhere), "instance=old has these seconds") ||
		!strings.Contains(fmt.Sprint(report.NotHealed), "instance=old has the seconds before") {
		t.Errorf("%d samples, %d missing; %+v, %+v", n, report.Missing, report.Elsewhere, report.NotHealed)
	}
}

// Two heals at a time would write samples twice, and some servers keep duplicates.
func TestOneHealAtATime(t *testing.T) {
	r := newFixture(t)
	file, err := filelock.Lock(filepath.Join(r.gap.Searcher.Dir, "shop-heal.lck"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	_, err = Heal(t.Context(), r.gap, r.options, Target{Push: push.Options{URL: "http://127.0.0.1:1"}})
	if err == nil || !strings.Contains(err.Error(), "another heal of this log is running") {
		t.Errorf("%v", err)
	}
}

// Heal writes the missing samples and no others. It does not write a run that the database has.
func TestHealWritesWhatIsMissing(t *testing.T) {
	r := newFixture(t)
	lost := map[string]bool{}
	r.drop(func(s string, at int64) bool {
		isLogged := slices.ContainsFunc(append(seconds.Names("windowstat", true), runName), func(name string) bool {
			return strings.Contains(s, `"`+name+`"`)
		})
		lose := at >= r.begin+40 && at < r.begin+45 && isLogged || at == r.begin+60 && s == seriesOf(pass, "steady")
		if lose {
			lost[fmt.Sprint(s, at)] = true
		}
		return lose
	})
	c := newComparison(r.gap, r.options)
	sink := newLogSamples("")
	c.sink = seconds.Sink(sink)
	err := c.prepare(t.Context())
	if err == nil {
		_, err = c.run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sink.series {
		for _, x := range s.samples {
			k := fmt.Sprint(seriesOf(s.metric, s.resource), x.unix)
			if !lost[k] {
				t.Errorf("%s was not lost", k)
			}
			delete(lost, k)
		}
	}
	if len(lost) > 0 {
		t.Errorf("not written: %v", lost)
	}
}

// Heal writes nothing if the database has no series with the labels, has two instances with them, or returns a warning.
func TestHealWritesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(r *fixture)
		err    string
	}{
		"nothing is missing": {func(*fixture) {}, ""},
		"no series":          {func(r *fixture) { clear(r.series) }, "no series with these labels"},
		"two instances":      {func(r *fixture) { r.series[seriesOf(pass, "steady", "pod", "b")] = nil }, "pod=b"},
		"a warning": {func(r *fixture) {
			r.warnings = []string{"a store is away"}
			r.drop(func(_ string, at int64) bool { return at == r.begin+9 })
		}, "a store is away"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			tc.change(r)
			requests := 0
			receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
			defer receiver.Close()
			h, err := Heal(t.Context(), r.gap, r.options, Target{Push: push.Options{URL: receiver.URL}})
			if (err == nil) != (tc.err == "") || !strings.Contains(fmt.Sprint(err), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if requests > 0 || h.WriteResult != (push.WriteResult{}) {
				t.Errorf("%+v, %d requests", h.WriteResult, requests)
			}
		})
	}
	// All invalid options are reported together.
	_, err := Heal(t.Context(), Gap{}, Options{}, Target{Push: push.Options{Labels: map[string]string{"a": "b"}}})
	if err == nil || strings.Count(err.Error(), "\n") < 3 {
		t.Errorf("%v", err)
	}
}
