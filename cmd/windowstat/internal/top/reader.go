package top

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/redact"
)

// maxMissed is the maximum number of missed seconds that are requested together, with all metrics.
const maxMissed = 5

// maxPast limits a request for the past: the number of seconds times the number of resources. A minute is always
// allowed.
//
// The product is about the number of lines that a service must write for one metric. Ten minutes of about 500 resources
// are within the limit. With more resources, top requests a shorter past.
const maxPast = 300_000

// result is the result of a poll.
type result struct {
	samples []sample
	newest  int64  // the last sealed second, or 0 before the first one
	detail  detail // of the selected resource, and the trouble
	err     error
}

// read requests the last second, missing seconds before it, and the details of the selected resource. A target has at
// most one read at a time, and its result is applied before the next one.
//
// The last second has all metrics. A few missing seconds are requested together. A longer past, such as at the
// beginning, is requested one metric at a time, so the first response arrives soon and no response is very large.
//
// A read runs outside the goroutine that draws. It therefore changes only the last group of fields of target, and
// returns everything else in its result.
func (t *target) read(ctx context.Context, selected string) (a result) {
	// Seconds first: if the service does not respond, a request for details would only wait for a second timeout.
	a.samples, a.newest, a.err = t.poll(ctx)
	if a.err != nil {
		t.all = false // another service may have the address now
	} else if selected != inbound || t.alarms {
		a.detail = t.endpoint.detail(ctx, selected)
	}
	return a
}

// poll requests the last second and the missing ones. A page that lacks a metric rejects a request that names it. poll
// then requests all metrics of the page, unless the page is of windowstat sentinel.
func (t *target) poll(ctx context.Context) (samples []sample, newest int64, err error) {
	samples, newest, err = t.request(ctx, 1, 0, metrics)
	if errors.Is(err, statusError(http.StatusBadRequest)) && !t.all {
		if d := t.endpoint.detail(ctx, inbound); errors.Is(d.err, statusError(http.StatusNotImplemented)) {
			return nil, 0, errSentinel
		}
		t.all = true
		samples, newest, err = t.request(ctx, 1, 0, metrics)
	}
	switch {
	case errors.Is(err, statusError(http.StatusNotFound)):
		err = fmt.Errorf("%w\n%w", err, errNoSeconds)
	case errors.Is(err, errNoSeconds):
		err = fmt.Errorf("%s has metrics, but no seconds\n%w", clean(t.endpoint.page.String()), err)
	}
	// A page without seconds is valid: the first second of a new service has not ended.
	if err != nil || newest == 0 {
		return nil, 0, err
	}
	// The allowed number of seconds depends on the number of resources, which the last second shows.
	resources := int64(1)
	for i := range samples {
		if samples[i].metric == pass { // each resource has passes
			resources++
		}
	}
	missed, err := t.missed(ctx, newest, min(t.kept, max(maxPast/resources, minute)))
	if err != nil {
		return nil, 0, err
	}
	return append(samples, missed...), newest, nil
}

// missed returns the missing seconds before the newest one, within the last kept seconds. A short gap is requested with
// all metrics. A longer gap starts the reads of the past, one metric for each call. A short gap does not interrupt
// them.
//
// The first poll finds t.newest equal to 0. The gap is then as long as a Unix time, so the first poll starts the reads
// of the past in the same way as a poll after a long interruption. For example, with the default of 600 kept seconds:
//
//	poll     requests
//	first    the last second, all metrics; 600 seconds of pass_peak
//	second   the last second, all metrics; 600 seconds of pass
//	…
//	eighth   the last second, all metrics; 600 seconds of in_flight_avg
//	later    the last second, all metrics
//
// After an interruption, the window also includes the seconds that pass while the eight metrics are read, so the
// metrics read first have values in all seconds that the metrics read last have.
func (t *target) missed(ctx context.Context, newest, kept int64) (samples []sample, err error) {
	gap := newest - t.newest - 1
	switch {
	case gap > maxMissed:
		t.past, t.window = 0, min(gap+int64(metrics)+2, kept) // each poll of the past takes about a second
	case gap > 0:
		samples, _, err = t.request(ctx, gap+2, 0, metrics) // a second may end during the request
		return samples, err
	case t.past == metrics:
		return nil, nil
	}
	samples, _, err = t.request(ctx, t.window, t.past, t.past+1)
	if errors.Is(err, statusError(http.StatusBadRequest)) &&
		t.window > minute { // the service keeps fewer seconds or sends fewer
		t.window = minute // always allowed; the service may send fewer seconds
		samples, _, err = t.request(ctx, minute, t.past, t.past+1)
	}
	t.past++
	return samples, err
}

