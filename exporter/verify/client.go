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

// client asks the query API of Prometheus.
type client struct {
	base    *url.URL
	http    *http.Client
	timeout time.Duration
	warned  map[string]bool // by the server
	body    bytes.Buffer    // of the last response
}

// newClient makes one of options that were checked.
func newClient(o Options) *client {
	base, _ := url.Parse(o.URL)
	return &client{base: base, http: httpclient.New(o.Client, 1), timeout: o.Timeout, warned: map[string]bool{}}
}

// errTooMuch is the error for a response that may come if less is asked for.
var errTooMuch = errors.New("too much at a time")

// divided calls f for a range of seconds, and for the halves of one that is too much.
func divided(from, to int64, f func(from, to int64) error) error {
	err := f(from, to)
	if !errors.Is(err, errTooMuch) || from >= to {
		return err
	}
	middle := from + (to-from)/2
	if err = divided(from, middle, f); err == nil {
		err = divided(middle+1, to, f)
	}
	return err
}

const (
	maxBody     = 32 << 20
	maxAttempts = 5
	minWait     = 500 * time.Millisecond
	maxWarnings = 10
)

// get asks an endpoint for its data, and again if the server is busy.
func (c *client) get(ctx context.Context, path string, parameters url.Values, data any) error {
	u := c.base.JoinPath("api/v1", path)
	query := u.Query()
	maps.Copy(query, parameters)
	u.RawQuery = query.Encode()
	for attempt, wait := 1, minWait; ; attempt, wait = attempt+1, 2*wait {
		again, after, err := c.attempt(ctx, u, data)
		switch {
		case err == nil:
			return nil
		case !again || attempt == maxAttempts:
			return fmt.Errorf("%s: %w", redact.URL(u.String()), err)
		case !background.Sleep(ctx, max(wait, after)):
			return errors.Join(ctx.Err(), err)
		}
	}
}

// attempt asks once. It reports whether to ask again, and not before which wait.
func (c *client) attempt(ctx context.Context, u *url.URL, data any) (again bool, after time.Duration, err error) {
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
	case err != nil && attempt.Err() != nil && ctx.Err() == nil:
		return false, 0, fmt.Errorf("no response in %v; perhaps %w", c.timeout, errTooMuch)
	case err != nil:
		return ctx.Err() == nil, 0, redact.Error(err)
	case len(body) > maxBody:
		return false, 0, fmt.Errorf("%w: the response has more than %d bytes", errTooMuch, maxBody)
	}
	var answer struct {
		Status, Error, ErrorType string
		Data                     any
		Warnings                 []string
		IsPartial                bool // VictoriaMetrics
	}
	code := resp.StatusCode
	if code/100 == 2 { // others may be asked again, and data is decoded once
		answer.Data = data
	}
	decoded := json.Unmarshal(body, &answer)
	excerpt := func(text string) string { return redact.Excerpt(text, resp, c.base.String()) }
	answer.Error = cmp.Or(answer.Error, string(body[:min(len(body), 4<<10)]))
	refused := func() error { return fmt.Errorf("%d %s: %s", code, http.StatusText(code), excerpt(answer.Error)) }
	// Too much at a time is what can be divided, a busy server is asked again, and everything else is for a person to mend.
	switch {
	case code == http.StatusUnprocessableEntity, code == http.StatusRequestEntityTooLarge, code/100 != 2 && answer.ErrorType == "timeout":
		return false, 0, fmt.Errorf("%w: %w", errTooMuch, refused())
	case code == http.StatusTooManyRequests, code/100 == 5:
		return true, httpclient.RetryAfter(resp.Header), refused()
	case code/100 == 3:
		return false, 0, fmt.Errorf("%w; redirects are not followed: give the URL that they lead to", refused())
	case code/100 != 2:
		return false, 0, refused()
	case answer.Status != "success":
		return false, 0, fmt.Errorf("the response is not that of a query API; check the URL: %s", excerpt(answer.Error))
	case decoded != nil:
		return false, 0, fmt.Errorf("the response is not that of a query API; check the URL: %w", redact.Error(decoded))
	}
	if answer.IsPartial {
		answer.Warnings = append(answer.Warnings, "the response is partial")
	}
	for _, warning := range answer.Warnings {
		if len(c.warned) < maxWarnings {
			c.warned[excerpt(warning)] = true
		}
	}
	return false, 0, nil
}

