package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/node"
)

const (
	weatherLoad    = time.Minute
	weatherTimeout = 2 * time.Second // of a request
)

// weather is a proxy before a server that disturbs pushes; everything else passes.
type weather struct {
	*httputil.ReverseProxy
	// bad handles the nth push.
	bad   func(n int64, w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter))
	n     atomic.Int64
	clear atomic.Bool            // let all pushes pass, too
	said  atomic.Pointer[string] // the server's last error text with status 400
}

// through creates a proxy before a server. It returns the server with the address of the proxy.
func through(t *testing.T, s *server, x *weather) *server {
	t.Helper()
	x.ReverseProxy = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.addr})
	x.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	x.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode != http.StatusBadRequest {
			return nil
		}
		b, err := io.ReadAll(r.Body)
		said := string(b)
		x.said.Store(&said)
		r.Body = io.NopCloser(strings.NewReader(said))
		return err
	}
	proxied := *s
	proxied.addr = freeAddress(t)
	serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || x.clear.Load() {
			x.ServeHTTP(w, r)
			return
		}
		x.bad(x.n.Add(1), w, r, func(w http.ResponseWriter) { x.ServeHTTP(w, r) })
	}), listen(t, proxied.addr))
	return &proxied
}

// stormy fails two of three requests, before or after the server has stored them, and never refuses a request.
func stormy(n int64, w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) {
	aside := &discarded{http.Header{}}
	if n%3 == 0 {
		forward(w)
		return
	}
	switch (n - n/3) % 8 { // two of them in turn: 1 and 2, 3 and 4, 5 and 6, 7 and 0
	case 1:
		http.Error(w, "broken", http.StatusInternalServerError)
	case 2: // half of the request arrives
		r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, r.ContentLength/2), half{}))
		forward(aside)
		panic(http.ErrAbortHandler)
	case 3:
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case 4:
		panic(http.ErrAbortHandler)
	case 5:
		forward(aside)
		http.Error(w, "broken", http.StatusInternalServerError)
	case 6:
		forward(aside)
		http.Error(w, "slow", http.StatusGatewayTimeout)
	case 7:
		forward(aside)
		panic(http.ErrAbortHandler)
	case 0:
		forward(aside)
		<-r.Context().Done() // the pusher has a timeout
	}
}

// half ends a body prematurely.
type half struct{}

func (half) Read([]byte) (int, error) { return 0, errTorn }

// discarded is a response that is not delivered.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d *discarded) WriteHeader(int)             {}

