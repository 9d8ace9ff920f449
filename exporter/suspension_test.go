package exporter_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// transportFunc is an http.RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// events is a response writer for a stream. It counts the events.
type events struct {
	*httptest.ResponseRecorder
	n atomic.Int64
}

func (e *events) Write(b []byte) (int, error) {
	e.n.Add(int64(strings.Count(string(b), "\nid: ") + strings.Count(string(b[:min(len(b), 4)]), "id: ")))
	return len(b), nil
}

// A machine is suspended for eleven minutes, longer than the history, and a clock is set forward by the same time. The
// log, the sampler, the live page, and a push to a server that fails half of the requests continue within seconds. Each
// second with calls is in the log once and arrives at the server. Only seconds of the suspension count as lost.
func TestServiceAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
		var mu sync.Mutex
		requests, samples := 0, map[int64]int64{} // blocks by second
		row := regexp.MustCompile(`(?m)^windowstat_persecond_block\{.*resource="a"\} (\d+) (\d+)000$`)
		server := transportFunc(func(r *http.Request) (*http.Response, error) {
			body, err := gzip.NewReader(r.Body)
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(body)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			if requests++; requests%2 == 0 {
				return nil, errors.New("connection refused")
			}
			for _, m := range row.FindAllStringSubmatch(string(content), -1) {
				n, _ := strconv.ParseInt(m[1], 10, 64)
				at, _ := strconv.ParseInt(m[2], 10, 64)
				samples[at] = n
			}
			return &http.Response{
				StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody, Request: r,
			}, nil
		})
		gathered := atomic.Int64{}
		gatherer := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { gathered.Add(1); return nil, nil })
		dir := t.TempDir()
		x, err := exporter.New(exporter.Options{
			App: "shop", Logger: quiet, Log: metriclog.Options{Dir: dir}, Collector: collector.Options{Now: now},
			Sampler: sampler.Options{Gatherer: gatherer},
			Push: []push.Options{{
				Format: push.VictoriaMetrics, URL: "http://server",
				Client: &http.Client{Transport: server},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		stop := x.Start()
		ctx, cancel := context.WithCancel(t.Context())
		stream := &events{ResponseRecorder: httptest.NewRecorder()}
		var streaming sync.WaitGroup
		streaming.Go(func() {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/live/stream", nil)
			r.Header.Set("Accept", "text/event-stream")
			x.Handler().ServeHTTP(stream, r)
		})
		want := map[int64]int64{}
		live := func(seconds int) {
			for range seconds {
				want[now().Unix()]++
				x.Collector.Resource("a").Block("")
				time.Sleep(time.Second)
			}
		}
		live(20)
		for range 2 {
			events, calls := stream.n.Load(), gathered.Load()
			jump.Add(int64(11 * time.Minute))
			live(20)
			if n := stream.n.Load() - events; n < 15 {
				t.Errorf("%d events of the live page in 20 seconds after a suspension", n)
			}
			if n := gathered.Load() - calls; n < 15 {
				t.Errorf("%d samplings in 20 seconds after a suspension", n)
			}
		}
		cancel()
		streaming.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		logged := map[int64]int64{}
		rows, err := metriclog.Searcher{Dir: dir}.Search(metriclog.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for row := range rows.All() {
			if row.Resource == "a" {
				logged[row.Start.Unix()] += row.Block
			}
		}
		for at, n := range want {
			if logged[at] != n || samples[at] != n {
				t.Errorf("second %d has %d calls, %d in the log and %d at the server", at, n, logged[at], samples[at])
			}
		}
	})
}
