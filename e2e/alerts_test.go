package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/verify"
)

// TestAlerts asks real servers which alerts fired: one that is over did, to within a quarter of a minute, and one with other labels is not
// asked for.
func TestAlerts(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	until := begin.Add(25 * time.Second)
	rules := filepath.Join(t.TempDir(), "rules.yml")
	text := fmt.Sprintf(`groups:
- name: practice
  interval: 1s
  rules:
  - {alert: Over, expr: 'vector(1) and on() (vector(time()) < %d)', labels: {job: shop, severity: page}}
  - {alert: Other, expr: vector(1), labels: {job: bank}}
  - {alert: Silent, expr: vector(1) > 2, labels: {job: shop}}
`, until.Unix())
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var servers []*server
	for _, p := range []program{prometheus3, prometheus2} {
		s := newServer(t, p.name, p.path(t), false)
		s.configure(t, "rule_files: ["+rules+"]\n")
		s.start(t)
		servers = append(servers, s)
	}
	time.Sleep(time.Until(until.Add(5 * time.Second)))
	for _, s := range servers {
		all, err := verify.Alerts(t.Context(), verify.Options{URL: "http://" + s.addr, Labels: map[string]string{"job": "shop"}}, begin.Add(-time.Minute), time.Now())
		if err != nil || len(all) != 1 {
			t.Errorf("%s: %v, %v", s.name, all, err)
			continue
		}
		a := all[0]
		if a.Name != "Over" || a.Labels != `job="shop", severity="page"` || a.From.Before(begin) || a.To.After(until) || a.To.Before(until.Add(-verify.AlertStep-time.Second)) {
			t.Errorf("%s: %+v; it fired until %v", s.name, a, until)
		}
	}
}
