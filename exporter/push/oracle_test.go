package push

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
)

// TestPushOracle pushes for most of an hour (a quarter with -short) to a real HTTP server with all faults of servers,
// proxies and networks. Simple rules derive from the responses where each sample is counted. The server has all samples
// that count as accepted.
func TestPushOracle(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options Options
		doubles bool
	}{
		{"Prometheus", Options{MaxSamples: 30}, false},
		{"Prometheus, several seconds at a time", Options{Interval: 5 * time.Second}, false},
		{"VictoriaMetrics", Options{MaxSamples: 30}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			last := 40 * time.Minute
			if tc.options.Interval > time.Second {
				last *= 2 // a longer interval sends fewer requests
			}
			if testing.Short() {
				if last = 12 * time.Minute; tc.options.Interval > time.Second {
					t.Skip("too few requests for every fault")
				}
			}
			synctest.Test(t, func(t *testing.T) {
				tc.options.Timeout = 2 * time.Second
				j := newJob(t, tc.options)
				began := time.Now()
				s := &hostile{
					doubles:  tc.doubles,
					timeout:  tc.options.Timeout,
					random:   rand.New(rand.NewPCG(7, 8)),
					quiet:    began.Add(last - 2*time.Minute),
					store:    j.receiver,
					times:    map[sample]int{},
					outcomes: map[string]*outcome{},
					faults:   map[fault]int{},
					cut:      map[string]bool{},
				}
				s.serve(t, j.Pusher)
				truth := s.load(t, j, began, last)
				s.check(t, j, truth)
			})
		})
	}
}

// hostile is a server behind a faulty network and faulty proxies. It records the result that the Pusher can observe.
type hostile struct {
	doubles bool // stores all samples of each request, as VictoriaMetrics does
	timeout time.Duration
	random  *rand.Rand
	quiet   time.Time // no faults from this time on

	mu       sync.Mutex
	store    *receiver
	times    map[sample]int
	outcomes map[string]*outcome // of requests, by body
	faults   map[fault]int
	requests int
	cut      map[string]bool // checksums of requests that were cut off
}

// outcome describes the result of a request.
type outcome struct {
	samples []sample
	unknown bool   // an attempt ended without a clear response
	errors  int    // responses with 500
	end     string // metric that counts the samples
	resent  bool
}

type fault int

const (
	none        fault = iota
	errorBefore       // with Before the samples are not stored, with After they are
	errorAfter
	busyBefore
	busyAfter
	slowBefore
	slowAfter
	late // stored after the Pusher has given up the attempt
	cutBefore
	cutWithin
	cutAfter
	tooOld
	page     // 400 from a proxy
	another  // another process has written newer samples
	large    // 413
	throttle // 429
	missing  // 404
	moved    // 302
	greeting // 200 with a web page
	slowBody // 408
	numFaults
)

// ServeHTTP implements http.Handler.
func (s *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, f, body := s.receive(r)
	if f == nil {
		panic(http.ErrAbortHandler)
	}
	switch kind {
	case none:
		s.respond(w, f, s.keep(f, body))
	case errorBefore:
		s.respond(w, f, failure(500, ""))
	case errorAfter:
		s.keep(f, body)
		s.respond(w, f, failure(500, ""))
	case busyBefore:
		s.respond(w, f, failure(503, ""))
	case busyAfter:
		s.keep(f, body)
		s.respond(w, f, failure(503, ""))
	case slowBefore:
		s.respond(w, f, nil)
		<-r.Context().Done()
	case slowAfter:
		s.keep(f, body)
		s.respond(w, f, nil)
		<-r.Context().Done()
	case late:
		s.respond(w, f, nil)
		time.Sleep(s.timeout + 500*time.Millisecond)
		s.keep(f, body)
	case cutBefore:
		s.respond(w, f, nil)
		panic(http.ErrAbortHandler)
	case cutAfter:
		s.keep(f, body)
		s.respond(w, f, nil)
		panic(http.ErrAbortHandler)
	case tooOld:
		s.respond(w, f, failure(400, "out of bounds\n"))
	case page:
		s.respond(w, f, failure(400, "<html>out of order sample"))
	case another:
		s.respond(w, f, failure(400, "out of order sample\n"))
	case large:
		s.respond(w, f, failure(413, "<html>too large"))
	case throttle:
		s.respond(w, f, failure(429, ""))
	case missing:
		s.respond(w, f, failure(404, "<html>nothing here"))
	case moved:
		s.respond(w, f, failure(302, ""))
	case greeting:
		s.respond(w, f, failure(200, "<html>hello"))
	case slowBody:
		s.respond(w, f, failure(408, ""))
	}
}

