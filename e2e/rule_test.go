package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

const (
	ruleTargets = 4 // scraped at different times
	ruleSeconds = 95
	ruleLeast   = 3 // minimum number of values
)

// TestRecordedPeaks has servers that scrape every 15 seconds evaluate the recording rule of the documentation. Each
// recorded value is the busiest second of the fleet in a quarter of a minute, although the newest seconds have not
// arrived.
func TestRecordedPeaks(t *testing.T) {
	t.Parallel()
	p := newPaced(t, time.Now(), []string{"checkout"}, collector.Options{})
	// The values of all quarters of a minute differ.
	p.calls = func(_ int, second int64) count { return count{pass: 1 + int(second*second*31%401)} }
	fleet := func(second int64) float64 { return ruleTargets * float64(p.calls(0, second).pass) }
	read := job{name: "fleet", path: secondsPath, interval: 15 * time.Second}
	for range ruleTargets {
		read.targets = append(read.targets, servePages(t, p.stats))
	}
	rule := documented(t, "scale.md", "offset", "")
	_, after, _ := strings.Cut(rule, "offset ")
	var offset int64
	if _, err := fmt.Sscanf(after, "%ds", &offset); err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(rules, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	var servers []*server
	for _, x := range []program{prometheus3, prometheus2} {
		s := newServer(t, x.name, x.path(t), false)
		s.configure(t, s.config([]job{read})+"rule_files: ["+rules+"]\n")
		s.start(t)
		servers = append(servers, s)
	}
	begin := time.Now().Unix() // as delayed as the servers
	p.second = begin
	p.clock.set(middle(begin))
	sealed := map[int64]time.Time{}
	// recorded returns the values of a server that were recorded after all their seconds had arrived, and the number of
	// the other values.
	recorded := func(s *server) (values map[int64]float64, early int) {
		values = map[int64]float64{}
		scrapes := s.scrapes(t, "fleet")
		for _, x := range s.query(t, "resource:windowstat_persecond_pass:max15s[5m]") {
			for _, v := range x.Values {
				last := v.at/1000 - offset
				at, ok := sealed[last]
				switch {
				case !ok || last-14 < begin:
				case !arrived(scrapes, read.targets, at, time.UnixMilli(v.at)):
					early++
				default:
					values[last] = v.value
				}
			}
		}
		return values, early
	}
	next := time.Now()
	p.live(func() bool {
		sealed[p.second-1] = time.Now()
		if p.second < begin+ruleSeconds || time.Now().Before(next) {
			return true
		}
		next = time.Now().Add(5 * time.Second)
		least := ruleLeast
		for _, s := range servers {
			values, _ := recorded(s)
			least = min(least, len(values))
		}
		return least < ruleLeast && p.second < begin+3*ruleSeconds
	})

	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			values, early := recorded(s)
			t.Logf("%d values are recorded, and %d before all of their seconds had arrived", len(values), early)
			for last, value := range values {
				if want := highest(last, 15, fleet); value != want {
					t.Errorf("the busiest second of the 15 up to %d has %v calls; it should have %v", last-begin, value,
						want)
				}
			}
			if len(values) < ruleLeast {
				t.Errorf("%d values are recorded", len(values))
			}
		})
	}
}

// A scrape is a successful scrape.
type scrape struct{ begin, end time.Time }

// scrapes returns the scrapes of a job in the last five minutes, by target.
func (s *server) scrapes(t *testing.T, job string) map[string][]scrape {
	t.Helper()
	took := map[string]map[int64]float64{}
	for _, x := range s.query(t, fmt.Sprintf(`scrape_duration_seconds{job=%q}[5m]`, job)) {
		of := map[int64]float64{}
		for _, v := range x.Values {
			of[v.at] = v.value
		}
		took[x.Metric["instance"]] = of
	}
	all := map[string][]scrape{}
	for _, x := range s.query(t, fmt.Sprintf(`up{job=%q}[5m]`, job)) {
		instance := x.Metric["instance"]
		for _, v := range x.Values {
			if d, ok := took[instance][v.at]; ok && v.value == 1 {
				begin := time.UnixMilli(v.at)
				all[instance] = append(all[instance], scrape{begin, begin.Add(time.Duration(d * float64(time.Second)))})
			}
		}
	}
	return all
}

// arrived reports whether each target was scraped after one time and before another. A server records the time of a
// scrape some milliseconds too early or too late, and stores the scrape at its end.
func arrived(scrapes map[string][]scrape, targets []string, after, before time.Time) bool {
	const near = 100 * time.Millisecond
	return !slices.ContainsFunc(targets, func(target string) bool {
		return !slices.ContainsFunc(scrapes[target], func(x scrape) bool {
			return x.begin.After(after.Add(near)) && x.end.Before(before.Add(-near))
		})
	})
}
