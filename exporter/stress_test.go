package exporter_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

// scrape reads the counters and histogram counts of a page by name and resource. The completions are also listed by
// code.
func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Errorf("status %d: %s", resp.StatusCode, body)
		return nil
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Error(err)
	}
	values := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			label := map[string]string{}
			for _, l := range m.Label {
				label[l.GetName()] = l.GetValue()
			}
			if resource, ok := label["resource"]; ok {
				key := strings.TrimPrefix(name, "windowstat_") + " " + resource
				values[key] += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				if name == "windowstat_complete_total" {
					values[coded(resource, label["code"])] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return values
}

// coded returns the key of the calls of a resource with a code.
func coded(resource, code string) string { return "code " + code + " total " + resource }

// Writers, scrapers and the log run concurrently, for some seconds of the real clock. Counters only increase, each
// scrape is consistent, and at the end the counters, the log and the calls are equal.
func TestConcurrentWritersScrapersAndLog(t *testing.T) {
	const names = 20
	length := 3 * time.Second
	if testing.Short() {
		length = 1200 * time.Millisecond
	}
	c, err := collector.New(collector.Options{MaxResources: names - 5}) // some names overflow
	if err != nil {
		t.Fatal(err)
	}
	w, err := metriclog.New(c, metriclog.Options{Dir: t.TempDir(), App: "stress", MaxFileSize: 2000, MaxFiles: 1000})
	if err != nil {
		t.Fatal(err)
	}
	page, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(page)
	defer srv.Close()
	logCtx, stopLog := context.WithCancel(t.Context())
	logged := make(chan error)
	go func() { logged <- w.Run(logCtx) }()

	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	want := map[string]float64{}
	for g := range 6 {
		wg.Go(func() {
			mine := map[string]float64{}
			for i := g; ctx.Err() == nil; i++ {
				r := c.Resource(fmt.Sprint("name ", i%names))
				e := r.Enter()
				if i%7 == 0 {
					r.Block("")
					mine["block_total "+r.Name()]++
				}
				err := error(nil)
				if i%3 == 0 {
					err = io.EOF
					mine["exception_total "+r.Name()]++
				}
				code := [...]collector.Code{
					{},
					collector.HTTPStatus(200), collector.HTTPStatus(404), collector.GRPCCode(5),
					collector.HTTPStatus(999),
				}[i%5]
				e.ExitCode(err, code)
				mine[coded(r.Name(), code.String())]++
				mine["pass_total "+r.Name()]++
				mine["complete_total "+r.Name()]++
			}
			mu.Lock()
			defer mu.Unlock()
			for k, v := range mine {
				want[k] += v
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			last := map[string]float64{}
			for ctx.Err() == nil {
				now := scrape(t, srv.URL)
				for k, v := range now {
					name, resource, _ := strings.Cut(k, " ")
					if (strings.HasSuffix(name, "_total") || name == "rt_seconds" || name == "code") && v < last[k] {
						t.Errorf("%s decreased from %v to %v", k, last[k], v)
					}
					if name == "rt_seconds" && v != now["complete_total "+resource] ||
						name == "pass_total" && v < now["complete_total "+resource] {
						t.Errorf("%s is %v, complete_total %v", k, v, now["complete_total "+resource])
					}
				}
				last = now
			}
		})
	}
	wg.Wait()
	stopLog()
	if err := <-logged; err != nil {
		t.Fatal(err)
	}

	got := scrape(t, srv.URL)
	rows := map[string]float64{}
	files, err := w.Files()
	if err != nil {
		t.Fatal(err)
	}
	last := time.Time{}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			row, err := metriclog.Parse(lines.Text())
			if err != nil {
				t.Fatal(err)
			}
			if row.Start.Before(last) {
				t.Errorf("%v follows %v", row.Start, last)
			}
			last = row.Start
			rows["pass_total "+row.Resource] += float64(row.Pass)
			rows["block_total "+row.Resource] += float64(row.Block)
			rows["complete_total "+row.Resource] += float64(row.Success)
			rows["exception_total "+row.Resource] += float64(row.Exception)
		}
		f.Close()
	}
	total := 0.0
	for k, n := range want {
		if got[k] != n || rows[k] != n && !strings.HasPrefix(k, "code ") {
			t.Errorf("%s: %v recorded, %v scraped, %v logged", k, n, got[k], rows[k])
		}
		total += n
	}
	if len(want) < 4*(names-4) {
		t.Errorf("only %d counts", len(want))
	}
	t.Logf("%v events, %d log files", total, len(files))
}
