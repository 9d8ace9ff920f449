package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

// swallow is a proxy that, while it is switched on, responds to pushes with success and discards them.
func swallow(t *testing.T, to *server, now *atomic.Bool, swallowed *atomic.Int64) (address string) {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to.addr})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if now.Load() {
			_, _ = io.Copy(io.Discard, r.Body)
			swallowed.Add(1)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestVerify has databases lack seconds without any record of the loss: a proxy confirmed them and discarded them, a
// server was killed after it had received a response, and an administrator deleted some. The command names exactly
// these seconds, writes them, and then finds nothing.
func TestVerify(t *testing.T) {
	t.Parallel()
	command := buildWindowstat(t)
	log := metriclog.Options{Dir: t.TempDir(), App: "e2e"}
	p := logPaced(t, time.Now(), log)
	begin := p.second
	page, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, page, l, page.ConnState)

	// The proxy between the scraper and the service forwards each response after reading it, unless the server is about
	// to be killed.
	var kill, killed atomic.Bool
	prometheus := newServer(t, "prometheus-3", prometheus3.path(t), false)
	// The proxy has its own connections. Closing any httptest.Server closes the idle connections of the default
	// transport, and after the end of a connection the page resends the seconds that it carried.
	proxied := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(proxied.CloseIdleConnections)
	handsOn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := proxied.Get("http://" + l.Addr().String() + r.URL.String())
		if err != nil {
			return
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if kill.CompareAndSwap(true, false) {
			prometheus.end(syscall.SIGKILL)
			killed.Store(true)
			return
		}
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		_, _ = w.Write(body)
	}))
	t.Cleanup(handsOn.Close)
	scraped := strings.TrimPrefix(handsOn.URL, "http://")
	prometheus.configure(t,
		prometheus.config([]job{{
			name: "hole", path: secondsPath, targets: []string{scraped}, interval: 3 * time.Second,
			timeout: 2 * time.Second,
		}})+
			documented(t, "verify.md", "out_of_order_time_window", ""))
	prometheus.args = append(prometheus.args, "--web.enable-admin-api")
	prometheus.start(t)
	// The server prometheus-2 accepts no samples out of order.
	vm, older := startServer(t, "victoria", victoria), startServer(t, "prometheus-2", prometheus2)

	var swallows atomic.Bool
	var swallowed atomic.Int64
	var stops []func() error
	for _, s := range []*server{prometheus, vm, older} {
		w, err := push.New(p.stats, push.Options{
			URL:    swallow(t, s, &swallows, &swallowed) + "/api/v1/write",
			Labels: map[string]string{"job": "pushed", "instance": "e2e"},
		})
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, w.Start())
	}
	// until ticks for some seconds, and then until a condition holds.
	until := func(seconds int64, what string, happened func() bool) {
		t.Helper()
		least, deadline := p.second+seconds, time.Now().Add(catchUp)
		p.live(func() bool { return (p.second < least || !happened()) && time.Now().Before(deadline) })
		if !happened() {
			t.Fatal(what)
		}
	}
	until(6, "nothing is scraped",
		func() bool { return len(prometheus.query(t, `windowstat_persecond_pass{job="hole"}`)) > 0 })
	swallows.Store(true)
	until(3, "too few pushes are swallowed", func() bool { return swallowed.Load() >= 4 })
	swallows.Store(false)
	until(1, "", func() bool { return true })
	kill.Store(true)
	until(1, "the server is not killed", killed.Load)
	prometheus.start(t)
	until(6, "", func() bool { return true })
	end := p.second
	p.end(t)
	rows := p.rows(t, begin)
	labels := map[string][]string{"pushed": {"job=pushed", "instance=e2e"}, "hole": {"job=hole", "instance=" + scraped}}
	await(t, prometheus, `windowstat_persecond_pass{job="hole",resource="steady"}`, end-3, time.Now().Add(catchUp))
	for _, s := range []*server{prometheus, vm, older} {
		await(t, s, `windowstat_persecond_pass{job="pushed",resource="steady"}`, end-1, time.Now().Add(catchUp))
	}
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}

	// verified runs the command.
	verified := func(t *testing.T, s *server, job string, to int64, status int,
		more ...string,
	) (report verify.Report, text string) {
		t.Helper()
		args := []string{
			command, "verify", "--dir", log.Dir, "--from", strconv.FormatInt(begin, 10), "--to",
			strconv.FormatInt(to-1, 10), "--delay", "1s",
			"--url", "http://" + s.addr, "--zone", "UTC",
		}
		for _, label := range labels[job] {
			args = append(args, "--label", label)
		}
		out, err := output(t.Context(), ".", append(args, more...)...)
		got := 0
		if err != nil {
			got = 1
		}
		if got != status {
			t.Fatalf("%s, %s: status %d, want %d: %v\n%s", s.name, job, got, status, err, out)
		}
		if slices.Contains(more, "json") {
			if err := json.NewDecoder(bytes.NewReader(out)).Decode(&report); err != nil {
				t.Fatal(err)
			}
		}
		return report, string(out)
	}
	// lacks returns the seconds without a sample of the passes of a resource in the server, computed without the
	// command.
	lacks := func(t *testing.T, s *server, job, resource string, to int64) (seconds []int64) {
		t.Helper()
		held := map[int64]bool{}
		for _, x := range s.query(t, fmt.Sprintf(`windowstat_persecond_pass{job=%q,resource=%q}[10m]`, job, resource)) {
			for _, v := range x.Values {
				held[v.at/1000] = true
			}
		}
		for second := range rows.values(fields[0], begin, to, false)[resource] {
			if !held[second] && second < to {
				seconds = append(seconds, second)
			}
		}
		slices.Sort(seconds)
		return seconds
	}
	// names checks that the report lists exactly these seconds as missing.
	names := func(t *testing.T, report verify.Report, resource string, want []int64) {
		t.Helper()
		var got []int64
		for _, f := range report.Findings {
			if f.Resource != resource || f.Metric != fields[0].metric {
				continue
			}
			for _, x := range f.Missing {
				n := len(got)
				for second := x.From.Unix(); second <= x.To.Unix(); second++ {
					if rows["steady"][second].Pass > 0 { // the service ran
						got = append(got, second)
					}
				}
				if int64(len(got)-n) != x.Seconds {
					t.Errorf("%v has %d seconds", x, len(got)-n)
				}
			}
		}
		if !slices.Equal(got, want) || len(want) == 0 || report.Different+report.Extra != 0 {
			t.Errorf("missing of %s: %v, want %v; %d different, %d extra", resource, got, want,
				report.Different, report.Extra)
		}
	}
	for _, of := range []struct {
		*server
		job string
		to  int64
	}{{prometheus, "pushed", end}, {vm, "pushed", end}, {prometheus, "hole", end - 3}} {
		want := lacks(t, of.server, of.job, "steady", of.to)
		report, _ := verified(t, of.server, of.job, of.to, 1, "--format", "json")
		names(t, report, "steady", want)
		names(t, report, `re"fus\ed`, lacks(t, of.server, of.job, `re"fus\ed`, of.to))
		_, text := verified(t, of.server, of.job, of.to, 0, "--heal")
		t.Logf("%s, %s:\n%s", of.name, of.job, text)
		report, _ = verified(t, of.server, of.job, of.to, 0, "--format", "json")
		if !report.Clean() || report.Idle != 0 {
			t.Errorf("%s, %s: not clean: %+v", of.name, of.job, report)
		}
		for _, f := range fields {
			checkSamples(t, of.server, f.metric+fmt.Sprintf(`{job=%q}[10m] @ %d`, of.job, of.to-1),
				rows.values(f, begin, of.to, true), of.to)
		}
	}

	// VictoriaMetrics deletes whole series, and Prometheus a range of some.
	deleted := func(s *server, path string, parameters url.Values) {
		t.Helper()
		resp, err := http.PostForm("http://"+s.addr+path, parameters)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusNoContent {
			t.Fatal(resp.Status)
		}
	}
	deleted(vm, "/api/v1/admin/tsdb/delete_series", url.Values{"match[]": {`{job="pushed",resource="steady"}`}})
	deleted(prometheus, "/api/v1/admin/tsdb/delete_series", url.Values{
		"match[]": {`{job="pushed",resource="steady"}`}, "start": {strconv.FormatInt(begin+4, 10)},
		"end": {strconv.FormatInt(begin+8, 10)},
	})
	for _, of := range []struct {
		*server
		status int
		says   string
	}{
		{vm, 0, "no sample is missing"},
		{prometheus, 1, "does not return them"},
		{older, 1, "The server refused samples"},
	} {
		t.Run(of.name, func(t *testing.T) { // sequential: only one heal of a log runs at a time
			// The database lacks a whole resource, so use --all.
			report, _ := verified(t, of.server, "pushed", end, 1, "--format", "json", "--all")
			names(t, report, "steady", lacks(t, of.server, "pushed", "steady", end))
			_, text := verified(t, of.server, "pushed", end, of.status, "--heal", "--all")
			if !strings.Contains(text, of.says) {
				t.Errorf("%q is not said", of.says)
			}
			t.Logf("%s:\n%s", of.name, text)
		})
	}
}

