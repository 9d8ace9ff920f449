package push

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// versions is a server of remote write. It stores samples by their series and time, and counts how often.
type versions struct {
	reads2      bool // it reads version 2.0, and version 1.0 otherwise
	unsupported int  // status for the other version; with 2xx it ignores the content type, and finds no series
	// before may respond instead of the server. It returns nil to let the server respond.
	before func(request int) *http.Response
	half   bool // it stores every other sample of version 2.0, and refuses the others

	mu       sync.Mutex
	requests []string // their versions
	stored   map[string]int
	values   map[string]float64
	starts   map[string]uint64
}

// RoundTrip implements http.RoundTripper.
func (s *versions) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored == nil {
		s.stored, s.values, s.starts = map[string]int{}, map[string]float64{}, map[string]uint64{}
	}
	version := r.Header.Get("X-Prometheus-Remote-Write-Version")
	kind := map[string]string{
		"0.1.0": "application/x-protobuf", "2.0.0": "application/x-protobuf;proto=io.prometheus.write.v2.Request",
	}[version]
	if kind != r.Header.Get("Content-Type") || r.Header.Get("Content-Encoding") != "snappy" {
		return answer(http.StatusBadRequest, fmt.Sprintf("%v", r.Header))
	}
	s.requests = append(s.requests, version)
	if s.before != nil {
		if resp := s.before(len(s.requests)); resp != nil {
			return resp, nil
		}
	}
	if s.reads2 != (version == "2.0.0") {
		return answer(s.unsupported, "")
	}
	t := new(testing.T)
	if version == "0.1.0" {
		for _, line := range decode(t, body) {
			i := strings.LastIndex(line, "} ") + 1
			if name := line[:i]; strings.HasSuffix(line, " histogram") {
				s.stored[name]++
			} else {
				var v float64
				var at uint64
				_, _ = fmt.Sscan(line[i:], &v, &at)
				s.store(sample2{series: name, value: v, at: at})
			}
		}
		return answer(http.StatusNoContent, "")
	}
	n, all := 0, 0
	for _, series := range decode2(t, body) {
		for _, x := range series.samples {
			if all++; !s.half || all%2 == 0 {
				s.store(x)
				n++
			}
		}
	}
	status, text := http.StatusNoContent, ""
	if n < all {
		status, text = http.StatusBadRequest, "too old sample"
	}
	return answer(status, text, "X-Prometheus-Remote-Write-Samples-Written", fmt.Sprint(n))
}

func (s *versions) store(x sample2) {
	key := fmt.Sprint(x.series, " ", x.at/1000)
	s.stored[key]++
	s.values[key], s.starts[key] = x.value, x.start
}

