package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/httpclient"
	"github.com/windowstat/windowstat/internal/redact"
)

// client sends requests to the query API of Prometheus. Concurrent calls are not allowed.
type client struct {
	base     *url.URL
	http     *http.Client
	timeout  time.Duration
	warnings map[string]bool // of the server, in all responses
	body     bytes.Buffer    // of the last response; reused
}

// newClient returns a client. The options must be valid.
func newClient(o Options) *client {
	base, _ := url.Parse(o.URL)
	return &client{base: base, http: httpclient.New(o.Client, 1), timeout: o.Timeout, warnings: map[string]bool{}}
}

// errTooLarge is the error for a query that may succeed with a shorter range.
var errTooLarge = errors.New("the query is too large")

// bisect calls f for a range of seconds. If f returns errTooLarge, bisect calls f for both halves of the range, down to
// single seconds.
func bisect(from, to int64, f func(from, to int64) error) error {
	err := f(from, to)
	if !errors.Is(err, errTooLarge) || from >= to {
		return err
	}
	middle := from + (to-from)/2
	if err = bisect(from, middle, f); err == nil {
		err = bisect(middle+1, to, f)
	}
	return err
}

const (
	maxBody     = 32 << 20 // bytes of a response
	maxAttempts = 5
	minWait     = 500 * time.Millisecond // before the second attempt; doubles for each further one
	maxWarnings = 10                     // that are kept
)

// get requests an endpoint and decodes the data of the response. It retries if the server is busy or unreachable, after
// at least the time in Retry-After.
func (c *client) get(ctx context.Context, path string, parameters url.Values, data any) error {
	u := c.base.JoinPath("api/v1", path)
	// Keep the query parameters of Options.URL, which a proxy may need.
	query := u.Query()
	maps.Copy(query, parameters)
	u.RawQuery = query.Encode()
	for attempt, wait := 1, minWait; ; attempt, wait = attempt+1, 2*wait {
		retry, after, err := c.attempt(ctx, u, data)
		switch {
		case err == nil:
			return nil
		case !retry || attempt == maxAttempts:
			return fmt.Errorf("%s: %w", redact.URL(u.String()), err)
		case !background.Sleep(ctx, max(wait, after)):
			return errors.Join(ctx.Err(), err)
		}
	}
}

// attempt sends one request:
//
//	response                                            result
//	no response within Options.Timeout                  errTooLarge
//	connection error                                    retry
//	more than maxBody bytes                             errTooLarge
//	422, 413, or an error of the type timeout           errTooLarge
//	429 or 5xx                                          retry, after the time in Retry-After
//	3xx and other codes than 2xx                        error
//	2xx that is not a successful response of the API    error
//	2xx                                                 data; warnings are added to c.warnings
//
// It reports whether a retry may succeed, and the minimum wait before it.
func (c *client) attempt(ctx context.Context, u *url.URL, data any) (retry bool, after time.Duration, err error) {
	attempt, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(attempt, http.MethodGet, u.String(), nil)
	if err != nil {
		return false, 0, err
	}
	r.Header.Set("User-Agent", httpclient.UserAgent())
	resp, err := c.http.Do(r)
	c.body.Reset()
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		_, err = c.body.ReadFrom(io.LimitReader(resp.Body, maxBody+1))
	}
	body := c.body.Bytes()
	switch {
	case err != nil && attempt.Err() != nil && ctx.Err() == nil: // the timeout of this request
		return false, 0, fmt.Errorf("no response in %v; perhaps %w", c.timeout, errTooLarge)
	case err != nil:
		return ctx.Err() == nil, 0, redact.Error(err)
	case len(body) > maxBody:
		return false, 0, fmt.Errorf("%w: the response has more than %d bytes", errTooLarge, maxBody)
	}
	var response struct {
		Status, Error, ErrorType string
		Data                     any
		Warnings                 []string
		IsPartial                bool // VictoriaMetrics
	}
	code := resp.StatusCode
	if code/100 == 2 { // another response may be followed by a retry, which must find data empty
		response.Data = data
	}
	decodeErr := json.Unmarshal(body, &response)
	// The server is not trusted: errors and warnings must not contain control characters or the credentials of the URL.
	excerpt := func(text string) string { return redact.Excerpt(text, resp, c.base.String()) }
	response.Error = cmp.Or(response.Error, string(body[:min(len(body), 4<<10)]))
	refused := func() error { return fmt.Errorf("%d %s: %s", code, http.StatusText(code), excerpt(response.Error)) }
	tooLarge := code == http.StatusUnprocessableEntity || code == http.StatusRequestEntityTooLarge ||
		code/100 != 2 && response.ErrorType == "timeout"
	// A query that is too large can be divided, and a busy server can be queried again. The user must fix other errors.
	switch {
	case tooLarge:
		return false, 0, fmt.Errorf("%w: %w", errTooLarge, refused())
	case code == http.StatusTooManyRequests, code/100 == 5:
		return true, httpclient.RetryAfter(resp.Header), refused()
	case code/100 == 3:
		return false, 0, fmt.Errorf("%w; redirects are not followed; use the URL that they lead to", refused())
	case code/100 != 2:
		return false, 0, refused()
	case response.Status != "success":
		return false, 0, fmt.Errorf("not a query API of Prometheus; check the URL: %s", excerpt(response.Error))
	case decodeErr != nil:
		return false, 0, fmt.Errorf("not a query API of Prometheus; check the URL: %w", redact.Error(decodeErr))
	}
	if response.IsPartial {
		response.Warnings = append(response.Warnings, "the response is partial")
	}
	for _, warning := range response.Warnings {
		if len(c.warnings) < maxWarnings {
			c.warnings[excerpt(warning)] = true
		}
	}
	return false, 0, nil
}

