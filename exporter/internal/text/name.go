package text

import (
	"strings"

	"github.com/prometheus/common/model"
)

// Names of metrics and labels are UTF-8, but many servers accept only letters, digits, _ and, in names of metrics, a
// colon. Such names are written as they are. The others have two forms:
//
//	                      quoted                     escaped
//	metric queue.length   {"queue.length",shard="1"} U__queue_2e_length{shard="1"}
//	label k8s.pod         x{"k8s.pod"="a"}           x{U__k8s_2e_pod="a"}
//
// The escaped form is Prometheus' "values" scheme. It is the only scheme that never makes two names equal.

// QuoteNames makes the page write names in quotes where that is necessary, instead of escaping them. The client must
// accept quoted names.
func (p *Page) QuoteNames() { p.quotes = true }

// appendMetric appends the name of a metric, as it appears in the lines of HELP and TYPE.
func (p *Page) appendMetric(b []byte, name string) []byte {
	switch {
	case model.LegacyValidation.IsValidMetricName(name):
		return append(b, name...)
	case p.quotes:
		return append(appendEscaped(append(b, '"'), name), '"')
	default:
		return append(b, model.EscapeName(name, model.ValueEncodingEscaping)...)
	}
}

// appendLabel appends the name of a label.
func (p *Page) appendLabel(b []byte, name string) []byte {
	switch {
	case model.LegacyValidation.IsValidLabelName(name):
		return append(b, name...)
	case p.quotes:
		return append(appendEscaped(append(b, '"'), name), '"')
	default:
		return append(b, EscapeLabel(name)...)
	}
}

// EscapeLabel returns the escaped form of the name of a label that needs it. model.EscapeName keeps colons, which the
// name of a metric may have, and returns a name unchanged if it has no other special character. EscapeLabel therefore
// escapes a name with an additional character, and then the colons.
func EscapeLabel(name string) string {
	escaped := strings.TrimSuffix(model.EscapeName(name+".", model.ValueEncodingEscaping), "_2e_")
	return strings.ReplaceAll(escaped, ":", "_3a_")
}

// appendSeries appends the name of a metric with the labels of a series, as they begin a line. labels is `{a="b"} `, or
// a space.
func (p *Page) appendSeries(b []byte, name string, labels []byte) []byte {
	if model.LegacyValidation.IsValidMetricName(name) || !p.quotes {
		return append(p.appendMetric(b, name), labels...)
	}
	b = p.appendMetric(append(b, '{'), name) // {"name"} or {"name",a="b"}
	if len(labels) == 1 {
		return append(b, "} "...)
	}
	return append(append(b, ','), labels[1:]...)
}
