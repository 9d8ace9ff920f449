package push

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/node"
)

// lineFormat is a Format with readable bodies.
type lineFormat struct{ plain }

func (lineFormat) name() string          { return "test" }
func (lineFormat) prepare(*http.Request) {}
func (lineFormat) encoder() encoder      { return newLines() }

// lines is an encoder with readable bodies.
type lines struct{ *text.Page }

func newLines() encoder {
	var p text.Pages
	return &lines{p.Get(text.Prometheus)}
}

func (l *lines) Reset() {
	var p text.Pages
	l.Page = p.Get(text.Prometheus)
}

func (l *lines) Body() []byte {
	var b bytes.Buffer
	_, _ = l.WriteTo(&b)
	return b.Bytes()
}

// receiver accepts samples as Prometheus does: it refuses a request as a whole if a sample is out of order. A test sets
// the functions that run before and after that.
type receiver struct {
	mu       sync.Mutex
	stored   map[string]float64 // by series and time
	latest   map[string]sample  // by series
	requests int
	before   func(r *http.Request) (*http.Response, error) // returns nil and nil to continue
	after    func(r *http.Request) (*http.Response, error)
}

func newReceiver() *receiver {
	return &receiver{stored: map[string]float64{}, latest: map[string]sample{}}
}

func answer(status int, body string, header ...string) (*http.Response, error) {
	resp := &http.Response{
		StatusCode: status,
		Status:     fmt.Sprint(status, " ", http.StatusText(status)),
		Header:     http.Header{},
		Body:       io.NopCloser(strings.NewReader(body)),
	}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp, nil
}