// serve pushes some seconds of calls to a server, and returns the self-metrics.
func (s *versions) serve(t *testing.T, o Options) (c *collector.Collector, numbers map[string]float64) {
	t.Helper()
	c, err := collector.New(collector.Options{Windows: node.Options{History: time.Minute}, RetireAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Labels = "http://x", map[string]string{"job": "j", "instance": "i"}
	o.Client = &http.Client{Transport: s}
	p, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	stop := background.Start(p.Run)
	for i := range 100 {
		r := c.Resource(fmt.Sprint("r", i%3))
		if i%7 == 0 {
			r.Block("")
		} else {
			e := r.Enter()
			e.Exit(nil)
		}
		time.Sleep(300 * time.Millisecond)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	return c, job{Pusher: p}.counts()
}

// check compares the stored samples with the counts of c. Each sample must be stored once. The counters are cumulative
// or deltas, or there are none.
func (s *versions) check(t *testing.T, c *collector.Collector, sums seconds.Temporality) {
	t.Helper()
	for key, n := range s.stored {
		if n != 1 {
			t.Errorf("%s was stored %d times", key, n)
		}
	}
	seen := 0
	for _, r := range c.Seal().Resources {
		began, total := uint64(r.View().Node().Began().Unix()), 0.0
		for _, m := range r.View().Node().AppendSeconds(nil, 0, c.Seal().Open) {
			at, v := m.Start.Unix(), float64(m.Pass)
			key := func(name string, at int64) string {
				return fmt.Sprintf(`windowstat_persecond_%s{instance="i",job="j",resource=%q} %d`, name, r.Name(), at)
			}
			gauge, sum := key("pass", at), key("pass_total", at+1)
			if _, ok := s.stored[gauge]; !ok { // after the end of the job
				continue
			}
			seen++
			total += v
			want, start := total, began*1000
			if sums == seconds.Single {
				want, start = v, uint64(at)*1000+1
			}
			if !s.reads2 {
				start = 0
			}
			if s.values[gauge] != v || s.starts[gauge] != 0 {
				t.Errorf("%s is %v since %d, want %v", gauge, s.values[gauge], s.starts[gauge], v)
			}
			if n := s.stored[sum]; sums == seconds.None && n > 0 ||
				sums != seconds.None && (n != 1 || s.values[sum] != want || s.starts[sum] != start) {
				t.Errorf(
					"%s is %v since %d (%d times), want %v since %d",
					sum,
					s.values[sum],
					s.starts[sum],
					n,
					want,
					start,
				)
			}
		}
	}
	if seen < 80 {
		t.Errorf("%d seconds of resources are too few", seen)
	}
}

// A server that reads version 1.0 only receives every sample once, whatever it responds to version 2.0. The Pusher logs
// this once. A server that reads version 2.0 receives the same samples with start timestamps.
func TestFallbackToVersion1(t *testing.T) {
	for name, tc := range map[string]struct {
		format Format
		server *versions
		sums   seconds.Temporality
	}{
		"version 2.0":         {RemoteWrite2, &versions{reads2: true}, seconds.Cumulative},
		"deltas":              {RemoteWrite2Delta, &versions{reads2: true}, seconds.Single},
		"204 to anything":     {RemoteWrite2, &versions{unsupported: 204}, seconds.Cumulative},
		"200 to anything":     {RemoteWrite2, &versions{unsupported: 200}, seconds.Cumulative},
		"415":                 {RemoteWrite2, &versions{unsupported: 415}, seconds.Cumulative},
		"204, without deltas": {RemoteWrite2Delta, &versions{unsupported: 204}, seconds.None},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedText
				s := tc.server
				c, n := s.serve(t, Options{Format: tc.format, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				s.check(t, c, tc.sums)
				noDeltas := tc.sums == seconds.None // the deltas of the first request were refused
				if n["push_samples_total"] != float64(len(s.stored)) ||
					(n["push_refused_samples_total"] > 0) != noDeltas {
					t.Errorf("%d samples were stored: %v", len(s.stored), n)
				}
				for _, name := range []string{"unconfirmed_samples", "resent_samples", "lost_seconds"} {
					if n["push_"+name+"_total"] != 0 {
						t.Errorf("%v", n)
					}
				}
				said := strings.Count(log.String(), "the server does not accept remote write 2.0")
				if (said == 1) == s.reads2 || (n["push_retries_total"] > 0) == s.reads2 {
					t.Errorf("logged %d times, %v:\n%s", said, n, log.String())
				}
				if older := slices.Contains(s.requests[2:], "0.1.0"); older == s.reads2 {
					t.Errorf("%q", s.requests)
				}
			})
		})
	}
}

// A request with an unknown result is resent in its version. If the server then turns out to read version 1.0 only, it
// receives the samples once.
func TestFallbackAfterAnUnclearAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &versions{unsupported: http.StatusNoContent, before: func(request int) *http.Response {
			if request > 2 {
				return nil
			}
			resp, _ := answer(http.StatusBadGateway, "")
			return resp
		}}
		c, n := s.serve(t, Options{Format: RemoteWrite2, Logger: slog.New(slog.DiscardHandler)})
		s.check(t, c, seconds.Cumulative)
		if n["push_samples_total"] != float64(len(s.stored)) ||
			n["push_refused_samples_total"]+n["push_lost_seconds_total"] != 0 {
			t.Errorf("%d samples were stored: %v", len(s.stored), n)
		}
	})
}