// TestHealOfAnotherInstance has a log that survives a change of its process's address: the first process was pod-1 in
// the database, and the second is pod-2. Both instances have a gap, and the command selects only one of the resources.
// Every series gets the counts of its instance and nothing else, also when two commands heal concurrently.
func TestHealOfAnotherInstance(t *testing.T) {
	t.Parallel()
	command := buildWindowstat(t)
	log := metriclog.Options{Dir: t.TempDir(), App: "e2e"}
	type process struct{ begin, end int64 }
	var processes []process
	for i := range 2 {
		p := logPaced(t, time.Now().Add(time.Duration(i*60-300)*time.Second), log)
		begin := p.second
		for range 40 {
			p.tick()
		}
		processes = append(processes, process{begin, p.second - 1})
		p.end(t)
	}
	vm := startServer(t, "victoria", victoria)
	verified := func(instance string, from, to int64, more ...string) (string, error) {
		out, err := output(t.Context(), ".", append([]string{
			command, "verify", "--dir", log.Dir, "--from", strconv.FormatInt(from, 10), "--to",
			strconv.FormatInt(to, 10), "--delay", "1s", "--url", "http://" + vm.addr,
			"--label", "job=pods", "--label", "instance=" + instance,
		}, more...)...)
		return string(out), err
	}
	for i, p := range processes {
		for _, part := range []process{{p.begin, p.begin + 9}, {p.begin + 15, p.end - 5}} {
			if out, err := verified(fmt.Sprint("pod-", i+1), part.begin, part.end, "--new",
				"--resource", "steady"); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
		}
	}
	seconds := func(instance, metric string) (n int, resources map[string]bool, first int64) {
		resources, first = map[string]bool{}, 1<<60
		for _, x := range vm.query(t, fmt.Sprintf(`%s{job="pods",instance=%q}[15m]`, metric, instance)) {
			resources[x.Metric["resource"]] = true
			for _, v := range x.Values {
				n++
				first = min(first, v.at/1000)
			}
		}
		return n, resources, first
	}
	eventually := time.Now().Add(catchUp)
	for n := 0; n < 30 && time.Now().Before(eventually); time.Sleep(200 * time.Millisecond) {
		n, _, _ = seconds("pod-2", fields[0].metric)
	}
	from, to := processes[0].begin, processes[1].end
	for i, instance := range []string{"pod-2", "pod-1"} {
		first := make(chan string)
		go func() {
			out, _ := verified(instance, from, to, "--heal")
			first <- out
		}()
		out, _ := verified(instance, from, to, "--heal") // may report that another heal is running
		both := <-first + out
		if strings.Count(both, "healed:") != 1 {
			t.Errorf("not one of them has healed:\n%s", both)
		}
		if other := []string{"pod-1", "pod-2"}[i]; !strings.Contains(both, "instance="+other+" has these seconds") {
			t.Errorf("no word of %s in\n%s", other, both)
		}
		p := processes[1-i]
		n, resources, begin := seconds(instance, fields[0].metric)
		if n != int(p.end-p.begin+1) || begin != p.begin || len(resources) != 1 {
			t.Errorf("%s has %d seconds from %d, want %d from %d; resources %v", instance, n, begin,
				p.end-p.begin+1, p.begin, resources)
		}
		if n, _, _ := seconds(instance, "windowstat_persecond_run"); n != int(p.end-p.begin+1) {
			t.Errorf("%s has %d runs", instance, n)
		}
	}
	for _, instance := range []string{"pod-1", "pod-2"} { // samples of the other instance are no fault
		if out, err := verified(instance, from, to); err != nil {
			t.Errorf("%s: %v", out, err)
		}
	}
}