// RoundTrip implements http.RoundTripper.
func (s *receiver) RoundTrip(r *http.Request) (*http.Response, error) {
	defer func() { _ = r.Body.Close() }()
	s.mu.Lock()
	s.requests++
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if resp, err := before(r); resp != nil || err != nil {
			return resp, err
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	resp, err := s.store(body)
	if after != nil {
		if resp, err := after(r); resp != nil || err != nil {
			return resp, err
		}
	}
	return resp, err
}

func (s *receiver) store(body []byte) (*http.Response, error) {
	samples, err := parse(body)
	if err != nil {
		return answer(http.StatusBadRequest, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	latest := map[string]sample{}
	for _, x := range samples {
		last, ok := latest[x.series]
		if !ok {
			last = s.latest[x.series]
		}
		switch {
		case x.unix < last.unix:
			return answer(http.StatusBadRequest, "out of order sample\n")
		case x.unix == last.unix && x.value != last.value:
			return answer(http.StatusBadRequest, "duplicate sample for timestamp\n")
		}
		latest[x.series] = x
	}
	maps.Copy(s.latest, latest)
	for _, x := range samples {
		s.stored[x.series+" "+strconv.FormatInt(x.unix, 10)] = x.value
	}
	return answer(http.StatusNoContent, "")
}

// sample is a line of a body.
type sample struct {
	series string
	unix   int64
	value  float64
}

func parse(body []byte) (samples []sample, err error) {
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndex(line, "} ") + 1
		value, millis, _ := strings.Cut(strings.TrimSpace(line[i:]), " ")
		x := sample{series: line[:i]}
		if x.value, err = strconv.ParseFloat(value, 64); err != nil {
			return nil, err
		}
		if x.unix, err = strconv.ParseInt(millis, 10, 64); err != nil {
			return nil, err
		}
		x.unix /= 1000
		samples = append(samples, x)
	}
	return samples, nil
}

// job is a service that pushes.
type job struct {
	*collector.Collector
	*Pusher
	*receiver
	end *int64 // the second after the stop of the job
}

func newJob(t *testing.T, o Options) job {
	t.Helper()
	c, err := collector.New(collector.Options{Windows: node.Options{History: time.Minute}, RetireAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Logger = "http://x/push", slog.New(slog.DiscardHandler)
	o.Labels = map[string]string{"job": "j", "instance": "i"}
	o.Interval = max(o.Interval, time.Second)
	s := newReceiver()
	o.Format = lineFormat{}
	o.Client = &http.Client{Transport: s}
	p, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return job{c, p, s, new(int64)}
}

// run pushes under load for a duration, and ends.
func (j job) run(t *testing.T, d time.Duration) error {
	t.Helper()
	stop := background.Start(j.Run)
	random := rand.New(rand.NewPCG(1, 2))
	for end := time.Now().Add(d); time.Now().Before(end); {
		j.Resource(fmt.Sprint("r", random.IntN(5))).Block("")
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
	}
	*j.end = j.Seal().Open + 1
	return stop()
}

// check compares the stored samples with the counts, without the first lost seconds.
func (j job) check(t *testing.T, lost int64) {
	t.Helper()
	want := 0
	first := j.Tree().View().Node().Since() + lost
	for _, r := range j.Seal().Resources {
		for _, second := range r.View().Node().AppendSeconds(nil, 0, *j.end) {
			if second.Start.Unix() < first {
				continue
			}
			key := fmt.Sprintf(`windowstat_persecond_block{instance="i",job="j",resource=%q} %d`, r.Name(),
				second.Start.Unix())
			if v, ok := j.stored[key]; !ok || v != float64(second.Block) {
				t.Errorf("%s is %v (%t), want %d", key, v, ok, second.Block)
			}
			want++
		}
	}
	got := 0
	for key := range j.stored {
		if strings.HasPrefix(key, "windowstat_persecond_block{") {
			got++
		}
	}
	if got != want {
		t.Errorf("%d samples were stored, want %d", got, want)
	}
	if s := j.counts(); s["push_seconds_total"] != float64(*j.end-first) ||
		s["push_lost_seconds_total"] != float64(lost) {
		t.Errorf("%v", s)
	}
}

func (j job) counts() map[string]float64 {
	got := map[string]float64{}
	for _, m := range j.Pusher.metrics() {
		m.Each(func(v float64, _ ...string) { got[m.Name] = v })
	}
	return got
}

// Every second arrives once, including the last one, with any interval and request size.
func TestPush(t *testing.T) {
	for _, o := range []Options{
		{}, {Interval: 7 * time.Second}, {MaxSamples: 1}, {MaxSamples: 20, Interval: 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			j := newJob(t, o)
			if err := j.run(t, 30*time.Second); err != nil {
				t.Error(err)
			}
			j.check(t, 0)
		})
	}
}

// Network and server errors cause no missing and no refused samples.
func TestPushWithServerErrors(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	sometimes := func(f func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			if random.IntN(3) > 0 {
				return nil, nil
			}
			return f(r)
		}
	}
	for name, f := range map[string]func(*http.Request) (*http.Response, error){
		"500":          func(*http.Request) (*http.Response, error) { return answer(500, "oh\n  no") },
		"503 later":    func(*http.Request) (*http.Response, error) { return answer(503, "", "Retry-After", "2") },
		"429":          func(*http.Request) (*http.Response, error) { return answer(429, "", "Retry-After", "1") },
		"429 nonsense": func(*http.Request) (*http.Response, error) { return answer(429, "", "Retry-After", "-x") },
		"reset": func(*http.Request) (*http.Response, error) {
			return nil, errors.New("connection reset by peer")
		},
		"redirect": func(*http.Request) (*http.Response, error) { return answer(302, "", "Location", "http://y/") },
		"web page": func(*http.Request) (*http.Response, error) {
			return answer(200, "<html>", "Content-Type", "text/html; charset=utf-8")
		},
		"credentials": func(*http.Request) (*http.Response, error) { return answer(401, "who are you?") },
		"hangs": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
	} {
		for _, when := range []string{"before", "after"} {
			if when == "after" && (name == "redirect" || name == "web page" || name == "credentials" ||
				strings.HasPrefix(name, "429")) {
				continue // this response means that nothing was stored
			}
			t.Run(name+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j := newJob(t, Options{Timeout: 3 * time.Second, Drain: 30 * time.Second})
					if when == "before" {
						j.before = sometimes(f)
					} else {
						j.after = sometimes(f)
					}
					if err := j.run(t, 50*time.Second); err != nil {
						t.Error(err)
					}
					j.check(t, 0)
					if s := j.counts(); s["push_retries_total"] == 0 || s["push_refused_samples_total"] != 0 {
						t.Errorf("%v", s)
					}
				})
			})
		}
	}
}

