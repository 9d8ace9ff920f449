package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
)

// page is a parsed response, by family.
type page map[string]*dto.MetricFamily

// The bounds of a page: more than a per-second page sends by default. A parsed line takes far more memory than it has
// bytes, and one with very many labels takes too much time.
const (
	maxPage  = 80 << 20
	maxLines = 1_000_000
	maxLine  = 64 << 10
)

// bounded reads a page up to the bounds, and remembers why it ended early.
type bounded struct {
	io.Reader
	bytes, lines int // what may still come
	line         int // length of the last line so far
	err          error
}

func (b *bounded) Read(p []byte) (n int, err error) {
	switch {
	case b.bytes <= 0:
		err = fmt.Errorf("the answer is larger than %d MiB", maxPage>>20)
	case b.lines <= 0:
		err = fmt.Errorf("the answer has more than %d lines", maxLines)
	case b.line > maxLine:
		err = fmt.Errorf("the answer has a line of more than %d KiB", maxLine>>10)
	default:
		n, err = b.Reader.Read(p[:min(len(p), b.bytes)])
		if b.line += n; bytes.IndexByte(p[:n], '\n') >= 0 {
			b.line = n - 1 - bytes.LastIndexByte(p[:n], '\n')
		}
		b.bytes -= n
		b.lines -= bytes.Count(p[:n], []byte("\n"))
		switch {
		case err == nil || errors.Is(err, io.EOF):
			return n, err
		case errors.Is(err, context.DeadlineExceeded):
			err = fmt.Errorf("the answer takes longer than %v", requestTimeout)
		default:
			err = fmt.Errorf("the answer broke off: %s", clean(err.Error()))
		}
	}
	b.err = err
	return n, err
}

// readPage parses a page in Prometheus's text format.
func readPage(r io.Reader) (page, error) {
	in := &bounded{Reader: r, bytes: maxPage, lines: maxLines}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(in)
	switch {
	case in.err != nil:
		return nil, in.err
	case err != nil:
		return nil, fmt.Errorf("the answer is not in Prometheus's text format: %s", clean(err.Error()))
	}
	return families, nil
}

// find returns the family with this name behind any namespace, nil if there is none.
func (p page) find(name string) *dto.MetricFamily {
	if f := p[exporter.Namespace+"_"+name]; f != nil {
		return f
	}
	for full, f := range p {
		if strings.HasSuffix(full, "_"+name) {
			return f
		}
	}
	return nil
}

// hasSeconds tells the per-second page from others by its metrics. It is empty while nothing was counted.
func (p page) hasSeconds() bool {
	return len(p) == 0 || slices.ContainsFunc(onPage[:], func(n names) bool { return p.find(n.resources) != nil || p.find(n.inbound) != nil })
}

// seconds returns the samples of the per-second page.
func (p page) seconds() (list []sample, err error) {
	for m, n := range onPage {
		for _, name := range n.list() {
			for _, x := range p.find(name).GetMetric() {
				resource, err := resourceOf(x)
				if err != nil {
					return nil, err
				}
				unix, v := x.GetTimestampMs()/1000, valueOf(x)
				if of := (resource == inbound) == (name == n.inbound); of && unix > 0 && !math.IsInf(v, 0) {
					list = append(list, sample{resource, unix, metric(m), v})
				}
			}
		}
	}
	return list, nil
}

// valueOf returns the value of a gauge or a counter, even if a proxy dropped its type: the other two are 0.
func valueOf(x *dto.Metric) float64 {
	return x.GetUntyped().GetValue() + x.GetGauge().GetValue() + x.GetCounter().GetValue()
}

// resourceOf returns the resource label of a series, empty if it has none.
func resourceOf(x *dto.Metric) (string, error) {
	for _, label := range x.GetLabel() {
		if label.GetName() != "resource" {
			continue
		}
		if n := len(label.GetValue()); n > collector.MaxNameLength {
			return "", fmt.Errorf("a resource has a name of %d bytes, and windowstat has none of more than %d", n, collector.MaxNameLength)
		}
		return label.GetValue(), nil
	}
	return "", nil
}

// resources returns how many resources some samples of one second are of: each has its passes.
func resources(samples []sample) (n int) {
	for i := range samples {
		if samples[i].metric == pass {
			n++
		}
	}
	return n
}

// newest returns the last second of some samples, 0 if there are none.
func newest(samples []sample) (unix int64) {
	for i := range samples {
		unix = max(unix, samples[i].unix)
	}
	return unix
}
