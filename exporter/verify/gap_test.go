package verify

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
)

// gapNames has names that need escaping, and names of resources that are mostly idle.
var gapNames = []string{"plain", "quo\"te", "back\\slash", "new\nline", "a|b", "\x1b[2J", "ünï", "once", "bursts"}

// service is a service with a log. The test sets its clock.
type service struct {
	*collector.Collector
	*metriclog.Writer
	now time.Time
}

func newService(t *testing.T, at time.Time, o metriclog.Options) *service {
	t.Helper()
	s := &service{now: at}
	o.Logger, o.Location = slog.New(slog.DiscardHandler), time.UTC
	last, err := metriclog.Last(o)
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return s.now }
	if s.Collector, err = collector.New(collector.Options{Now: now, After: last}); err != nil {
		t.Fatal(err)
	}
	if s.Writer, err = metriclog.New(s.Collector, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Writer.Close() })
	return s
}

// runFor runs the service for n seconds. Most resources are idle in some of them, and so is the inbound total.
func (s *service) runFor(t *testing.T, n int) {
	t.Helper()
	for second := range n {
		for i, name := range gapNames {
			isIdle := i > 0 && second%(i+1) != 0 || name == "once" && second > 0 || name == "bursts" && second%72 != 0
			if isIdle {
				continue
			}
			for range i + 1 {
				if name == "plain" && second/100 != 2 { // an inbound call
					_, e, err := s.Enter(t.Context(), name, collector.Inbound())
					if err != nil {
						t.Fatal(err)
					}
					e.Exit(nil)
					continue
				}
				e := s.Resource(name).Enter()
				e.Exit(nil)
			}
			s.Resource(name).Block("")
		}
		s.now = s.now.Add(time.Second)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
}

// The samples of a gap equal the samples of the per-second endpoint, with the labels of the job.
func TestOpenMetricsEqualsTheEndpoint(t *testing.T) {
	at := time.Date(2026, 1, 2, 23, 59, 30, 500e6, time.UTC)
	dir := t.TempDir()
	s := newService(t, at, metriclog.Options{Dir: dir, App: "shop", MaxFileSize: 20_000, MaxFiles: 100})
	page, err := prom.NewSeconds(s.Collector, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.runFor(t, 590) // several chunks
	metrics := seconds.Names(table.Namespace, true)
	rec := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/metrics/seconds?window=600s&metric="+strings.Join(metrics, "&metric="), nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	page.ServeHTTP(rec, r)
	want := strings.ReplaceAll(rec.Body.String(), `{resource="`, `{instance="i",job="j",resource="`)
	unlabeled := regexp.MustCompile(`(?m)^(windowstat_persecond_(?:inbound_\w+|run)) `)
	want = unlabeled.ReplaceAllString(want, `$1{instance="i",job="j"} `)

	var b strings.Builder
	gap := Gap{Searcher: metriclog.Searcher{Dir: dir}, From: at, To: at.Add(time.Hour)}
	err = openMetrics(t, gap, &b, map[string]string{"job": "j", "instance": "i"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sorted(b.String()), sorted(want); !slices.Equal(got, want) || len(got) < 590*5*len(gapNames) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("got %swant %s", got[i], want[i])
				break
			}
		}
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	// The lines of a family are adjacent, and so are the lines of a series.
	if n := strings.Count(b.String(), "# TYPE "); n != 13 {
		t.Errorf("%d families", n)
	}
	seen, last := map[string]bool{}, ""
	for line := range strings.Lines(b.String()) {
		series := line[:strings.LastIndex(line, "} ")+1]
		if series != last && seen[series] && series != "" {
			t.Errorf("%s is in two places", series)
			break
		}
		seen[series], last = true, series
	}
	if !strings.HasSuffix(b.String(), "\n# EOF\n") {
		t.Error("the end marker is missing")
	}
	// A part of the range and of the resources.
	b.Reset()
	gap.From, gap.To = at.Add(10*time.Second), at.Add(12*time.Second)
	gap.Match = func(resource string) bool { return resource == "once" }
	gap.Namespace = "x"
	if err = openMetrics(t, gap, &b, map[string]string{"job": "j", "instance": "i"}); err != nil {
		t.Fatal(err)
	}
	n := strings.Count(b.String(), `x_persecond_pass{instance="i",job="j",resource="once"} 0.0 `)
	if n != 3 || strings.Contains(b.String(), "plain") {
		t.Errorf("three idle seconds of one resource:\n%s", b.String())
	}
}

func openMetrics(t *testing.T, gap Gap, w io.Writer, labels map[string]string) error {
	t.Helper()
	_, err := Write(t.Context(), gap, Target{OpenMetrics: w, Push: push.Options{Labels: labels}})
	return err
}

func sorted(page string) []string { return slices.Sorted(strings.Lines(page)) }

// The log of one instance has no rows of two processes in one second.
func TestSeveral(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := t.TempDir()
	for _, app := range []string{"shop", "till"} {
		newService(t, at, metriclog.Options{Dir: dir, App: app}).runFor(t, 3)
	}
	labels := map[string]string{"job": "j", "instance": "i"}
	gap := Gap{Searcher: metriclog.Searcher{Dir: dir}, From: at, To: at.Add(time.Hour)}
	err := openMetrics(t, gap, io.Discard, labels)
	const logs = "shop and till at 2026-01-02T03:04:05Z"
	if !errors.Is(err, ErrSeveralProcesses) || !strings.Contains(fmt.Sprint(err), logs) {
		t.Errorf("%v", err)
	}
	gap.Searcher.App = "till"
	if err := openMetrics(t, gap, io.Discard, labels); err != nil {
		t.Error(err)
	}
	gap.PIDs = []int{7}
	if err := openMetrics(t, gap, io.Discard, labels); err != nil {
		t.Error(err)
	}
	if err := openMetrics(t, gap, io.Discard, nil); err == nil {
		t.Error("no error without labels")
	}
}
