package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/demo"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// documentedChange is a row of a table in docs/incidents.md.
type documentedChange struct {
	resource, number      string
	earliest, latest      int // seconds after the beginning of the incident
	before, least, atMost float64
}

// documentedChanges returns the tables of docs/incidents.md by incident.
func documentedChanges(t *testing.T) map[string][]documentedChange {
	t.Helper()
	page, err := os.ReadFile("../../docs/incidents.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(
		"^\\| (?:([0-9]+) to )?([0-9]+) s \\| `([^`]+)` \\| (\\w+) \\| ([0-9]+) \\| (more than |less than |" +
			")([0-9]+) \\|$",
	)
	all, name := map[string][]documentedChange{}, ""
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "### "); ok {
			name = title
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
		x := documentedChange{
			resource: m[3],
			number:   m[4],
			latest:   int(number(m[2])),
			before:   number(m[5]),
			least:    number(m[7]),
			atMost:   number(m[7]),
		}
		if x.earliest = x.latest; m[1] != "" {
			x.earliest = int(number(m[1]))
		}
		switch m[6] {
		case "more than ":
			x.atMost = 1e9
		case "less than ":
			x.least = 0
		}
		all[name] = append(all[name], x)
	}
	return all
}

// direct calls a handler without a network. A network connection would stop the clock of synctest.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w, served := httptest.NewRecorder(), httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.RequestURI(),
		r.Body)
	served.Header = r.Header
	d.ServeHTTP(w, served)
	return w.Result(), nil
}

// rehearse logs the service of the demo with an incident, and returns the second of its beginning. The caller must run
// it within synctest, where each second has the due requests on any machine.
func rehearse(t *testing.T, dir, name string, after, length time.Duration) (from time.Time) {
	t.Helper()
	x, err := exporter.New(
		exporter.Options{App: "demo", Log: metriclog.Options{Dir: dir}, Logger: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		t.Fatal(err)
	}
	from = time.Now().Add(after).Truncate(time.Second)
	shop := demo.NewShop(x.Collector, 500, name, from)
	if err := x.Collector.SetLimits(shop.Limits()); err != nil {
		t.Fatal(err)
	}
	stop := x.Start()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	if unanswered := shop.Load(ctx, "http://shop", direct{shop.Handler()}); unanswered > 0 {
		t.Errorf("%d requests received no response", unanswered)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return from
}

// The incidents of the demo change the numbers that docs/incidents.md names, in the documented seconds and by the
// documented amounts. windowstat onset finds the changes, and windowstat report writes the report.
func TestIncidents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("with the race detector it takes all processors for half a minute")
	}
	for _, name := range []string{"hang", "limit", "retries"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := documentedChanges(t)[name]
			if len(changes) < 3 {
				t.Fatalf("%d documented changes", len(changes))
			}
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				begin := rehearse(t, dir, name, 14*time.Second, 28*time.Second)
				from := begin.Format(time.RFC3339)
				_, out, stderr := execute(t, "onset  --dir="+dir+"  --from="+from+"  --format=json")
				var got struct {
					Onsets []struct {
						Resource string
						Time     time.Time
						Changes  []struct {
							Number        string
							Time          time.Time
							Before, After float64
						}
					}
				}
				if err := json.Unmarshal([]byte(out), &got); err != nil {
					t.Fatal(err, out, stderr)
				}
				seen := map[string]string{}
				for _, o := range got.Onsets {
					for _, c := range o.Changes {
						at := int(c.Time.Sub(begin).Seconds())
						for _, x := range changes {
							if x.resource == o.Resource && x.number == c.Number {
								seen[x.resource+x.number] = fmt.Sprintf("+%d from %g to %g", at, c.Before, c.After)
								if at < x.earliest || at > x.latest || c.After < x.least || c.After > x.atMost ||
									c.Before < x.before/2-3 ||
									c.Before > 2*x.before+3 {
									t.Errorf("%v: %s", x, seen[x.resource+x.number])
								}
							}
						}
					}
				}
				for _, x := range changes {
					if seen[x.resource+x.number] == "" {
						t.Errorf("%v: not in\n%s", x, out)
					}
				}
				if name == "hang" {
					const limit = "db: products concurrency 20"
					_, out, stderr := execute(t, "backtest  --dir="+dir+"  --from="+from+"  --limit="+limit)
					page, _ := os.ReadFile("../../docs/incidents.md")
					documented := regexp.MustCompile(`at least ([0-9]+) calls would`).FindSubmatch(page)
					found := regexp.MustCompile(`db: products +[0-9]+ +0 +([0-9]+) `).FindStringSubmatch(out)
					if documented == nil || found == nil || found[1] != string(documented[1]) {
						t.Errorf("the page has %s:\n%s%s", documented, out, stderr)
					}
				}
				file := filepath.Join(dir, "incident.html")
				var report strings.Builder
				if status := run(t.Context(), []string{
					"windowstat", "report", "--dir", dir, "--from", from, "-o",
					file,
				}, &report, &report); status != 0 {
					t.Errorf("report: %d, %s", status, report.String())
				}
				if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), changes[0].resource) ||
					!strings.Contains(string(b), "<title>Incident of "+begin.Format(time.DateOnly)) ||
					len(b) > 200_000 {
					t.Errorf("report: %d bytes, %v", len(b), err)
				}
			})
		})
	}
}

// The incident of the demo begins in the printed second, and its requests are counted.
func TestDemoBreaks(t *testing.T) {
	t.Parallel()
	// Checks of metrics that are never true before the incident.
	for name, broken := range map[string]func(value func(metric string) float64) bool{
		"hang":  func(value func(string) float64) bool { return value(`in_flight{resource="db: products"}`) > 50 },
		"limit": func(value func(string) float64) bool { return value("limits") == 2 },
		"retries": func(value func(string) float64) bool {
			failed := value(`exception_total{resource="POST /payments"}`)
			return failed > 50 && failed > value(`pass_total{resource="POST /payments"}`)/2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, "demo", anyPort, "--incident", name, "--incident.after=2s")
			from, err := time.Parse(time.RFC3339, p.find(t, `incident +`+name+` from (\S+) on`))
			if err != nil {
				t.Fatal(err)
			}
			page := p.find(t, `metrics +(http\S+)`)
			for deadline := time.Now().Add(maxWait); ; time.Sleep(10 * time.Millisecond) {
				_, metrics := get(t, page)
				if broken(func(metric string) (v float64) {
					if _, after, found := strings.Cut(metrics, "\nwindowstat_"+metric+" "); found {
						_, _ = fmt.Sscan(after, &v)
					}
					return v
				}) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("it does not break:\n%s", metrics)
				}
			}
			if early := time.Until(from); early > 0 {
				t.Errorf("it breaks %v before %v", early, from)
			}
			if status := p.end(t); status != 0 || strings.Count(p.output(), "  equal\n") < 8 {
				t.Errorf("status %d:\n%s", status, p.output())
			}
		})
	}
}
