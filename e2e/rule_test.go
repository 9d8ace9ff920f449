package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

const (
	ruleTargets = 4 // which are scraped at different moments
	ruleSeconds = 95
)

// TestRecordedPeaks has servers that scrape every 15 seconds evaluate the recording rule of the documentation. Each value that
// it records is the busiest second of the fleet in a quarter of a minute, though the newest seconds have not arrived.
func TestRecordedPeaks(t *testing.T) {
	t.Parallel()
	p := newPaced(t, time.Now(), []string{"checkout"}, collector.Options{})
	begin := p.second
	p.calls = func(_ int, second int64) count { return count{pass: 1 + int(second*second*31%401)} } // no two quarters are alike
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
	p.live(func() bool { return p.second < begin+ruleSeconds })

	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			n := 0
			for _, x := range s.query(t, "resource:windowstat_persecond_pass:max15s[5m]") {
				for _, v := range x.Values {
					last := v.at/1000 - offset
					if last-14 < begin {
						continue
					}
					n++
					if want := highest(last, 15, fleet); v.value != want {
						t.Errorf("the busiest second of the 15 up to %d has %v calls; it should have %v", last-begin, v.value, want)
					}
				}
			}
			if n < 3 {
				t.Errorf("%d values are recorded", n)
			}
		})
	}
}
