package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"
)

func (s *server) get(path string, parameters url.Values) (body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*catchUp)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if body, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, body)
	}
	return body, err
}

// A sample is a value at a Unix time in milliseconds.
type sample struct {
	at    int64
	value float64
}

// UnmarshalJSON decodes a sample such as [1700000000.5, "12"].
func (s *sample) UnmarshalJSON(b []byte) error {
	var at float64
	var value string
	if err := json.Unmarshal(b, &[]any{&at, &value}); err != nil {
		return err
	}
	var err error
	s.at = int64(at*1000 + 0.5)
	s.value, err = strconv.ParseFloat(value, 64)
	return err
}

// A series is an element of a response: a series of a vector has a value, a series of a range selector all its samples.
type series struct {
	Metric map[string]string
	Value  sample
	Values []sample
}

// query evaluates an expression at the current time.
func (s *server) query(t *testing.T, expression string) []series {
	t.Helper()
	return s.queryAt(t, expression, float64(time.Now().Unix()))
}

// queryAt evaluates an expression at a Unix time.
func (s *server) queryAt(t *testing.T, expression string, at float64) []series {
	t.Helper()
	return s.ask(t, "/api/v1/query", url.Values{"query": {expression}, "time": {strconv.FormatFloat(at, 'f', -1, 64)}})
}

// queryRange evaluates an expression as a graph does: every step seconds between the Unix times from and to.
func (s *server) queryRange(t *testing.T, expression string, from, to, step int64) []series {
	t.Helper()
	number := func(n int64) []string { return []string{strconv.FormatInt(n, 10)} }
	return s.ask(t, "/api/v1/query_range",
		url.Values{"query": {expression}, "start": number(from), "end": number(to), "step": number(step)})
}

func (s *server) ask(t *testing.T, path string, parameters url.Values) []series {
	t.Helper()
	parameters.Set("nocache", "1")
	body, err := s.get(s.queries+path, parameters)
	if err != nil {
		t.Fatalf("%s: %s: %v", s.name, parameters, err)
	}
	var answer struct {
		Data struct{ Result []series }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%s: %s: %v\n%s", s.name, parameters, err, body)
	}
	return answer.Data.Result
}

// number returns the value of an expression whose result is a single number.
func (s *server) number(t *testing.T, expression string) float64 {
	t.Helper()
	result := s.query(t, expression)
	if len(result) != 1 {
		t.Fatalf("%s: %s has %d results", s.name, expression, len(result))
	}
	return result[0].Value.value
}