// stored is a series of the database.
type stored struct {
	key
	labels map[string]string // beside those of the key: of the instance
	points []point
}

func newStored(labels map[string]string, points []point) stored {
	s := stored{key{labels["resource"], labels["__name__"]}, labels, points}
	delete(labels, "resource")
	delete(labels, "__name__")
	return s
}

// point is a sample with its time in milliseconds.
type point struct {
	at    int64
	value float64
}

// UnmarshalJSON reads [1700000000.5, "12"].
func (p *point) UnmarshalJSON(b []byte) error {
	at, value, ok := strings.Cut(strings.Trim(string(b), "[] \n\t"), ",")
	seconds, err := strconv.ParseFloat(strings.TrimSpace(at), 64)
	v, e := strconv.ParseFloat(strings.Trim(value, `" `), 64)
	if !ok || err != nil || e != nil || math.Abs(seconds) > 1e15 {
		return fmt.Errorf("%.50q is no sample", b)
	}
	p.at, p.value = int64(math.Round(seconds*1000)), v
	return nil
}

// samples returns the samples of the seconds from and to, Unix times, and of those between, without NaN and stale markers. The
// range of a query is closed in Prometheus 2 and open to the left later; this one begins a millisecond after the second before.
func (c *client) samples(ctx context.Context, selector string, from, to int64) ([]stored, error) {
	series, err := c.query(ctx, selector+window(from, to), to, "matrix")
	for i := range series {
		series[i].points = slices.DeleteFunc(series[i].points, func(p point) bool {
			return p.at <= (from-1)*1000 || p.at > to*1000 || math.IsNaN(p.value) // whatever the database says
		})
	}
	return series, err
}

// window is the range of an expression as of the second to that begins with from.
func window(from, to int64) string { return fmt.Sprintf("[%dms]", (to-from)*1000+999) }

// result is what comes of a query; a vector has no points here.
type result struct {
	ResultType string
	Result     []struct {
		Metric map[string]string
		Values []point
	}
}

// query asks for an expression as of a Unix time, whose result must be of a type.
func (c *client) query(ctx context.Context, expression string, at int64, resultType string) (series []stored, err error) {
	var data result
	err = c.get(ctx, "query", url.Values{"query": {expression}, "time": {unixTime(at)}, "timeout": {c.timeout.String()}}, &data)
	if err == nil && data.ResultType != resultType {
		err = fmt.Errorf("%s: the response is not a %s", redact.URL(c.base.String()), resultType)
	}
	for _, x := range data.Result {
		series = append(series, newStored(x.Metric, x.Values))
	}
	return series, err
}

// values returns the values of a label that the database may have in the seconds between.
func (c *client) values(ctx context.Context, label, selector string, from, to int64) (values []string, err error) {
	err = c.get(ctx, "label/"+label+"/values", between(selector, from, to), &values)
	return values, err
}

// series returns the series that the database may have in the seconds between, without points.
func (c *client) series(ctx context.Context, selector string, from, to int64) (series []stored, err error) {
	var all []map[string]string
	err = c.get(ctx, "series", between(selector, from, to), &all)
	for _, labels := range all {
		series = append(series, newStored(labels, nil))
	}
	return series, err
}

func between(selector string, from, to int64) url.Values {
	return url.Values{"match[]": {selector}, "start": {unixTime(from)}, "end": {unixTime(to)}}
}

func unixTime(at int64) string { return strconv.FormatInt(at, 10) }
