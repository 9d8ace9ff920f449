package e2e

import (
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

// A pusher sends seconds to a server.
type pusher interface {
	Start() (stop func() error)
}

// A pushed is a job whose seconds are pushed to a server.
type pushed struct {
	*server
	job
	pusher
	stats *collector.Collector
	way   string
}

// pushTo returns a pusher to each server by remote write, and also by text to each VictoriaMetrics. It sends nothing
// yet.
func pushTo(t *testing.T, c *collector.Collector, servers ...*server) (all []pushed) {
	t.Helper()
	labels := func(job string) map[string]string { return map[string]string{"job": job, "instance": "e2e"} }
	for _, s := range servers {
		w, err := push.New(c, push.Options{URL: "http://" + s.addr + "/api/v1/write", Labels: labels("remote-write")})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pushed{s, job{name: "remote-write"}, w, c, "remote_write"})
		if !s.isVictoria {
			continue
		}
		url := "http://" + s.addr + "/api/v1/import/prometheus"
		p, err := push.New(c, push.Options{Format: push.VictoriaMetrics, URL: url, Labels: labels("text")})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pushed{s, job{name: "text"}, p, c, "vm"})
	}
	return all
}

// numbers returns the metrics of the pusher, by name.
func (p pushed) numbers() map[string]float64 {
	found := map[string]float64{}
	for _, m := range p.stats.Metrics() {
		m.Each(func(value float64, labels ...string) {
			if len(labels) == 2 && labels[0] == p.way && strings.Contains(labels[1], p.addr) {
				found[m.Name] = value
			}
		})
	}
	return found
}
