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

// few is how many missed seconds are requested at once.
const few = 5

// maxPast is how many seconds of all resources together are requested at once, but a minute of each.
const maxPast = 300_000

// answer is the result of one poll.
type answer struct {
	samples []sample
	newest  int64  // the last finished second; 0 if there is none yet
	detail  detail // of what is selected
	err     error
}

// read requests the last second, some of what is missing before it, and the detail of a resource that is selected. Only one request of a
// target is under way, and the answer is taken before the next.
//
// The last second is requested with all metrics. What is missing before it is requested at once if it is a few seconds, and otherwise, as
// at the beginning, one metric each time, so that no response is very large and the first comes soon.
func (t *target) read(ctx context.Context, selected string) (a answer) {
	a.samples, a.newest, a.err = t.poll(ctx)
	if a.err != nil {
		t.all = false // the service may be another one
	} else if selected != inbound || t.alarms {
		a.detail = t.endpoint.detail(ctx, selected)
	}
	return a
}

// poll requests the last second, and what is missing. Services whose logs have no response times do not know the metrics of these, and
// refuse requests that name one.
func (t *target) poll(ctx context.Context) (samples []sample, newest int64, err error) {
	samples, newest, err = t.ask(ctx, 1, 0, metrics)
	if errors.Is(err, statusError(http.StatusBadRequest)) && !t.all {
		t.all = true
		samples, newest, err = t.ask(ctx, 1, 0, metrics)
	}
	switch {
	case errors.Is(err, statusError(http.StatusNotFound)):
		err = fmt.Errorf("%w\n%w", err, errNoSeconds)
	case errors.Is(err, errNoSeconds):
		err = fmt.Errorf("%s has metrics, but no seconds\n%w", clean(t.endpoint.page.String()), err)
	}
	if err != nil || newest == 0 {
		return nil, 0, err
	}
	// How far back a minute or more can be asked for depends on how many resources there are, and the last second tells that.
	resources := int64(1)
	for i := range samples {
		if samples[i].metric == pass { // each has its passes
			resources++
		}
	}
	missed, err := t.missed(ctx, newest, min(t.kept, max(maxPast/resources, minute)))
	if err != nil {
		return nil, 0, err
	}
	return append(samples, missed...), newest, nil
}

// missed returns what is missing before the newest second, some of the last so many. It depends on the gap: none, a few seconds, or more
// than that, as before the first second. What is being read of a longer past goes on when a short gap is closed.
func (t *target) missed(ctx context.Context, newest, kept int64) (samples []sample, err error) {
	gap := newest - t.newest - 1
	switch {
	case gap > few:
		t.past, t.window = 0, min(gap+int64(metrics)+2, kept) // a second ends with each poll that it takes
	case gap > 0:
		samples, _, err = t.ask(ctx, gap+2, 0, metrics) // a second may end meanwhile
		return samples, err
	case t.past == metrics:
		return nil, nil
	}
	samples, _, err = t.ask(ctx, t.window, t.past, t.past+1)
	if errors.Is(err, statusError(http.StatusBadRequest)) && t.window > minute { // it keeps less, or sends less at a time
		t.window = minute // of which it sends what it can
		samples, _, err = t.ask(ctx, minute, t.past, t.past+1)
	}
	t.past++
	return samples, err
}

// errNoSeconds ends the error of an endpoint without a per-second page.
var errNoSeconds = errors.New("there is no per-second page; pass host:port of a service that serves\n" + defaultPage + " (package exporter), or the URL of that page")

// ask requests the last seconds of the metrics from one to before another. Of a minute the endpoint may send fewer.
func (t *target) ask(ctx context.Context, window int64, from, to metric) (samples []sample, newest int64, err error) {
	q := url.Values{}
	for _, name := range onPage[from:to] {
		if !t.all {
			q["metric"] = append(q["metric"], "persecond_"+name, "persecond_inbound_"+name)
		}
	}
	if window != minute {
		q.Set("window", fmt.Sprintf("%ds", window))
	}
	err = t.endpoint.get(ctx, t.endpoint.page, q, "text/plain", func(body io.Reader) (err error) {
		samples, newest, err = readPage(body)
		return err
	})
	return samples, newest, err
}

// The bounds of a page: more than a per-second page sends by default. A parsed line takes far more memory than it has
// bytes, and one with very many labels takes too much time.
const (
	maxPage  = 80 << 20
	maxLines = 1_000_000
)

// sample is one value of a resource in a second.
type sample struct {
	resource string
	unix     int64
	metric   metric
	value    float64
}

// inbound is all inbound traffic, in the place of a resource: no resource has an empty name.
const inbound = ""

// readPage reads the samples of a per-second page in Prometheus's text format, and its last second, 0 if it has none. It reads the page
// before it parses it: the parser has no bounds, and takes a response that broke off for one in a wrong format.
func readPage(r io.Reader) (all []sample, newest int64, err error) {
	var text bytes.Buffer
	scanner := bufio.NewScanner(r)
	for n := 1; scanner.Scan(); n++ {
		switch {
		case n > maxLines:
			return nil, 0, fmt.Errorf("the answer has more than %d lines", maxLines)
		case text.Len() > maxPage:
			return nil, 0, fmt.Errorf("the answer is larger than %d MiB", maxPage>>20)
		}
		text.Write(scanner.Bytes())
		text.WriteByte('\n')
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, 0, fmt.Errorf("the answer has a line of more than %d KiB", bufio.MaxScanTokenSize>>10)
	case err != nil:
		return nil, 0, fmt.Errorf("the answer broke off: %w", redact.Error(err))
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	page, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		return nil, 0, fmt.Errorf("the answer is not in Prometheus's text format: %w", redact.Error(err))
	}
	// The metric run is there of every second, whatever is asked for and whether or not anything was counted, so it tells the page from
	// others and is its clock. Series of resources have the label resource, those of all inbound traffic have not.
	for full, family := range page {
		_, name, _ := strings.Cut(full, "persecond_")
		name, isTotal := strings.CutPrefix(name, "inbound_")
		m := slices.Index(onPage[:], name)
		for _, x := range family.GetMetric() {
			unix, resource := x.GetTimestampMs()/1000, inbound
			for _, label := range x.GetLabel() {
				if label.GetName() == "resource" {
					resource = label.GetValue()
				}
			}
			value := x.GetUntyped().GetValue() + x.GetGauge().GetValue() // a proxy may have dropped the type
			switch n := len(resource); {
			case name == "run":
				newest = max(newest, unix)
			case n > collector.MaxNameLength:
				return nil, 0, fmt.Errorf("a resource has a name of %d bytes, and windowstat has none of more than %d", n, collector.MaxNameLength)
			case m >= 0 && isTotal == (resource == inbound) && unix > 0 && !math.IsInf(value, 0):
				all = append(all, sample{resource, unix, metric(m), value})
			}
		}
	}
	if newest == 0 && len(page) > 0 { // it is empty until the first second ends
		err = errNoSeconds
	}
	return all, newest, err
}
