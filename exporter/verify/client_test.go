package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// answers is a server that gives one after the other, and then the last one again; nil is silence.
type answers struct {
	list []func() (*http.Response, error)
	n    int
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	f := a.list[min(a.n, len(a.list)-1)]
	if a.n++; f == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return f()
}

func answer(status int, body string, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// endless is a body that does not end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestClient(t *testing.T) {
	well := answer(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[0,"9"],[0.5,"1"],[1.5,"NaN"],[2,"2"],[2.5,"9"]]}]}}`)
	broken := func() (*http.Response, error) { return nil, errors.New("connection reset") }
	for name, tc := range map[string]struct {
		list    []func() (*http.Response, error)
		n       int
		after   time.Duration // at least
		says    string        // of the error
		tooMuch bool
		warns   string
	}{
		"all is well":       {list: []func() (*http.Response, error){well}, n: 1},
		"again":             {list: []func() (*http.Response, error){broken, answer(503, "busy"), well}, n: 3, after: 1500 * time.Millisecond},
		"when it says":      {list: []func() (*http.Response, error){answer(429, "", "Retry-After", "7"), well}, n: 2, after: 7 * time.Second},
		"not for ever":      {list: []func() (*http.Response, error){answer(429, "", "Retry-After", "999999"), well}, n: 2, after: time.Minute},
		"away":              {list: []func() (*http.Response, error){broken}, n: maxAttempts, after: 7 * time.Second, says: "http://s/x/api/v1/query: "},
		"too many samples":  {list: []func() (*http.Response, error){answer(422, `{"error":"too many samples"}`)}, n: 1, says: "422 Unprocessable Entity: too many samples", tooMuch: true},
		"it takes too long": {list: []func() (*http.Response, error){answer(503, `{"errorType":"timeout","error":"query timed out"}`)}, n: 1, says: "query timed out", tooMuch: true},
		"it says nothing":   {list: []func() (*http.Response, error){nil}, n: 1, after: time.Minute, says: "no response in 1m0s", tooMuch: true},
		"it does not end": {list: []func() (*http.Response, error){func() (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(endless{})}, nil
		}}, n: 1, says: "more than 33554432 bytes", tooMuch: true},
		"not for us":         {list: []func() (*http.Response, error){answer(401, "no\x1b[2J\n")}, n: 1, says: `401 Unauthorized: no\x1b[2J`},
		"a redirect":         {list: []func() (*http.Response, error){answer(302, "", "Location", "http://elsewhere/")}, n: 1, says: "redirects are not followed"},
		"a web page":         {list: []func() (*http.Response, error){answer(200, "<html>")}, n: 1, says: "check the URL"},
		"another kind":       {list: []func() (*http.Response, error){answer(200, `{"status":"success","data":{"resultType":"vector","result":[]}}`)}, n: 1, says: "not a matrix"},
		"strange samples":    {list: []func() (*http.Response, error){answer(200, `{"status":"success","data":{"resultType":"matrix","result":[{"values":[["x"]]}]}}`)}, n: 1, says: "invalid sample"},
		"a warning":          {list: []func() (*http.Response, error){answer(200, `{"status":"success","data":{"resultType":"matrix"},"warnings":["a store is away"]}`)}, n: 1, warns: "a store is away"},
		"a part":             {list: []func() (*http.Response, error){answer(200, `{"status":"success","isPartial":true,"data":{"resultType":"matrix"}}`)}, n: 1, warns: "the response is partial"},
		"status of an error": {list: []func() (*http.Response, error){answer(200, `{"status":"error","error":"oh"}`)}, n: 1, says: "oh"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(Options{URL: "http://s/x/?token=hush", Timeout: time.Minute})
				server := &answers{list: tc.list}
				c.http.Transport = server
				begin := time.Now()
				series, err := c.samples(t.Context(), "{}", 1, 2)
				if tc.says == "" && err != nil || !strings.Contains(fmt.Sprint(err), tc.says) || errors.Is(err, errTooLarge) != tc.tooMuch || strings.Contains(fmt.Sprint(err), "hush") {
					t.Errorf("%v", err)
				}
				if server.n != tc.n || time.Since(begin) < tc.after || time.Since(begin) > tc.after+2*time.Second {
					t.Errorf("%d requests in %v", server.n, time.Since(begin))
				}
				if tc.warns != "" && !c.warnings[tc.warns] {
					t.Errorf("warnings %v", c.warnings)
				}
				if tc.n > 1 && tc.says == "" && (len(series) != 1 || !slices.Equal(series[0].points, []point{{500, 1}, {2000, 2}})) {
					t.Errorf("%+v", series)
				}
			})
		})
	}
}

func TestOptions(t *testing.T) {
	err := Options{
		URL: "http://u:p@x/api/v1/query", Labels: map[string]string{"resource": "a", "__x": "b", "job": ""}, Timeout: -1, Window: 48 * time.Hour,
	}.Check("1x")
	for _, want := range []string{"user information", `Labels: "resource"`, `Labels: "__x"`, `Labels: "job"`, "Timeout: -1ns", "Window: 48h", "1x"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if err := (Options{URL: "http://x/api/v1/", Labels: map[string]string{"job": "a"}}).Check(""); err == nil {
		t.Error("a URL of an endpoint")
	}
	if err := (Options{URL: "http://x/prometheus?a=b", Labels: map[string]string{"job": "a"}}).Check(""); err != nil {
		t.Error(err)
	}
}

// A Checker shows what the last check found, and nothing before the first one; an uncertain one is an error.
func TestChecker(t *testing.T) {
	r := newFixture(t)
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := r.options
	o.Delay, o.Window, o.Logger = time.Minute, time.Hour, slog.New(slog.DiscardHandler)
	if _, err := New(nil, r.gap, Options{}); err == nil {
		t.Error("no Collector and no options")
	}
	k, err := New(c, r.gap, o)
	if err != nil {
		t.Fatal(err)
	}
	shows := func(want ...string) { // missing, checked, failed
		t.Helper()
		got := make([]string, len(want))
		for _, m := range c.Metrics() {
			m.Each(func(v float64, labels ...string) {
				for i, name := range []string{"missing_seconds", "checked_seconds_total", "check_errors_total"} {
					if m.Name == "database_"+name && labels[0] == o.URL {
						got[i] = fmt.Sprint(v)
					}
				}
			})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	shows("", "0", "0")
	k.check(t.Context())
	shows("0", "400", "0")
	r.drop(func(_ string, at int64) bool { return at == r.begin+9 })
	k.check(t.Context())
	shows("1", "800", "0")
	r.warnings = []string{"a store is away"}
	k.check(t.Context())
	shows("1", "800", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Run(ctx); err != nil {
		t.Error(err)
	}
	shows("", "", "")
}

// Whatever a server sends is samples within the seconds that were asked for, or an error.
func FuzzSamples(f *testing.F) {
	f.Add(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1,"9"],[0.5,"NaN"]]}]}}`)
	f.Add(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":null,"values":[[1e300,"+Inf"],["x"],[]]}]}}`)
	f.Add(`{"status":"error","error":"\u001b[2J"}`)
	f.Fuzz(func(t *testing.T, body string) {
		c := newClient(Options{URL: "http://s", Timeout: time.Minute})
		c.http.Transport = &answers{list: []func() (*http.Response, error){answer(200, body)}}
		series, err := c.samples(t.Context(), "{}", 1, 2)
		if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
			t.Errorf("%q", err)
		}
		for _, s := range series {
			for _, p := range s.points {
				if p.at <= 0 || p.at > 2000 || math.IsNaN(p.value) {
					t.Errorf("%+v", p)
				}
			}
		}
	})
}

// The attributes that VictoriaMetrics keeps as labels of what came by OTLP are quoted in a selector.
func TestSelectorOfAttributes(t *testing.T) {
	labels := map[string]string{"job": "a\"b", "service.name": "a\"b"}
	if got, want := selector([]string{"m"}, labels), `{__name__=~"m",job="a\"b","service.name"="a\"b"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
