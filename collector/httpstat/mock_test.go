package httpstat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector/httpstat"
)

// roundTrip is a function that serves as a mock of http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Regression: a mock that returned a response without a Body, or no response, made the client panic, and the call
// stayed in flight forever. net/http treats a missing Body as an empty body if the length of the response allows it,
// and returns an error for a missing response.
func TestRegressionMocksWithoutABodyPanicked(t *testing.T) {
	errDown := errors.New("down")
	for name, tc := range map[string]struct {
		method string
		mock   http.Response
		none   bool
		err    error
		want   string // expected number of exceptions
	}{
		"no body":              {mock: http.Response{StatusCode: 200}, want: "0 exception"},
		"no body of a failure": {mock: http.Response{StatusCode: 500}, want: "1 exception"},
		"no body but a length": {mock: http.Response{StatusCode: 200, ContentLength: 3}, want: "1 exception"},
		"a length as HEAD wants": {
			method: "HEAD", mock: http.Response{StatusCode: 200, ContentLength: 3},
			want: "0 exception",
		},
		"NoBody":                   {mock: http.Response{StatusCode: 200, Body: http.NoBody}, want: "0 exception"},
		"no response and no error": {none: true, want: "1 exception"},
		"a response and an error":  {mock: http.Response{StatusCode: 200}, err: errDown, want: "1 exception"},
		"an error alone":           {none: true, err: errDown, want: "1 exception"},
	} {
		t.Run(name, func(t *testing.T) {
			mock := roundTrip(func(*http.Request) (*http.Response, error) {
				if tc.none {
					return nil, tc.err
				}
				resp := tc.mock
				return &resp, tc.err
			})
			send := func(rt http.RoundTripper) string {
				req, err := http.NewRequest(tc.method, "http://example.com/", nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := (&http.Client{Transport: rt}).Do(req)
				if err != nil {
					return strings.ReplaceAll(err.Error(), fmt.Sprintf("(%T)", rt), "(mock)")
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				return fmt.Sprintf("%d %q %v", resp.StatusCode, text, err)
			}
			c := newCollector(t)
			if got, bare := send(httpstat.Transport(c, func(*http.Request) string { return "a" },
				mock)), send(mock); got != bare {
				t.Errorf("with httpstat: %s\nwithout it: %s", got, bare)
			}
			want(t, c, map[string]string{"a": "1 pass, 1 complete, " + tc.want + ", 0 in flight"})
		})
	}
}

// brokenBody is a body whose methods call the functions read and close, which may panic or end the goroutine.
type brokenBody struct{ read, close func() }

func (b brokenBody) Read([]byte) (int, error) { b.read(); return 0, io.EOF }
func (b brokenBody) Close() error             { b.close(); return nil }

// Regression: a body that panicked in Close left its call in flight. A body that panicked in Read left its call in
// flight, too, if the caller did not close the body.
func TestRegressionBodiesThatPanicStayedInFlight(t *testing.T) {
	nothing := func() {}
	for way, end := range ways {
		for place, tc := range map[string]struct {
			trip, read, close func()
		}{
			"round trip": {end, nothing, nothing},
			"read":       {nothing, end, nothing},
			"close":      {nothing, nothing, end},
		} {
			t.Run(place+" "+way, func(t *testing.T) {
				c := newCollector(t)
				rt := httpstat.Transport(
					c,
					func(*http.Request) string { return "a" },
					roundTrip(func(*http.Request) (*http.Response, error) {
						tc.trip()
						return &http.Response{StatusCode: 200, Body: brokenBody{tc.read, tc.close}}, nil
					}),
				)
				got := alone(func() {
					resp, err := rt.RoundTrip(httptest.NewRequest("GET", "http://example.com/", nil))
					if err != nil {
						t.Error(err)
					}
					if place == "read" {
						_, _ = io.ReadAll(resp.Body)
					}
					_ = resp.Body.Close()
				})
				if way == "panic" && got != "boom" {
					t.Errorf("the panic that came out is %v", got)
				}
				want(t, c, map[string]string{"a": "1 pass, 1 complete, 1 exception, 0 in flight"})
			})
		}
	}
}

// Regression: if a mock returned the same response for each call, Transport modified this response. The body of the
// response got one more wrapper with each call.
func TestRegressionResponseOfMockWasModified(t *testing.T) {
	c := newCollector(t)
	own := &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("x"))}
	before := *own
	client := &http.Client{Transport: httpstat.Transport(c, func(*http.Request) string { return "a" }, roundTrip(
		func(*http.Request) (*http.Response, error) { return own, nil }))}
	for range 3 {
		resp, err := client.Get("http://example.com/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if !reflect.DeepEqual(*own, before) {
		t.Errorf("the response is %+v", *own)
	}
	want(t, c, map[string]string{"a": "3 pass, 3 complete, 0 exception, 0 in flight"})
}

// Regression: a request without a URL panicked. net/http returns an error in this case.
func TestRegressionARequestWithoutAURLPanicked(t *testing.T) {
	c := newCollector(t)
	_, got := httpstat.Transport(c, nil, nil).RoundTrip(new(http.Request))
	_, bare := http.DefaultTransport.RoundTrip(new(http.Request))
	if got == nil || got.Error() != bare.Error() {
		t.Errorf("%v, want %v", got, bare)
	}
	want(t, c, map[string]string{"GET": "1 pass, 1 complete, 1 exception, 0 in flight"})
}

// After a call has ended, its context can be used for another call, and its response body can be read and closed again.
// Neither changes the counts of the call that has ended.
func TestContextAndBodyAfterTheCall(t *testing.T) {
	c := newCollector(t)
	var kept context.Context
	h := httpstat.Route(c, "a", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { kept = r.Context() }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	resp, err := httpstat.Transport(
		c,
		func(*http.Request) string { return "b" },
		roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("x"))}, nil
		}),
	).RoundTrip(
		httptest.NewRequest("GET", "http://example.com/", nil).WithContext(kept),
	)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _ = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	want(
		t,
		c,
		map[string]string{
			"a": "1 pass, 1 complete, 0 exception, 0 in flight",
			"b": "1 pass, 1 complete, 0 exception, 0 in flight",
		},
	)
}
