package e2e

import (
	"context"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/remote"
	"github.com/windowstat/windowstat/exporter/vm"
)

// A pusher sends seconds to a server.
type pusher interface {
	exporter.Source
	Run(ctx context.Context) error
}

// A pushed is a job that is pushed to a server.
type pushed struct {
	*server
	job
	pusher
}

// pushTo makes a pusher to each server by remote write, and by text to each VictoriaMetrics, too. Nothing is sent yet.
func pushTo(t *testing.T, c *collector.Collector, servers ...*server) (all []pushed) {
	t.Helper()
	labels := func(job string) map[string]string { return map[string]string{"job": job, "instance": "e2e"} }
	for _, s := range servers {
		w, err := remote.New(c, remote.Options{URL: "http://" + s.addr + "/api/v1/write", Labels: labels("remote-write")})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pushed{s, job{name: "remote-write"}, w})
		if !s.isVictoria {
			continue
		}
		p, err := vm.NewPusher(c, vm.PushOptions{URL: "http://" + s.addr + "/api/v1/import/prometheus", Labels: labels("text")})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pushed{s, job{name: "text"}, p})
	}
	return all
}

// numbers is what the pusher says of itself, by name.
func (p pushed) numbers() map[string]float64 {
	found := map[string]float64{}
	p.Self(func(name string, value float64, _ ...string) { found[name] = value })
	return found
}
