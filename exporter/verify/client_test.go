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

// responses is a RoundTripper that returns the responses of a list in order, and then repeats the last one. It never
// responds for a nil entry.
type responses struct {
	list []func() (*http.Response, error)
	n    int
}

func (a *responses) RoundTrip(r *http.Request) (*http.Response, error) {
	f := a.list[min(a.n, len(a.list)-1)]
	if a.n++; f == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return f()
}

// response returns a response with a status, a body and a header, as names and values.
func response(status int, body string, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{
			StatusCode: status,
			Status:     fmt.Sprint(status, " ", http.StatusText(status)),
			Header:     h,
			Body:       io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestClient(t *testing.T) {
	ok := response(200, `{"status":"success","data":{"resultType":"matrix","result":[
		{"metric":{"a":"b"},"values":[[0,"9"],[0.5,"1"],[1.5,"NaN"],[2,"2"],[2.5,"9"]]}]}}`)
	data := func(result string) func() (*http.Response, error) {
		return response(200, `{"status":"success","data":`+result+`}`)
	}
	broken := func() (*http.Response, error) { return nil, errors.New("connection reset") }
	unlimited := func() (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(endless{})}, nil
	}
	type list = []func() (*http.Response, error)
	for name, tc := range map[string]struct {
		list     list
		requests int
		after    time.Duration // minimum total wait
		err      string
		tooLarge bool
		warning  string
	}{
		"success": {list: list{ok}, requests: 1},
		"retries": {
			list: list{broken, response(503, "busy"), ok}, requests: 3, after: 1500 * time.Millisecond,
		},
		"Retry-After": {
			list: list{response(429, "", "Retry-After", "7"), ok}, requests: 2, after: 7 * time.Second,
		},
		"Retry-After is limited": {
			list: list{response(429, "", "Retry-After", "999999"), ok}, requests: 2, after: time.Minute,
		},
		"unreachable": {
			list: list{broken}, requests: maxAttempts, after: 7 * time.Second, err: "http://s/x/api/v1/query: ",
		},
		"too many samples": {
			list: list{response(422, `{"error":"too many samples"}`)}, requests: 1,
			err: "422 Unprocessable Entity: too many samples", tooLarge: true,
		},
		"a timeout of the server": {
			list: list{response(503, `{"errorType":"timeout","error":"query timed out"}`)}, requests: 1,
			err: "query timed out", tooLarge: true,
		},
		"no response": {
			list: list{nil}, requests: 1, after: time.Minute, err: "no response in 1m0s", tooLarge: true,
		},
		"an endless response": {
			list: list{unlimited}, requests: 1, err: "more than 33554432 bytes", tooLarge: true,
		},
		"missing authorization": {
			list: list{response(401, "no\x1b[2J\n")}, requests: 1, err: `401 Unauthorized: no\x1b[2J`,
		},
		"a redirect": {
			list: list{response(302, "", "Location", "http://elsewhere/")}, requests: 1,
			err: "redirects are not followed",
		},
		"a web page": {list: list{response(200, "<html>")}, requests: 1, err: "check the URL"},
		"another type of result": {
			list: list{data(`{"resultType":"vector","result":[]}`)}, requests: 1, err: "not a matrix",
		},
		"invalid samples": {
			list: list{data(`{"resultType":"matrix","result":[{"values":[["x"]]}]}`)}, requests: 1,
			err: "invalid sample",
		},
		"a warning": {
			list:     list{data(`{"resultType":"matrix"},"warnings":["a store is away"]`)},
			requests: 1, warning: "a store is away",
		},
		"a partial response": {
			list:     list{response(200, `{"status":"success","isPartial":true,"data":{"resultType":"matrix"}}`)},
			requests: 1, warning: "the response is partial",
		},
		"an error with status 200": {
			list: list{response(200, `{"status":"error","error":"oh"}`)}, requests: 1, err: "oh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(Options{URL: "http://s/x/?token=hush", Timeout: time.Minute})
				server := &responses{list: tc.list}
				c.http.Transport = server
				begin := time.Now()
				series, err := c.samples(t.Context(), "{}", 1, 2)
				if tc.err == "" && err != nil || !strings.Contains(fmt.Sprint(err), tc.err) ||
					errors.Is(err, errTooLarge) != tc.tooLarge {
					t.Errorf("error %v, want %q, too large %v", err, tc.err, tc.tooLarge)
				}
				if strings.Contains(fmt.Sprint(err), "hush") {
					t.Errorf("the token of the URL is in %v", err)
				}
				if took := time.Since(begin); server.n != tc.requests || took < tc.after ||
					took > tc.after+2*time.Second {
					t.Errorf("%d requests in %v", server.n, took)
				}
				if tc.warning != "" && !c.warnings[tc.warning] {
					t.Errorf("warnings %v", c.warnings)
				}
				if tc.requests > 1 && tc.err == "" &&
					(len(series) != 1 || !slices.Equal(series[0].points, []point{{500, 1}, {2000, 2}})) {
					t.Errorf("%+v", series)
				}
			})
		})
	}
}