// TestPushWeather pushes for a minute through proxies that fail before and after the server has stored a request. In
// the end every server has every second, and all samples that are counted as accepted.
func TestPushWeather(t *testing.T) {
	t.Parallel()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var pushes []pushed
	var proxies []*weather
	var stops []func() error
	for _, s := range startServers(t) {
		for _, way := range []string{"remote_write", "vm"} {
			if way == "vm" && !s.isVictoria {
				continue
			}
			x := &weather{bad: stormy}
			p := pushed{server: through(t, s, x), job: job{name: way}, stats: c, way: way}
			labels := map[string]string{"job": way, "instance": "e2e"}
			if way == "vm" {
				p.pusher, err = push.New(c, push.Options{
					Format: push.VictoriaMetrics,
					URL:    "http://" + p.addr + "/api/v1/import/prometheus", Labels: labels,
					Interval: 2 * time.Second, Timeout: weatherTimeout,
				})
			} else {
				p.pusher, err = push.New(c, push.Options{
					URL: "http://" + p.addr + "/api/v1/write", Labels: labels,
					Interval: 2 * time.Second, Timeout: weatherTimeout,
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			pushes, proxies = append(pushes, p), append(proxies, x)
			stops = append(stops, p.Start())
		}
	}
	// Every push has met every kind of disturbance once.
	harmed := func() bool {
		return !slices.ContainsFunc(proxies, func(x *weather) bool { return x.n.Load() < 12 })
	}
	end, last := time.Now().Add(weatherLoad), time.Now().Add(3*weatherLoad)
	for time.Now().Before(end) || !harmed() && time.Now().Before(last) {
		for range rand.IntN(5) {
			c.Resource(fmt.Sprint("r", rand.IntN(3))).Block("")
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, x := range proxies {
		x.clear.Store(true)
	}
	back := time.Now()
	for _, p := range pushes {
		for p.numbers()["push_lag_seconds"] > 4 {
			if time.Since(back) > 2*catchUp { // after a failure the pusher pauses up to 45 s
				t.Fatalf("%s to %s does not catch up", p.way, p.server.name)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	open := c.Seal().Open
	numbers := make([]map[string]float64, len(pushes)) // a pusher has no numbers after its end
	for i, p := range pushes {
		numbers[i] = p.numbers()
	}
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	for i, p := range pushes {
		t.Run(p.server.name+"/"+p.way, func(t *testing.T) { checkWeather(t, p, proxies[i], numbers[i], open) })
	}
}

func checkWeather(t *testing.T, p pushed, x *weather, n map[string]float64, end int64) {
	p.show(t)
	distinct, twice := 0, 0
	blocks := map[string]map[int64]float64{}
	for _, series := range p.query(t, fmt.Sprintf(`{job=%q}[10m]`, p.job.name)) {
		times := map[int64]int{}
		held := map[int64]float64{}
		for _, v := range series.Values {
			times[v.at/1000]++
			held[v.at/1000] = v.value
		}
		for _, n := range times {
			distinct++
			if n > 1 {
				twice++
			}
		}
		if series.Metric["__name__"] == "windowstat_persecond_block" {
			blocks[series.Metric["resource"]] = held
		}
	}
	missing := 0
	for _, r := range p.stats.Seal().Resources {
		for _, second := range r.View().Node().AppendSeconds(nil, 0, end) {
			if v, ok := blocks[r.Name()][second.Start.Unix()]; !ok || v != float64(second.Block) {
				missing++
				t.Errorf("%s at %d is %v (%t), want %d", r.Name(), second.Start.Unix(), v, ok, second.Block)
			}
		}
	}
	t.Logf("%d samples, %d of them twice, %d missing; %v", distinct, twice, missing, n)
	if accepted := int(n["push_samples_total"]); accepted == 0 || accepted > distinct {
		t.Errorf("%d samples were accepted, and the server has %d", accepted, distinct)
	}
	if n["push_retries_total"] == 0 || n["push_refused_samples_total"] != 0 || n["push_lost_seconds_total"] != 0 {
		t.Errorf("something should have been sent again, and nothing refused or lost: %v", n)
	}
	if p.isVictoria {
		if n["push_unconfirmed_samples_total"] != 0 || twice == 0 || twice > int(n["push_resent_samples_total"]) {
			t.Errorf("%d samples are there twice: %v", twice, n)
		}
		return
	}
	if n["push_unconfirmed_samples_total"] == 0 || twice != 0 {
		t.Errorf("nothing is unconfirmed, or %d samples are there twice: %v", twice, n)
	}
	if said := x.said.Load(); said == nil || *said != "out of order sample\n" {
		t.Errorf("the server said %v", said)
	}
}

// blocks returns the blocks of a resource in each sealed second.
func (p pushed) blocks(resource string) map[int64]float64 {
	all, open := map[int64]float64{}, p.stats.Seal().Open
	for _, second := range p.stats.Resource(resource).View().Node().AppendSeconds(nil, 0, open) {
		all[second.Start.Unix()] = float64(second.Block)
	}
	return all
}

// TestPushOfTwoWriters has a second process write to the same series by mistake, through a proxy that is too busy at
// first. The server refuses samples that it never had, with the same message as for samples that it has.
func TestPushOfTwoWriters(t *testing.T) {
	t.Parallel()
	// VictoriaMetrics is omitted because it accepts every sample.
	for name, program := range map[string]program{"prometheus-2": prometheus2, "prometheus-3": prometheus3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, name, program)
			push := func(to *server, interval time.Duration, n int) (pushed, func() error) {
				c, err := collector.New(collector.Options{Windows: node.Options{History: 5 * time.Minute}})
				if err != nil {
					t.Fatal(err)
				}
				w, err := push.New(c, push.Options{
					URL:    "http://" + to.addr + "/api/v1/write",
					Labels: map[string]string{"job": "same", "instance": "same"}, Interval: interval,
					Metrics: []string{"windowstat_persecond_block"},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					for ctx.Err() == nil {
						for range n {
							c.Resource("a").Block("")
						}
						time.Sleep(10 * time.Millisecond)
					}
				}()
				stop := w.Start()
				return pushed{to, job{}, w, c, "remote_write"}, func() error { cancel(); return stop() }
			}
			until := func(what string, happened func() bool) {
				t.Helper()
				for deadline := time.Now().Add(catchUp); !happened(); time.Sleep(100 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal(what)
					}
				}
			}
			first, stopFirst := push(s, time.Second, 1) // up to a hundred calls a second
			until("the first process does not push", func() bool {
				return first.numbers()["push_samples_total"] >= 2
			})
			second, stopSecond := push(through(t, s,
				&weather{bad: func(n int64, w http.ResponseWriter, _ *http.Request, forward func(http.ResponseWriter)) {
					if n%2 == 1 {
						http.Error(w, "busy", http.StatusServiceUnavailable)
						return
					}
					forward(w)
				}}), 4*time.Second, 100) // thousands
			until("too little of the second process is unconfirmed", func() bool {
				return second.numbers()["push_unconfirmed_samples_total"] >= 8
			})
			n := second.numbers()
			for _, stop := range []func() error{stopSecond, stopFirst} {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
			has, own, others := 0, second.blocks("a"), first.blocks("a")
			for _, series := range s.query(t, `windowstat_persecond_block{job="same"}[5m]`) {
				for _, v := range series.Values {
					if at := v.at / 1000; v.value == own[at] && own[at] != others[at] {
						has++
					}
				}
			}
			t.Logf("the server has %d samples of the second process: %v", has, n)
			if int(n["push_samples_total"]) > has || n["push_unconfirmed_samples_total"] < 8 {
				t.Errorf("the server has %d samples of the second process, which counts %v", has, n)
			}
		})
	}
}
