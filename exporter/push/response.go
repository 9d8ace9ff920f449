package push

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
)

// verdict is the result of an attempt. A request is settled if its verdict is accepted or a later constant.
type verdict int

const (
	retry       verdict = iota // resend; the server does not have it
	doubtful                   // resend; the server may have it
	unreachable                // resend; the URL or the credentials may be wrong
	// Resend as remote write 1.0; the server does not read version 2.0 and has stored nothing.
	noVersion2
	accepted    // the server has it
	refused     // the server will never accept it
	unconfirmed // the server may have it from an earlier attempt; the result stays unknown
	noHistogram // the server does not accept native histograms; stop sending them
)

// judge returns the verdict for a response. It uses the HTTP status, and the messages of Prometheus and compatible
// servers. body is the beginning of the response body. doubt means that an earlier attempt may have arrived.
//
// A status 4xx means that the server will never accept these samples. Errors of the URL or the credentials are
// different: an operator may correct them, so the request is resent. If a request is rejected as a duplicate after an
// attempt with an unclear result, either that attempt arrived, or another process wrote to the same series. The request
// is then unconfirmed.
func judge(status int, h http.Header, body []byte, doubt bool) verdict {
	page := strings.HasPrefix(h.Get("Content-Type"), "text/html") // from a proxy; receivers send none
	if page {
		body = nil
	}
	switch {
	case status/100 == 2 && page:
		return unreachable
	case status/100 == 2:
		return accepted
	case doubt && (status == http.StatusBadRequest || status == http.StatusConflict) && duplicates.Match(body):
		return unconfirmed
	case status == http.StatusTooManyRequests:
		return retry
	case noHistograms.Match(body):
		return noHistogram
	case status == http.StatusInternalServerError && bytes.Contains(body, noDelta):
		return refused
	case status/100 == 5, status == http.StatusRequestTimeout: // VictoriaMetrics stores lines before it has read all
		return doubtful
	case status/100 == 3, status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusProxyAuthRequired:
		return unreachable
	}
	return refused
}

// noHistograms matches the message of a server that accepts no native histograms, and no other samples of a request
// that contains one. Prometheus 2.42 without --enable-feature=native-histograms, and later versions that are configured
// so, respond 500 with "native histograms are disabled". The receiver of remote write 2.0 of the OpenTelemetry
// Collector responds 400 with the second alternative.
var noHistograms = regexp.MustCompile(`(?i)^[^{]*native histograms? (\w+ )*(disabled|not (enabled|supported|allowed))` +
	`|^unsupported metric type "METRIC_TYPE_GAUGEHISTOGRAM"`)

// noDelta is the message of a Prometheus that accepts no OTLP deltas, and no other samples of a request that contains
// one. It responds 500, as it does for errors that are worth another attempt.
var noDelta = []byte("invalid temporality")

// duplicates matches the messages about a sample that is not newer than the stored samples of its series:
//
//	Prometheus 2.42  400 out of order sample
//	                 400 duplicate sample for timestamp
//	Prometheus 3.15  400 out of order sample
//	                 400 duplicate sample for timestamp 1700000000000; overrides not allowed: existing 1, new value 2
//	Mimir            400 … (err-mimir-sample-out-of-order). The affected sample has timestamp … and is from series {…}
//	                 400 … (err-mimir-sample-duplicate-timestamp). The affected sample …
//	Cortex           400 user=…: err: out of order sample. timestamp=…, series={…}
//	                 400 user=…: err: duplicate sample for timestamp. timestamp=…, series={…}
//	Thanos           409 store locally for endpoint …: add 8 samples: out of order sample
//
// VictoriaMetrics has no such message, because it stores duplicates. "out of bounds", "too old sample",
// err-mimir-sample-timestamp-too-old and all other messages mean that the request is refused.
//
// The expression matches only before the labels, because the labels are ours and may contain any text.
var duplicates = regexp.MustCompile(
	`^[^{]*(out of order sample|duplicate sample for timestamp|err-mimir-sample-(out-of-order|duplicate-timestamp))`)
