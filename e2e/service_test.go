package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

// A service is what the servers scrape: the SDK under load, its pages, and its metric log, which is the truth that the
// servers' samples are compared with. Both come from the same sealed seconds by different ways out.
type service struct {
	stats *collector.Collector
	log   *metriclog.Writer
	addr  string

	mu    sync.Mutex
	asked map[string]time.Time // by server, when it last had a page
}

// Paths of the service. The last two are the page of seconds too, with outages.
const (
	metricsPath = "/metrics"
	secondsPath = "/metrics/seconds"
	flakyPath   = "/flaky/metrics/seconds"
	tornPath    = "/torn/metrics/seconds"
)

// startService starts it in the test's process, and with it the metric log. The function that is returned ends the log,
// with its last second.
func startService(t *testing.T) (*service, func() error) {
	t.Helper()
	stats, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{stats: stats, asked: map[string]time.Time{}}
	if s.log, err = metriclog.New(stats, metriclog.Options{Dir: t.TempDir(), App: "e2e", Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	seconds, err := prom.NewSeconds(stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := prom.Handler(stats, prom.Options{Sources: []exporter.Source{seconds, s.log}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(metricsPath, metrics)
	mux.Handle(secondsPath, seconds)
	mux.Handle(flakyPath, flaky(seconds))
	mux.Handle(tornPath, torn(seconds))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = listener.Addr().String()
	server := &http.Server{Handler: s.note(mux), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })

	ctx, cancel := context.WithCancel(context.Background())
	logged := make(chan error, 1)
	go func() { logged <- s.log.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-logged
	})
	t.Cleanup(func() { _ = stop() })
	return s, stop
}

// note remembers when each server was answered; its jobs say which server they are from.
func (s *service) note(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, _, _ := strings.Cut(r.URL.Query().Get("cursor"), ":")
		touch := func() {
			s.mu.Lock()
			s.asked[server] = time.Now()
			s.mu.Unlock()
		}
		touch()
		defer touch()
		pages.ServeHTTP(w, r)
	})
}

// quiet waits until a server is between two scrapes.
func (s *service) quiet(server string) {
	for {
		s.mu.Lock()
		since := time.Since(s.asked[server])
		s.mu.Unlock()
		if since > 300*time.Millisecond {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A habit is how a resource is called.
type habit struct {
	resource string
	calls    func(second int) int // how many begin in a second of the run
	within   time.Duration        // from its beginning
	takes    time.Duration        // how long a call takes, on average
	fails    float64              // share of calls with an error
}

var errFailed = errors.New("failed")

// habits are of several kinds, because each is lost in a way of its own when only a part of the seconds arrives.
func habits() []habit {
	steady := func(n int) func(int) int { return func(int) int { return n } }
	return []habit{
		{resource: "steady", calls: steady(20), within: time.Second, takes: 5 * time.Millisecond},
		{resource: "failing", calls: steady(10), within: time.Second, takes: 20 * time.Millisecond, fails: 0.3},
		{resource: "limited", calls: steady(25), within: time.Second, takes: time.Millisecond},
		{resource: "slow", calls: steady(2), within: time.Second, takes: 2500 * time.Millisecond},
		// A second in which two hundred times as many call as in the others, all at once.
		{
			resource: "burst", within: 100 * time.Millisecond, takes: 3 * time.Millisecond,
			calls: func(second int) int {
				if second%17 == 11 {
					return 400 + second
				}
				return 2
			},
		},
		// Nothing at all for half a minute.
		{
			resource: "idle", within: time.Second, takes: 10 * time.Millisecond,
			calls: func(second int) int {
				if second >= 10 && second < 45 {
					return 0
				}
				return 5
			},
		},
		// A resource that nobody knew when the servers began.
		{
			resource: "late", within: time.Second, takes: 10 * time.Millisecond,
			calls: func(second int) int {
				if second < 25 {
					return 0
				}
				return 3
			},
		},
	}
}

// load calls the resources for a number of seconds, and waits until the last call has ended.
func (s *service) load(ctx context.Context, seconds int) error {
	if err := s.stats.SetLimits([]collector.Limit{{Resource: "limited", Count: 15}}); err != nil {
		return err
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	begin := time.Now()
	for _, h := range habits() {
		calls.Go(func() {
			for second := range seconds {
				if !sleepUntil(ctx, begin.Add(time.Duration(second)*time.Second)) {
					return
				}
				for range h.calls(second) {
					calls.Go(func() { s.call(ctx, h) })
				}
			}
		})
	}
	return nil
}

// call calls once, at some moment.
func (s *service) call(ctx context.Context, h habit) {
	if !sleepUntil(ctx, time.Now().Add(rand.N(h.within))) {
		return
	}
	// What it returns is counted, and nothing else is asked of it.
	_ = s.stats.Resource(h.resource).Do(func() error {
		time.Sleep(h.takes/2 + rand.N(h.takes))
		if rand.Float64() < h.fails {
			return errFailed
		}
		return nil
	})
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	select {
	case <-time.After(time.Until(at)):
		return true
	case <-ctx.Done():
		return false
	}
}

// A truth is what one resource did, by Unix second: what the metric log has. A second without a row is idle.
type truth struct {
	since int64 // the second in which the resource began
	rows  map[int64]metriclog.Row
}

// peak is the most calls that passed in a second.
func (x truth) peak() (most int64) {
	for _, row := range x.rows {
		most = max(most, row.Pass)
	}
	return most
}

// truths reads the metric log, which must have ended.
func (s *service) truths() (map[string]truth, error) {
	all := map[string]truth{}
	for _, h := range habits() {
		since := s.stats.Resource(h.resource).View().Since()
		all[h.resource] = truth{s.name(since), map[int64]metriclog.Row{}}
	}
	files, err := s.log.Files()
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		if err := read(all, path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func read(all map[string]truth, path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		row, err := metriclog.Parse(lines.Text())
		if err != nil {
			return err
		}
		if x := all[row.Resource]; row.Start.Unix() < x.since || x.rows == nil {
			return fmt.Errorf("a row that should not be: %s", lines.Text())
		}
		all[row.Resource].rows[row.Start.Unix()] = row
	}
	return lines.Err()
}

// open is the second that is open now; all before it are sealed.
func (s *service) open() int64 { return s.name(s.stats.Seal().Open) }

// name is the Unix second that a second of the timeline is named after.
func (s *service) name(index int64) int64 {
	at, _ := s.stats.Timeline().Name(index)
	return at.Unix()
}