// errNoSeconds is part of the error for an endpoint without a per-second page.
var errNoSeconds = errors.New(
	"there is no per-second page; pass host:port of a service that serves\n" + defaultPage +
		" (package exporter), or the URL of that page",
)

// errSentinel is the error for the page of windowstat sentinel. Processes on this page have the same resources, and a
// delayed process has no rows in the newest second, so a table would have wrong numbers.
var errSentinel = errors.New(
	"top cannot show the metric logs of Sentinel; use the dashboards, or\n" +
		"windowstat log --follow --dir DIRECTORY on the machine of the logs",
)

// request requests the last seconds, with the metrics from one up to but not including another. If the window is a
// minute, the service may send fewer seconds.
func (t *target) request(
	ctx context.Context,
	window int64,
	from, to metric,
) (samples []sample, newest int64, err error) {
	q := url.Values{}
	// A metric has two names on the page: one for resources, and one with inbound_ for the total. Without any parameter
	// metric, the page has all its metrics, including those that top ignores.
	for _, name := range onPage[from:to] {
		if !t.all {
			q["metric"] = append(q["metric"], "persecond_"+name, "persecond_inbound_"+name)
		}
	}
	// A minute is the default window of the page. Without the parameter, a service with many resources may shorten the
	// window; with the parameter, the service would reject a window that is too long.
	if window != minute {
		q.Set("window", fmt.Sprintf("%ds", window))
	}
	err = t.endpoint.get(ctx, t.endpoint.page, q, "text/plain", func(body io.Reader) (err error) {
		samples, newest, err = readPage(body)
		return err
	})
	return samples, newest, err
}

// The bounds of a response. A per-second page is smaller by default. A parsed line needs far more memory than its
// bytes, and a line with very many labels takes too much time.
const (
	maxPage  = 80 << 20
	maxLines = 1_000_000
)

// sample is a value of a resource in a second.
type sample struct {
	resource string
	unix     int64
	metric   metric
	value    float64
}

// inbound represents all inbound traffic instead of a resource. No resource has an empty name.
const inbound = ""

// readPage reads the samples of a per-second page in Prometheus's text format. It also returns the last second of the
// page, or 0 for a page without seconds. It reads the page before it parses it, because the parser has no bounds, and
// reports a truncated response as an invalid format.
func readPage(r io.Reader) (all []sample, newest int64, err error) {
	// Count lines while reading: the memory of a parsed page depends on its lines and labels more than on its bytes.
	var text bytes.Buffer
	scanner := bufio.NewScanner(r)
	for n := 1; scanner.Scan(); n++ {
		switch {
		case n > maxLines:
			return nil, 0, fmt.Errorf("the response has more than %d lines", maxLines)
		case text.Len() > maxPage:
			return nil, 0, fmt.Errorf("the response is larger than %d MiB", maxPage>>20)
		}
		text.Write(scanner.Bytes())
		text.WriteByte('\n')
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, 0, fmt.Errorf("the response has a line of more than %d KiB", bufio.MaxScanTokenSize>>10)
	case err != nil:
		return nil, 0, fmt.Errorf("the response was cut off: %w", redact.Error(err))
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	page, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		return nil, 0, fmt.Errorf("the response is not in Prometheus's text format: %w", redact.Error(err))
	}
	// Each second has the metric run, for any query and without any calls. It identifies a per-second page, and is its
	// clock. Series of resources have the label resource; series of all inbound traffic do not.
	for full, family := range page {
		_, name, _ := strings.Cut(full, "persecond_")
		name, isTotal := strings.CutPrefix(name, "inbound_")
		// m is -1 for a metric that top does not show.
		m := slices.Index(onPage[:], name)
		for _, x := range family.GetMetric() {
			unix, resource := x.GetTimestampMs()/1000, inbound
			for _, label := range x.GetLabel() {
				if label.GetName() == "resource" {
					resource = label.GetValue()
				}
			}
			// Only one of the two is set.
			value := x.GetUntyped().GetValue() + x.GetGauge().GetValue() // a proxy may have removed the type
			switch n := len(resource); {
			case name == "run":
				newest = max(newest, unix)
			case n > collector.MaxNameLength:
				return nil, 0, fmt.Errorf(
					"a resource has a name of %d bytes, and windowstat has none of more than %d",
					n,
					collector.MaxNameLength,
				)
			case m >= 0 && isTotal == (resource == inbound) && unix > 0 && !math.IsInf(value, 0):
				all = append(all, sample{resource, unix, metric(m), value})
			}
		}
	}
	if newest == 0 && len(page) > 0 { // a page is empty until the first second ends
		err = errNoSeconds
	}
	return all, newest, err
}
