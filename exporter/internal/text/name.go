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
	return p.appendName(b, name, model.LegacyValidation.IsValidMetricName(name), escapeMetric)
}

// appendLabel appends the name of a label.
func (p *Page) appendLabel(b []byte, name string) []byte {
	return p.appendName(b, name, model.LegacyValidation.IsValidLabelName(name), EscapeLabel)
}

// appendName appends a name as it is if every server accepts it, and otherwise in quotes or escaped.
func (p *Page) appendName(b []byte, name string, accepted bool, escape func(string) string) []byte {
	switch {
	case accepted:
		return append(b, name...)
	case p.quotes:
		return append(appendEscaped(append(b, '"'), name), '"')
	default:
		return append(b, escape(name)...)
	}
}

// escapeMetric returns the escaped form of the name of a metric.
func escapeMetric(name string) string { return model.EscapeName(name, model.ValueEncodingEscaping) }

// EscapeLabel returns the escaped form of the name of a label that needs it. model.EscapeName keeps colons, which the
// name of a metric may have, and returns a name unchanged if it has no other special character. EscapeLabel therefore
// escapes a name with an additional character, and then the colons.
func EscapeLabel(name string) string {
	escaped := strings.TrimSuffix(model.EscapeName(name+".", model.ValueEncodingEscaping), "_2e_")
	return strings.ReplaceAll(escaped, ":", "_3a_")
}

// beginning returns the text before the labels in the lines of a metric. inBraces is true if the text opens the braces
// of the labels, as in {"name",a="b"}.
func (p *Page) beginning(name string) (text []byte, inBraces bool) {
	if p.quotes && !model.LegacyValidation.IsValidMetricName(name) {
		return p.appendMetric([]byte{'{'}, name), true
	}
	return p.appendMetric(nil, name), false
}

// appendLabels appends the labels of a line to its beginning. labels is `{a="b"} `, or a space.
func appendLabels(line []byte, inBraces bool, labels []byte) []byte {
	switch {
	case !inBraces:
		return append(line, labels...)
	case len(labels) == 1:
		return append(line, "} "...)
	default:
		return append(append(line, ','), labels[1:]...)
	}
}