// stored is a series of the database.
type stored struct {
	key
	labels map[string]string // without the labels in key, so the labels of the instance
	points []point
}

// newStored returns a series with the given labels and points. It modifies and keeps labels.
func newStored(labels map[string]string, points []point) stored {
	s := stored{key{labels["resource"], labels["__name__"]}, labels, points}
	delete(labels, "resource")
	delete(labels, "__name__")
	return s
}

// point is a sample of the database.
type point struct {
	at    int64 // Unix time in milliseconds
	value float64
}

// UnmarshalJSON implements json.Unmarshaler. The API writes a sample as [1700000000.5, "12"].
func (p *point) UnmarshalJSON(b []byte) error {
	at, value, ok := strings.Cut(strings.Trim(string(b), "[] \n\t"), ",")
	seconds, err := strconv.ParseFloat(strings.TrimSpace(at), 64)
	v, e := strconv.ParseFloat(strings.Trim(value, `" `), 64)
	if !ok || err != nil || e != nil || math.Abs(seconds) > 1e15 {
		return fmt.Errorf("invalid sample %.50q", b)
	}
	p.at, p.value = int64(math.Round(seconds*1000)), v
	return nil
}

// samples returns the samples of the seconds in [from, to], without NaN and stale markers. Prometheus 2 includes the
// beginning of a range, and later versions exclude it. The range of the query begins a millisecond after the second
// from-1, where no second begins, so both versions return the same samples.
func (c *client) samples(ctx context.Context, selector string, from, to int64) ([]stored, error) {
	series, err := c.query(ctx, selector+rangeSelector(from, to), to, "matrix")
	for i := range series {
		series[i].points = slices.DeleteFunc(series[i].points, func(p point) bool {
			return p.at <= (from-1)*1000 || p.at > to*1000 || math.IsNaN(p.value) // do not trust the database
		})
	}
	return series, err
}

// rangeSelector returns the PromQL range that covers the seconds in [from, to] if the query is evaluated at to.
func rangeSelector(from, to int64) string { return fmt.Sprintf("[%dms]", (to-from)*1000+999) }

// queryResult is the data of a query response. Values is empty for a vector, whose value is not decoded.
type queryResult struct {
	ResultType string
	Result     []struct {
		Metric map[string]string
		Values []point
	}
}

// query evaluates an expression at a Unix time. The result must have the given type.
func (c *client) query(ctx context.Context, expression string, at int64, resultType string) ([]stored, error) {
	var data queryResult
	parameters := url.Values{"query": {expression}, "time": {unixTime(at)}, "timeout": {c.timeout.String()}}
	err := c.get(ctx, "query", parameters, &data)
	if err == nil && data.ResultType != resultType {
		err = fmt.Errorf("%s: the response is not a %s", redact.URL(c.base.String()), resultType)
	}
	var series []stored
	for _, x := range data.Result {
		series = append(series, newStored(x.Metric, x.Values))
	}
	return series, err
}

// labelValues returns the values of a label of the selected series. Like series, it may also return values of series
// that have no samples in [from, to].
func (c *client) labelValues(ctx context.Context, label, selector string, from, to int64) (values []string, err error) {
	err = c.get(ctx, "label/"+label+"/values", seriesParameters(selector, from, to), &values)
	return values, err
}

// series returns the labels of the selected series that may have samples in [from, to], without the samples.
func (c *client) series(ctx context.Context, selector string, from, to int64) (series []stored, err error) {
	var all []map[string]string
	err = c.get(ctx, "series", seriesParameters(selector, from, to), &all)
	for _, labels := range all {
		series = append(series, newStored(labels, nil))
	}
	return series, err
}

// seriesParameters returns the parameters of a request about series.
func seriesParameters(selector string, from, to int64) url.Values {
	return url.Values{"match[]": {selector}, "start": {unixTime(from)}, "end": {unixTime(to)}}
}

// unixTime formats a time for the API.
func unixTime(at int64) string { return strconv.FormatInt(at, 10) }
