package replay

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// earned configures a replay with earned names.
func earned(o *Options) {
	o.Names = &httpstat.NamesOptions{}
}

// piped is like earned, for a log from stdin.
func piped(text string) func(*Options) {
	return func(o *Options) {
		earned(o)
		o.Files, o.Stdin = []string{"-"}, strings.NewReader(text)
	}
}

// followedPass replays a log line by line, a day after its begin. It returns the passes of each resource and the
// report.
func followedPass(t *testing.T, text string, change ...func(*Options)) (pass map[string]int64, r *Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Unix(base/nanos/86400*86400, 0)
		time.Sleep(time.Until(begin.Add(24 * time.Hour)))
		o := options(t)
		for _, f := range append([]func(*Options){piped(text)}, change...) {
			f(&o)
		}
		f, err := NewFollower(o, begin.Add(-time.Second))
		if err != nil {
			t.Fatal(err)
		}
		c, err := collector.New(collector.Options{
			Now: f.Clock.Now, Given: []string{httpstat.Unmatched},
			MaxResources: o.MaxResources,
		})
		if err != nil {
			t.Fatal(err)
		}
		pass = map[string]int64{}
		count := func() { // before the Collector retires resources
			for _, x := range c.Seal().Resources {
				pass[x.Name()] = x.View().Node().Snapshot(0, nil).Total.Pass // also of a retired resource
			}
		}
		if err := f.Run(t.Context(), c, count); err != nil {
			t.Fatal(err)
		}
		count()
		r = f.Report()
	})
	return pass, r
}

// 12,000 lines of a scanner used to hide the checkout: it counted for _other, because the table of names was full.
func TestAScannerHidesNothing(t *testing.T) {
	for _, status := range []int{200, 302, 404} {
		var b strings.Builder
		r := rand.New(rand.NewPCG(1, 2))
		scan := func(second, n int) {
			for range n {
				b.WriteString(common(second, fmt.Sprintf("GET /%x/%x.php", r.Uint32(), r.Uint32()), status))
			}
		}
		calls := int64(0)
		for i := range 120 {
			scan(i, 100)
			if i >= 60 {
				b.WriteString(common(i, "POST /checkout", 200))
				b.WriteString(common(i, "GET /users/4711", []int{404, 200}[i%2]))
				calls++
			}
		}
		s, report := replay(t, b.String(), earned)
		if n := s.pass["POST /checkout"]; n < calls-10 || n >= calls ||
			status != 200 && s.pass["GET /users/:id"] < calls-10 || s.pass[collector.Other] != 0 {
			t.Errorf("%d: %d checkouts and %d users of %d: %v", status, n, s.pass["GET /users/:id"], calls, s.pass)
		}
		if hidden := s.pass[httpstat.Unmatched]; status != 200 && (hidden < 12_000 || hidden > 12_020 ||
			report.Unearned != hidden || len(s.pass) != 3) {
			t.Errorf("%d: %d are unearned: %v", status, report.Unearned, s.pass)
		}
		if len(s.pass) > 100 {
			t.Errorf("%d: %d resources", status, len(s.pass))
		}
		again, _ := replay(t, "", piped(b.String()))
		equal(t, "from a pipe", again.pass, s.pass)
		pass, _ := followedPass(t, b.String())
		equal(t, "followed", pass, s.pass)
	}
}

// Each route has a row, whatever the status. Requests that match no route count together.
func TestRoutesOfALog(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /users/{name}", http.NotFoundHandler())
	routes := func(o *Options) {
		o.Names = &httpstat.NamesOptions{Given: []string{"GET /users/{name}"}}
		o.Name = func(r *http.Request) string { _, pattern := mux.Handler(r); return pattern }
	}
	s, r := replay(t, common(1, "GET /users/jane", 404)+common(1, "GET /users/joe", 500)+common(1, "GET /other", 200)+
		common(2, "\\x16\\x03", 400), routes)
	equal(t, "pass", s.pass, map[string]int64{"GET /users/{name}": 2, httpstat.Unmatched: 2})
	if r.Unearned != 0 {
		t.Errorf("%d unearned", r.Unearned)
	}
}

// The proxy and a replay of its log in the order of the lines give equal names to equal calls.
func TestProxyAndReplayAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names, err := httpstat.NewNames(httpstat.NamesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status := 0
	proxy := httpstat.Handler(c, httpstat.PathName(4),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }), httpstat.Earn(names))
	var b strings.Builder
	for i := range 20_000 {
		path := ""
		for range 1 + r.IntN(4) {
			path += fmt.Sprint("/w", int(r.ExpFloat64()*8))
		}
		if r.IntN(3) == 0 {
			path += fmt.Sprintf("/%d-%%ff%%2F@x", i)
		}
		status = []int{200, 204, 304, 301, 404, 503}[r.IntN(6)]
		req := httptest.NewRequest([]string{"GET", "POST", "BREW"}[r.IntN(3)], path, nil)
		req.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", r.IntN(5))
		proxy.ServeHTTP(httptest.NewRecorder(), req)
		line := common(i/100, req.Method+" "+path, status)
		b.WriteString(strings.Replace(line, "::1", strings.TrimSuffix(req.RemoteAddr, ":1"), 1))
	}
	want := map[string]int64{}
	for _, x := range c.Seal().Resources {
		want[x.Name()] = x.View().Node().Snapshot(0, nil).Total.Pass
	}
	pass, report := followedPass(t, b.String())
	equal(t, "pass", pass, want)
	if report.Unearned != c.Health().Unearned || len(want) < 100 {
		t.Errorf("%d unearned, want %d; %d resources", report.Unearned, c.Health().Unearned, len(want))
	}
}

// A log with wrong times does not stop the clock that evicts unused names.
func TestNamesOfALogOverTime(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		b.WriteString(common(i*60, fmt.Sprintf("GET /d%d/x", i/30), 200))
		b.WriteString(common(i*60, fmt.Sprintf("GET /d%d/x", i/30), 200))
	}
	pass, _ := followedPass(t, b.String(), func(o *Options) { o.MaxResources, o.Tolerance = 2, time.Minute })
	for i := range 10 {
		if n := pass[fmt.Sprintf("GET /d%d/x", i)]; n < 45 {
			t.Errorf("/d%d/x has %d of 60 calls: %v", i, n, pass)
		}
	}
}