func TestOptions(t *testing.T) {
	err := Options{
		URL:     "http://u:p@x/api/v1/query",
		Labels:  map[string]string{"resource": "a", "__x": "b", "job": ""},
		Timeout: -1, Window: 48 * time.Hour,
	}.Check("1x")
	for _, want := range []string{
		"user information", `Labels: "resource"`, `Labels: "__x"`, `Labels: "job"`,
		"Timeout: -1ns", "Window: 48h", "1x",
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if err := (Options{URL: "http://x/api/v1/", Labels: map[string]string{"job": "a"}}).Check(""); err == nil {
		t.Error("no error for the URL of an endpoint")
	}
	if err := (Options{URL: "http://x/prometheus?a=b", Labels: map[string]string{"job": "a"}}).Check(""); err != nil {
		t.Error(err)
	}
}

// A Checker publishes the result of the last check and nothing before the first check. A check with a warning fails.
func TestChecker(t *testing.T) {
	r := newFixture(t)
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := r.options
	o.Delay, o.Window, o.Logger = time.Minute, time.Hour, slog.New(slog.DiscardHandler)
	if _, err := New(nil, r.gap, Options{}); err == nil {
		t.Error("no error without a Collector and options")
	}
	k, err := New(c, r.gap, o)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want ...string) { // missing seconds, checked seconds, errors
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
	expect("", "0", "0")
	k.check(t.Context())
	expect("0", "400", "0")
	r.drop(func(_ string, at int64) bool { return at == r.begin+9 })
	k.check(t.Context())
	expect("1", "800", "0")
	r.warnings = []string{"a store is away"}
	k.check(t.Context())
	expect("1", "800", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Run(ctx); err != nil {
		t.Error(err)
	}
	expect("", "", "")
}

// Any response results in an error or in samples of the requested seconds.
func FuzzSamples(f *testing.F) {
	f.Add(
		`{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":{"a":"b"},"values":[[1,"9"],[0.5,"NaN"]]}]}}`,
	)
	f.Add(
		`{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":null,"values":[[1e300,"+Inf"],["x"],[]]}]}}`,
	)
	f.Add(`{"status":"error","error":"\u001b[2J"}`)
	f.Fuzz(func(t *testing.T, body string) {
		c := newClient(Options{URL: "http://s", Timeout: time.Minute})
		c.http.Transport = &responses{list: []func() (*http.Response, error){response(200, body)}}
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

// A selector quotes labels with dots. VictoriaMetrics keeps such names from the attributes of an OTLP push.
func TestSelectorOfAttributes(t *testing.T) {
	labels := map[string]string{"job": "a\"b", "service.name": "a\"b"}
	if got, want := selector([]string{"m"}, labels), `{__name__=~"m",job="a\"b","service.name"="a\"b"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