// After an outage longer than the history the oldest seconds are dropped and counted, and the others arrive once.
func TestPushAfterLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{})
		down := time.Now().Add(100 * time.Second)
		j.before = func(*http.Request) (*http.Response, error) {
			if time.Now().Before(down) {
				return nil, errors.New("connection refused")
			}
			return nil, nil
		}
		if err := j.run(t, 130*time.Second); err != nil {
			t.Error(err)
		}
		s := j.counts()
		// The server was unreachable for 40 seconds more than the history covers. It receives an attempt within six
		// seconds after the outage.
		if s["push_lost_seconds_total"] < 38 || s["push_lost_seconds_total"] > 50 {
			t.Errorf("%v", s)
		}
		got := s["push_lost_seconds_total"] + s["push_seconds_total"] + s["push_lag_seconds"]
		if got != 131 && got != 132 {
			t.Errorf("%v seconds in total, want 131 or 132", got)
		}
		if s["push_refused_samples_total"] != 0 {
			t.Errorf("%v", s)
		}
	})
}

// Samples that the server refuses are given up, and later samples arrive.
func TestPushRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{})
		n := 0
		j.before = func(*http.Request) (*http.Response, error) {
			if n++; n%5 == 2 {
				return answer(422, "no")
			}
			return nil, nil
		}
		if err := j.run(t, 20*time.Second); err != nil {
			t.Error(err)
		}
		s := j.counts()
		if s["push_refused_samples_total"] == 0 || s["push_lag_seconds"] > 1 || s["push_retries_total"] != 0 {
			t.Errorf("%v", s)
		}
		if int(s["push_samples_total"]) != len(j.stored) {
			t.Errorf("%v samples counted, %d stored", s["push_samples_total"], len(j.stored))
		}
	})
}

// Run ends even if the server does not respond, and its error reports the unsent seconds.
func TestPushEndsWithoutAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{Drain: 5 * time.Second})
		j.before = func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		began := time.Now()
		if err := j.run(t, 3*time.Second); err == nil || !strings.Contains(err.Error(), "cannot send 4 seconds") {
			t.Error(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Recording never waits for a hanging receiver, and memory does not grow.
func TestPushDoesNotBlockRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{})
		j.before = func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		stop := background.Start(j.Run)
		began := time.Now()
		for range 10_000 {
			j.Resource("a").Block("")
		}
		if took := time.Since(began); took != 0 { // in synthetic time
			t.Errorf("recording waited for %v", took)
		}
		_ = stop()
	})
}

