package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/verify"
)

// TestAlerts queries the alerts of real servers. An alert that is over is found, with times that are right within a
// quarter of a minute. An alert with other labels is not found.
func TestAlerts(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	var over atomic.Bool
	l := listen(t, "127.0.0.1:0")
	serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := 0
		if over.Load() {
			n = 1
		}
		fmt.Fprintf(w, "over %d\n", n)
	}), l)
	rules := filepath.Join(t.TempDir(), "rules.yml")
	const text = `groups:
- name: practice
  interval: 1s
  rules:
  - {alert: Over, expr: 'vector(1) unless on() max(max_over_time(over[10m])) == 1', labels: {job: shop, severity: page}}
  - {alert: Other, expr: vector(1), labels: {job: bank}}
  - {alert: Silent, expr: vector(1) > 2, labels: {job: shop}}
`
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var servers []*server
	for _, p := range []program{prometheus3, prometheus2} {
		s := newServer(t, p.name, p.path(t), false)
		s.configure(t,
			s.config([]job{{
				name: "over", path: metricsPath, targets: []string{l.Addr().String()},
				interval: time.Second, timeout: time.Second,
			}})+
				"rule_files: ["+rules+"]\n")
		s.start(t)
		servers = append(servers, s)
	}
	// evaluated returns the times of the first and the last evaluation that found an alert.
	evaluated := func(s *server, name string) (first, last time.Time) {
		t.Helper()
		for _, x := range s.query(t, fmt.Sprintf(`ALERTS{alertname=%q,alertstate="firing"}[4m]`, name)) {
			first, last = time.UnixMilli(x.Values[0].at), time.UnixMilli(x.Values[len(x.Values)-1].at)
		}
		return first, last
	}
	await := func(s *server, what string, condition func() bool) {
		t.Helper()
		for deadline := time.Now().Add(catchUp); !condition(); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the alert %s", s.name, what)
			}
		}
	}
	const long = 25 * time.Second
	for _, s := range servers {
		await(s, "does not fire", func() bool {
			first, last := evaluated(s, "Over")
			return last.Sub(first) >= long
		})
	}
	over.Store(true)
	for _, s := range servers {
		var next time.Time // an evaluation that did not find the alert
		await(s, "does not end", func() bool {
			_, next = evaluated(s, "Other")
			_, last := evaluated(s, "Over")
			return next.After(last)
		})
		first, last := evaluated(s, "Over")
		all, err := verify.Alerts(t.Context(),
			verify.Options{URL: "http://" + s.addr, Labels: map[string]string{"job": "shop"}},
			begin.Add(-time.Minute), time.Now())
		if err != nil || len(all) != 1 {
			t.Errorf("%s: %v, %v", s.name, all, err)
			continue
		}
		a := all[0]
		if a.Name != "Over" || a.Labels != `job="shop", severity="page"` || a.From.Before(first) ||
			a.From.After(first.Add(verify.AlertStep)) ||
			a.To.Before(last.Add(-verify.AlertStep)) || a.To.After(next) {
			t.Errorf("%s: %+v; it fired from %v to %v", s.name, a, first, last)
		}
	}
}