func failure(code int, body string) *http.Response {
	resp, _ := answer(code, body)
	if strings.HasPrefix(body, "<html>") {
		resp.Header.Set("Content-Type", "text/html")
	}
	return resp
}

// receive reads a request and chooses a fault. The outcome is nil if the request is cut off.
func (s *hostile) receive(r *http.Request) (kind fault, f *outcome, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if time.Now().Before(s.quiet) && s.random.IntN(2) == 0 {
		kind = fault(s.random.IntN(int(numFaults)))
	}
	if kind == cutWithin {
		_, _ = io.ReadFull(r.Body, make([]byte, 10))
		s.faults[kind]++
		s.cut[r.Header.Get("Sum")] = true
		return kind, nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	if s.outcomes[string(body)] == nil {
		samples, err := parse(body)
		if err != nil {
			panic(err)
		}
		s.outcomes[string(body)] = &outcome{samples: samples}
	}
	f = s.outcomes[string(body)]
	f.unknown = f.unknown || s.cut[r.Header.Get("Sum")]
	if time.Now().Before(s.quiet) && crc32.ChecksumIEEE(body)%500 == 0 { // a request that always fails
		kind = errorBefore
	}
	s.faults[kind]++
	return kind, f, body
}

// keep stores the samples of a request.
func (s *hostile) keep(f *outcome, body []byte) *http.Response {
	if !s.doubles {
		resp, _ := s.store.store(body)
		return resp
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range f.samples {
		s.times[x]++
		s.store.stored[fmt.Sprint(x.series, " ", x.unix)] = x.value
	}
	resp, _ := answer(204, "")
	return resp
}

// respond sends resp and records the result that the Pusher can observe. If resp is nil, it sends no response.
func (s *hostile) respond(w http.ResponseWriter, f *outcome, resp *http.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if resp == nil {
		f.unknown = true
		return
	}
	text, _ := io.ReadAll(resp.Body)
	isPage := resp.Header.Get("Content-Type") == "text/html"
	switch code := resp.StatusCode; {
	case f.end != "":
		panic("request is sent again after its end: " + f.end)
	case code/100 == 2 && !isPage:
		f.end, f.resent = "samples", f.unknown
	case code/100 == 2 || code == 302 || code == 404 || code == 429:
	case code == 500 && f.errors == 30:
		f.end = "unconfirmed_samples"
	case code == 400 && f.unknown && !isPage &&
		(strings.HasPrefix(string(text), "out of order") || strings.HasPrefix(string(text), "duplicate")):
		f.end = "unconfirmed_samples"
	case code == 408 || code/100 == 5:
		f.unknown = true
		if code == 500 {
			f.errors++
		}
	default:
		f.end = "refused_samples"
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(text)
}

// serve connects the Pusher with the server. Idle connections are closed after less than a second.
func (s *hostile) serve(t *testing.T, p *Pusher) {
	conns := make(pipes)
	server := &http.Server{
		Handler: s, IdleTimeout: 900 * time.Millisecond,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
	}
	go func() { _ = server.Serve(conns) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		if time.Now().Before(s.quiet) && s.randomly(10) == 0 {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		here, there := net.Pipe()
		conns <- there
		return here, nil
	}}
	p.client.Transport = summed{transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		time.Sleep(time.Minute)
	})
}

// summed adds a header with the checksum of the request, which identifies a request that is cut off.
type summed struct{ http.RoundTripper }

func (x summed) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Sum", fmt.Sprint(crc32.ChecksumIEEE([]byte(peek(r)))))
	return x.RoundTripper.RoundTrip(r)
}

// pipes is a listener. A client sends one end of a pipe to it.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// blocked identifies a second of a resource.
type blocked struct {
	resource string
	unix     int64
}

// load makes calls, and returns their number by resource and second.
func (s *hostile) load(t *testing.T, j job, began time.Time, d time.Duration) map[blocked]float64 {
	truth := map[blocked]float64{}
	stop := background.Start(j.Run)
	for time.Since(began) < d {
		x := blocked{fmt.Sprint("r", s.randomly(5)), time.Now().Unix()}
		j.Resource(x.resource).Block("")
		truth[x]++
		time.Sleep(time.Duration(1+s.randomly(300)) * time.Millisecond)
	}
	*j.end = j.Seal().Open + 1
	if err := stop(); err != nil {
		t.Error(err)
	}
	return truth
}

func (s *hostile) randomly(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *hostile) check(t *testing.T, j job, truth map[blocked]float64) {
	counted := map[string]int{}
	passes := map[int64]int{} // number of sent series with a sample in every second: passes, and the run
	sent := map[string]bool{}
	for _, f := range s.outcomes {
		counted[f.end] += len(f.samples)
		if f.resent {
			counted["resent_samples"] += len(f.samples)
		}
		for _, x := range f.samples {
			if strings.HasPrefix(x.series, "windowstat_persecond_pass{") ||
				strings.HasPrefix(x.series, "windowstat_persecond_run{") {
				passes[x.unix]++
			}
			key := fmt.Sprint(x.series, " ", x.unix)
			if sent[key] {
				t.Fatalf("%s is in two requests", key)
			}
			sent[key] = true
			if v, ok := s.store.stored[key]; f.end == "samples" && (!ok || v != x.value) {
				t.Errorf("%s was accepted as %v, but is %v (%t)", key, x.value, v, ok)
			}
			if s.doubles && f.end == "samples" && s.times[x] != 1 && !f.resent {
				t.Errorf("%s is stored %d times, but not counted as resent", key, s.times[x])
			}
			const blocks = `windowstat_persecond_block{instance="i",job="j",resource="`
			if name, ok := strings.CutPrefix(x.series, blocks); ok {
				if want := truth[blocked{strings.TrimSuffix(name, `"}`), x.unix}]; x.value != want {
					t.Errorf("%s is %v, want %v", key, x.value, want)
				}
			}
		}
	}
	for key := range s.store.stored {
		if !sent[key] {
			t.Errorf("%s was never sent", key)
		}
	}
	got := j.counts()
	for _, name := range []string{"samples", "unconfirmed_samples", "refused_samples", "resent_samples"} {
		if int(got["push_"+name+"_total"]) != counted[name] || counted[name] == 0 {
			t.Errorf("%v in push_%s_total, want %d", got["push_"+name+"_total"], name, counted[name])
		}
	}
	all := *j.end - j.Tree().View().Node().Since()
	whole, first := int64(0), map[string]int64{}
	for x := range truth {
		if at, ok := first[x.resource]; !ok || x.unix < at {
			first[x.resource] = x.unix
		}
	}
	for at := *j.end - all; at < *j.end; at++ {
		want := 1 // the run
		for _, began := range first {
			if began <= at {
				want++
			}
		}
		if passes[at] == want {
			whole++
		}
	}
	if lost := all - whole; counted[""] != 0 || got["push_lost_seconds_total"] != float64(lost) ||
		got["push_seconds_total"] != float64(whole) {
		t.Errorf("%d samples are not counted; %d seconds were not sent; %v", counted[""], lost, got)
	}
	for kind := range numFaults {
		if s.faults[kind] < 5 {
			t.Errorf("fault %d happened %d times", kind, s.faults[kind])
		}
	}
	t.Logf("%d requests, faults %v; %v", s.requests, s.faults, got)
}