// Requests that were encoded before the first response are converted, too, and no part of a series is lost.
func TestWriteFallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &versions{unsupported: http.StatusNoContent}
		f := &table.Family{Name: "m", Type: table.Gauge}
		got, err := Write(t.Context(), Options{
			URL: "http://x", Labels: map[string]string{"job": "j", "instance": "i"}, Format: RemoteWrite2,
			Client: &http.Client{Transport: s}, Logger: slog.New(slog.DiscardHandler), MaxSamples: 20,
		}, func(sink seconds.Sink) error {
			for i := range 10 {
				sink.Series(f, []string{"resource"}, []string{fmt.Sprint(i)})
				for at := range int64(10) {
					sink.Value(100+at, float64(at))
				}
			}
			return nil
		})
		if err != nil || got != (WriteResult{Written: 100}) || len(s.stored) != 100 {
			t.Errorf("%+v, %v, %d stored", got, err, len(s.stored))
		}
		if want := []string{"2.0.0", "0.1.0", "0.1.0", "0.1.0", "0.1.0", "0.1.0"}; !slices.Equal(s.requests, want) {
			t.Errorf("%q", s.requests)
		}
	})
}

// After a fallback, encoders encode version 1.0 from their next request on, so that nothing needs to be converted.
func TestEncoderAfterAFallback(t *testing.T) {
	s := newSender(Options{Format: RemoteWrite2, MaxSamples: 10, Logger: slog.New(slog.DiscardHandler)}, maxWait)
	var formats []Format
	x := &splitter{
		sender:   s,
		Labelled: NewLabelled(nil, nil),
		done:     func(r *request) { formats = append(formats, r.format) },
	}
	for range 2 {
		x.Series(&table.Family{Name: "m"}, nil, nil)
		x.Value(100, 1)
		s.useVersion1.Store(true)
		x.finish()
	}
	if want := []Format{RemoteWrite2, remoteWrite{sums: seconds.Cumulative}}; !slices.Equal(formats, want) {
		t.Errorf("%v, want %v", formats, want)
	}
}

// The headers of the response say what the server stored, so every sample is counted once, also in requests of which
// the server stored a part.
func TestWrittenHeaders(t *testing.T) {
	const sent = 10
	written := func(samples string, more ...string) []string {
		return append([]string{"X-Prometheus-Remote-Write-Samples-Written", samples}, more...)
	}
	histogramsWritten := []string{"X-Prometheus-Remote-Write-Histograms-Written", "10"}
	all, half, none := totals{samples: 10}, totals{samples: 5, refused: 5}, totals{refused: 10}
	// The same after an earlier attempt with an unclear result.
	allAgain, halfAgain := totals{samples: 10, resent: 10}, totals{samples: 5, resent: 5, unconfirmed: 5}
	unknown := totals{unconfirmed: 10}
	sumOfTwo := written("4", "X-Prometheus-Remote-Write-Histograms-Written", "6")
	for name, tc := range map[string]struct {
		status  int
		header  []string
		body    string
		verdict verdict
		// The counters without and with an unclear earlier attempt.
		first, doubt totals
	}{
		"all":                    {204, written("10"), "", accepted, all, allAgain},
		"histograms":             {204, histogramsWritten, "", accepted, all, allAgain},
		"both":                   {200, sumOfTwo, "", accepted, all, allAgain},
		"more than were sent":    {204, written("11"), "", accepted, all, allAgain},
		"half":                   {204, written("5"), "", accepted, half, halfAgain},
		"half, 400":              {400, written("5"), "out of order sample", accepted, half, halfAgain},
		"all, but not exemplars": {400, written("10"), "out of order exemplar", accepted, all, allAgain},
		"none":                   {400, written("0"), "too old sample", refused, none, none},
		"none, duplicates":       {400, written("0"), "out of order sample", refused, none, unknown},
		"no header":              {400, nil, "too old sample", refused, none, none},
		"none, 200":              {200, written("0"), "", accepted, none, unknown},
	} {
		for doubt, want := range map[bool]totals{false: tc.first, true: tc.doubt} {
			t.Run(fmt.Sprint(name, ", doubt ", doubt), func(t *testing.T) {
				s := &versions{before: func(int) *http.Response {
					resp, _ := answer(tc.status, tc.body, tc.header...)
					return resp
				}}
				o := Options{
					Format: RemoteWrite2,
					URL:    "http://x",
					Client: &http.Client{Transport: s},
					Logger: slog.New(slog.DiscardHandler),
				}
				o.defaults()
				p := newSender(o, maxWait)
				r := &request{format: o.Format, body: []byte("x"), samples: sent, doubt: doubt}
				if !p.deliver(t.Context(), r) || len(s.requests) != 1 || p.useVersion1.Load() {
					t.Errorf("%v, %q", r.lastErr, s.requests)
				}
				if r.verdict != tc.verdict && (!doubt || r.verdict != unconfirmed) {
					t.Errorf("verdict %d, want %d", r.verdict, tc.verdict)
				}
				x := p.total
				got := totals{samples: x.samples, refused: x.refused, unconfirmed: x.unconfirmed, resent: x.resent}
				if got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		}
	}
}

// A server that stores half of each request has no sample twice, and the counters know both halves.
func TestServerThatStoresHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &versions{reads2: true, half: true}
		_, n := s.serve(t, Options{Format: RemoteWrite2, Logger: slog.New(slog.DiscardHandler)})
		for key, times := range s.stored {
			if times != 1 {
				t.Errorf("%s was stored %d times", key, times)
			}
		}
		stored, refused := n["push_samples_total"], n["push_refused_samples_total"]
		if stored != float64(len(s.stored)) || refused-stored < 0 || refused-stored > 60 ||
			n["push_retries_total"] != 0 {
			t.Errorf("%d samples were stored: %v", len(s.stored), n)
		}
	})
}

