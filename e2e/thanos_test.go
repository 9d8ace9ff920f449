//go:build fleet

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

var thanos = program{"thanos-0.41.0", buildCopy("github.com/thanos-io/thanos@v0.41.0", asThanos, "./cmd/thanos")}

// TestThanosReceive has Thanos receive one service by three routes: ordinary pushes, pushes of which two of three
// requests fail before or after they are stored, and the samples that a scraping Prometheus forwards. Each second of
// each resource is there once.
func TestThanosReceive(t *testing.T) {
	t.Parallel()
	p := newConsumed(t)
	receive := newServer(t, "thanos-receive", thanos.path(t), false)
	write, grpc := *receive, freeAddress(t)
	write.addr = freeAddress(t)
	receive.args = []string{
		"receive", "--http-address=" + receive.addr, "--grpc-address=" + grpc, "--remote-write.address=" + write.addr,
		"--tsdb.path=" + filepath.Join(receive.dir, "data"), `--label=receive="e2e"`,
	}
	receive.start(t)
	query := newServer(t, "thanos-query", thanos.path(t), false)
	query.args = []string{"query", "--http-address=" + query.addr, "--grpc-address=" + freeAddress(t), "--endpoint=" +
		grpc}
	query.start(t)

	addr := servePages(t, p.stats)
	config := documented(t, "seconds.md", "track_timestamps_staleness", addr) +
		forwarding(t, "http://"+write.addr+"/api/v1/receive")
	startConfigured(t, "prometheus-3", prometheus3, config)
	ways := map[string]string{"forwarded": fmt.Sprintf(`job="shop-seconds",instance=%q`, addr)}
	proxy := &weather{bad: stormy}
	pushes := map[string]pushed{}
	for name, to := range map[string]*server{"pushed": &write, "stormy": through(t, &write, proxy)} {
		w, err := push.New(p.stats, push.Options{
			URL:    "http://" + to.addr + "/api/v1/receive",
			Labels: map[string]string{"job": name, "instance": "e2e"}, Timeout: weatherTimeout,
		})
		if err != nil {
			t.Fatal(err)
		}
		pushes[name] = pushed{to, job{name: name}, w, p.stats, "remote_write"}
		stop := w.Start()
		t.Cleanup(func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
		ways[name] = fmt.Sprintf("job=%q", name)
	}
	begin, end := p.consume(func() { proxy.clear.Store(true) })
	deadline := time.Now().Add(catchUp)
	for name, labels := range ways {
		t.Run(name, func(t *testing.T) {
			t.Logf("%d samples", p.check(t, query, labels, begin, end, deadline))
		})
	}
	if n := pushes["pushed"].numbers(); n["push_retries_total"] != 0 || n["push_samples_total"] == 0 {
		t.Errorf("nothing should have been sent again: %v", n)
	}
	n := pushes["stormy"].numbers()
	t.Logf("%v", n)
	if n["push_unconfirmed_samples_total"] == 0 || n["push_refused_samples_total"] != 0 ||
		n["push_lost_seconds_total"] != 0 {
		t.Errorf("a repeated request should have been a duplicate, and nothing refused or lost: %v", n)
	}
	if said := proxy.said.Load(); said != nil {
		t.Errorf("Thanos says 409; it said 400 and %s", *said)
	}
}

// consumedSeconds is the time in seconds during which the services of these tests run, and during which requests may
// fail.
const consumedSeconds = 45

// newConsumed returns twenty resources with different calls in each second.
func newConsumed(t *testing.T) *paced {
	t.Helper()
	var resources []string
	for i := range 20 {
		resources = append(resources, fmt.Sprintf("GET /items/%d", i))
	}
	p := newPaced(t, time.Now(), resources, collector.Options{})
	p.calls = func(resource int, second int64) count {
		n := resource*31 + int(second)*17
		return count{pass: 1 + n%5, block: n / 5 % 3}
	}
	return p
}

// consume runs the service for consumedSeconds. After that no requests fail, and the service continues until all
// seconds should have been taken. It returns the seconds to compare.
func (p *paced) consume(clear func()) (begin, end int64) {
	begin = time.Now().Unix() + 1
	end = begin + consumedSeconds
	p.second = begin
	p.clock.set(middle(begin))
	p.live(func() bool {
		if p.second == end {
			clear()
		}
		return p.second < end+30
	})
	return begin, end
}
