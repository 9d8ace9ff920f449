package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// totalSeconds is the duration of the load.
const totalSeconds = 30

// TestTotal sends requests that each call a database, through the context, and a cache, through a handle. The total of
// a second in every view equals the number of requests that were sent in this second.
func TestTotal(t *testing.T) {
	t.Parallel()
	pages, shop := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	s, endLog := startService(t, pages)
	serve(t, httpstat.Mux(s.stats, nesting(s.stats)), shop)
	servers := startServers(t,
		job{
			name: "shop-seconds", path: secondsPath,
			targets: []string{pages.Addr().String()}, interval: 5 * time.Second,
		})
	url := "http://" + pages.Addr().String()
	page := openTab(t, startBrowser(t), url+livePath)
	binary := buildWindowstat(t)

	begin := time.Now().Unix() + 1
	sent, inTop := map[int64]int64{}, map[int64]int64{}
	ended := begin - 1 // second of the last request
	enough := func() bool {
		for second := range inTop {
			if sent[second] > 0 {
				return len(sent) >= totalSeconds/2
			}
		}
		return false
	}
	end := begin
	// Run longer on a busy machine, where fewer seconds are certain.
	for ; end < begin+totalSeconds || !enough() && end < begin+4*totalSeconds; end++ {
		end = max(end, time.Now().Unix())
		second := end
		n := (second*7)%40 + 1
		sleepUntil(t.Context(), time.Unix(second, int64(200*time.Millisecond)))
		sending := time.Now().Unix()
		for range n {
			resp, err := http.Get("http://" + shop.Addr().String() + "/")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		before := ended
		// Record the requests only if all of them belong to this second.
		if ended = time.Now().Unix(); before < second && sending == second && ended == second {
			sent[second] = n
		}
		if second%5 == 0 {
			at, total := top(t, binary, url)
			inTop[at] = total
		}
	}
	if len(sent) < totalSeconds/2 {
		t.Fatalf("only %d seconds of %d are known", len(sent), end-begin)
	}
	check := func(view string, total map[int64]int64, least int) {
		seen := 0
		for second, n := range sent {
			got, ok := total[second]
			if ok && got != n {
				t.Errorf("second %d of %s is %d; %d requests were sent", second, view, got, n)
			}
			if ok {
				seen++
			}
		}
		if t.Logf("%s: %d seconds", view, seen); seen < least {
			t.Errorf("%s has %d seconds; it should have %d", view, seen, least)
		}
	}

	page.await(t, "received.total.newest >= "+strconv.FormatInt(end-1, 10))
	deadline := time.Now().Add(catchUp)
	panel := expressionOf(t, "overview", "Peak second and average")
	for _, x := range servers {
		await(t, x, "windowstat_persecond_inbound_pass", end, deadline)
		samples, graph := map[int64]int64{}, map[int64]int64{}
		for _, series := range x.query(t, "windowstat_persecond_inbound_pass[5m]") {
			for _, v := range series.Values {
				samples[v.at/1000] += int64(v.value)
			}
		}
		for _, series := range x.queryRange(t, x.withHidden(t, panel), begin, end-1, 1) {
			for _, v := range series.Values {
				graph[v.at/1000] += int64(v.value)
			}
		}
		check(x.name, samples, len(sent))
		check("the Overview of "+x.name, graph, len(sent))
	}
	page.await(t, `byId('state').textContent === 'live'`)
	live, shown := map[int64]int64{}, page.look(t)
	for i, second := range shown.Times {
		if shown.Pass[i] != nil {
			live[second] = *shown.Pass[i]
		}
	}
	if shown.Subject != "All inbound calls" || shown.State != "live" {
		t.Errorf("the live page calls the total %q, and says %q", shown.Subject, shown.State)
	}
	check("the live page", live, len(sent)-1) // the browser may have missed the first second
	check("top", inTop, 1)
	page.keep(t, "total")

	if err := endLog(); err != nil {
		t.Fatal(err)
	}
	files, err := s.log.Files()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows(files)
	if err != nil {
		t.Fatal(err)
	}
	logged := map[int64]int64{}
	for _, row := range rows {
		if row.Resource == collector.InboundTotal {
			logged[row.Start.Unix()] += row.Pass
		}
	}
	check("the metric log", logged, len(sent))
}

// nesting responds to requests, each with a call of db and a call of cache.
func nesting(c *collector.Collector) *http.ServeMux {
	mux, cache := http.NewServeMux(), c.Resource("cache")
	mux.HandleFunc("GET /{$}", func(_ http.ResponseWriter, r *http.Request) {
		_ = c.Do(r.Context(), "db", func(context.Context) error { return nil }, collector.Outbound())
		_ = cache.Do(func() error { return nil })
	})
	return mux
}

// top returns the last second in the first line of top, and the passes of this second.
func top(t *testing.T, binary, url string) (second, pass int64) {
	t.Helper()
	lines := strings.Split(shell(t, `"$1" top --once "$2"`, binary, url), "\n")
	columns := map[string]string{}
	values := strings.Split(lines[1], "\t")
	for i, name := range strings.Split(lines[0], "\t") {
		columns[name] = values[i]
	}
	second, wrong := strconv.ParseInt(columns["second"], 10, 64)
	pass, err := strconv.ParseInt(columns["pass"], 10, 64)
	if err := errors.Join(wrong, err); err != nil || columns["kind"] != "inbound" {
		t.Fatalf("%v: %q", err, lines)
	}
	return second, pass
}

// expressionOf returns the first expression of a panel, as Grafana sends it for five minutes and one point per second,
// minus one millisecond: in Prometheus 2, a range of one second also includes the second before.
func expressionOf(t *testing.T, dashboard, title string) string {
	t.Helper()
	b, err := os.ReadFile("../dashboards/" + dashboard + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if p.Title == title {
			return strings.NewReplacer("${cluster:regex}", ".*", "${namespace:regex}", ".*", "${job:regex}",
				"shop", "${instance:regex}", ".*",
				"${resources:regex}", ".*", "${resource:regex}", "checkout", "$__interval", "999ms", "$__range",
				"300s").Replace(p.Targets[0].Expr)
		}
	}
	t.Fatalf("%s has no panel %q", dashboard, title)
	return ""
}