// A process with version 2.0 sends the seconds that an earlier process with version 1.0 left, and the other way round.
func TestUpgradeSendsTheBacklog(t *testing.T) {
	for name, formats := range map[string][]Format{
		"upgrade":   {RemoteWrite, RemoteWrite2},
		"downgrade": {RemoteWrite2, RemoteWrite},
		"deltas":    {RemoteWrite, RemoteWrite2Delta},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logs := metriclog.Options{
					Dir:      t.TempDir(),
					App:      "shop",
					Location: time.UTC,
					Logger:   slog.New(slog.DiscardHandler),
				}
				stored := map[string]int{}
				var called []int64 // seconds
				for i, format := range formats {
					last, err := metriclog.Last(logs)
					if err != nil {
						t.Fatal(err)
					}
					c, err := collector.New(collector.Options{After: last, RetireAfter: -1})
					if err != nil {
						t.Fatal(err)
					}
					w, err := metriclog.New(c, logs)
					if err != nil {
						t.Fatal(err)
					}
					s := &versions{reads2: format != RemoteWrite, unsupported: http.StatusUnsupportedMediaType}
					if i == 0 { // the server is away
						s.before = func(int) *http.Response {
							resp, _ := answer(http.StatusTooManyRequests, "")
							return resp
						}
					}
					p, err := New(c, Options{
						URL: "http://x", Labels: map[string]string{"job": "j", "instance": "i"}, Format: format, Log: w,
						Client: &http.Client{Transport: s}, Logger: logs.Logger, Drain: time.Second,
					})
					if err != nil {
						t.Fatal(err)
					}
					stopLog, stop := background.Start(w.Run), background.Start(p.Run)
					for range 20 {
						called = append(called, time.Now().Unix())
						c.Resource("a").Block("")
						time.Sleep(time.Second)
					}
					if err := stop(); err != nil {
						t.Error(err)
					}
					_ = stopLog()
					maps.Copy(stored, s.stored)
					files, _ := filepath.Glob(filepath.Join(logs.Dir, "*-push-*.json"))
					if len(files) != 1 {
						t.Errorf("positions: %q", files)
					}
				}
				for _, at := range called {
					key := fmt.Sprintf(`windowstat_persecond_block{instance="i",job="j",resource="a"} %d`, at)
					if stored[key] != 1 {
						t.Errorf("%s was stored %d times", key, stored[key])
					}
				}
			})
		})
	}
}