func TestOptionsOfPush(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	good := Options{URL: "http://x/", Labels: map[string]string{"job": "a", "instance": "b"}}
	if _, err := New(c, good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		"is not http://":            func(o *Options) { o.URL = "x:1" },
		"with a host":               func(o *Options) { o.URL = "http:///x" },
		"invalid control character": func(o *Options) { o.URL = "http://x/\n" },
		"which belongs in Client":   func(o *Options) { o.URL = "http://a:b@x/" },
		"no job":                    func(o *Options) { o.Labels = map[string]string{"instance": "b"} },
		`Labels: "a-b"`: func(o *Options) {
			o.Labels = map[string]string{"job": "a", "instance": "b", "a-b": ""}
		},
		`Labels: "__name__"`: func(o *Options) {
			o.Labels = map[string]string{"job": "a", "instance": "b", "__name__": ""}
		},
		`Labels: "resource"`: func(o *Options) {
			o.Labels = map[string]string{"job": "a", "instance": "b", "resource": ""}
		},
		"Interval: 1.5s; must be whole": func(o *Options) { o.Interval = 1500 * time.Millisecond },
		"at most half of the history":   func(o *Options) { o.Interval = 6 * time.Minute },
		"Timeout: -1s":                  func(o *Options) { o.Timeout = -time.Second },
		"MaxSamples: -1":                func(o *Options) { o.MaxSamples = -1 },
		"Metrics: \"x\"":                func(o *Options) { o.Metrics = []string{"x"} },
		"Namespace: \"1\"":              func(o *Options) { o.Namespace = "1" },
	} {
		o := good
		change(&o)
		if _, err := New(c, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := New(nil, Options{}); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Error(err)
	}
}

// A label of a series is renamed if all series get a label with the same name.
func TestCollidingLabels(t *testing.T) {
	l := NewLabelled(RemoteWrite.encoder(), map[string]string{"job": "j", "instance": "i"})
	for range 2 {
		l.Series(new(table.Family), []string{"a", "instance", "z"}, []string{"1", "2", "3"})
		if got := fmt.Sprint(l.names, l.values); got != "[a exported_instance instance job z] [1 2 i j 3]" {
			t.Error(got)
		}
	}
	l.Series(new(table.Family), []string{"exported_job", "job"}, []string{"1", "2"})
	if got := fmt.Sprint(l.names, l.values); got != "[exported_exported_job exported_job instance job] [2 1 i j]" {
		t.Error(got)
	}
}

// With a server that is too slow, the oldest seconds are dropped and counted, and no counter decreases.
func TestPushToSlowServer(t *testing.T) {
	for _, samples := range []int{1, 5, 10} {
		synctest.Test(t, func(t *testing.T) {
			j := newJob(t, Options{MaxSamples: samples, Drain: time.Second})
			j.before = func(r *http.Request) (*http.Response, error) {
				select {
				case <-time.After(4 * time.Second):
				case <-r.Context().Done():
				}
				return nil, r.Context().Err()
			}
			before := map[string]float64{}
			stop := background.Start(j.Run)
			for range 150 {
				j.Resource("a").Block("")
				j.Resource("b").Block("")
				time.Sleep(time.Second)
				now := j.counts()
				for name, v := range before {
					if strings.HasSuffix(name, "_total") && now[name] < v {
						t.Fatalf("%s went from %v to %v", name, v, now[name])
					}
				}
				before = now
			}
			_ = stop()
			s := j.counts()
			if sum := s["push_seconds_total"] + s["push_lost_seconds_total"]; sum < 150 || sum > 153 ||
				s["push_refused_samples_total"] != 0 {
				t.Errorf("%v", s)
			}
		})
	}
}

// The Pusher drops a request that always gets 500 and counts it as unconfirmed. Later requests arrive.
func TestPushGivesUpAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{})
		j.before = func(*http.Request) (*http.Response, error) {
			if j.requests <= maxErrors+1 {
				return answer(500, "label name is not unique")
			}
			return nil, nil
		}
		if err := j.run(t, 200*time.Second); err != nil {
			t.Error(err)
		}
		if s := j.counts(); s["push_unconfirmed_samples_total"] == 0 || s["push_refused_samples_total"] != 0 ||
			s["push_lag_seconds"] > 1 {
			t.Errorf("%v", s)
		}
	})
}

// When a job ends during a request, it waits for the request and does not send it twice.
func TestPushEndsDuringRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{})
		j.before = func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(900 * time.Millisecond):
			case <-r.Context().Done():
			}
			return nil, nil // the request arrives, even if the client no longer waits for the response
		}
		j.after = func(r *http.Request) (*http.Response, error) { return nil, r.Context().Err() }
		if err := j.run(t, 10*time.Second+500*time.Millisecond); err != nil {
			t.Error(err)
		}
		j.check(t, 0)
		if s := j.counts(); s["push_retries_total"] != 0 || j.requests > int(s["push_seconds_total"]) {
			t.Errorf("%d requests, %v", j.requests, s)
		}
	})
}
