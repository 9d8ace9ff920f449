package push

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
)

// verdict is what an attempt says about a request. From accepted on it is settled.
type verdict int

const (
	retry       verdict = iota // it is sent again, and the server does not have it
	doubtful                   // it is sent again, and the server may have it
	unreachable                // it is sent again; the URL or the credentials may be wrong
	accepted                   // the server has it
	refused                    // the server will never accept it
	unconfirmed                // the server may have it from an earlier attempt, and will not say
	noHistogram                // the server takes no histograms, and will get none any more
)

// judge says what a response means for a request: what HTTP says, and the words of Prometheus and those that speak like it. The body is
// its beginning. doubt says that an attempt before this one may have arrived.
//
// A status 4xx means that the server will never take these samples; but those about the URL or the credentials may be corrected by
// an operator, so the request is sent again. A request that is rejected as a duplicate, after an attempt without a clear result, may
// have arrived then, or another process may have written to the same series: it is unconfirmed.
func judge(status int, h http.Header, body []byte, doubt bool) verdict {
	page := strings.HasPrefix(h.Get("Content-Type"), "text/html") // which no receiver of samples sends, but a proxy
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
	case status/100 == 5, status == http.StatusRequestTimeout: // VictoriaMetrics stores lines while it reads the next ones
		return doubtful
	case status/100 == 3, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound,
		status == http.StatusMethodNotAllowed, status == http.StatusProxyAuthRequired:
		return unreachable
	}
	return refused
}

// noHistograms are the words of a server that takes no native histograms, and nothing of a request that has one: Prometheus 2.42
// without --enable-feature=native-histograms, and later ones that are configured so, answer 500 with "native histograms are disabled".
var noHistograms = regexp.MustCompile(`(?i)^[^{]*native histograms? (\w+ )*(disabled|not (enabled|supported|allowed))`)

// noDelta are the words of a Prometheus that takes no deltas by OTLP, and nothing of a request that has one. It answers 500, as for
// what is worth another attempt.
var noDelta = []byte("invalid temporality")

// duplicates are the words for a sample that is not newer than what the server has of its series:
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
// VictoriaMetrics has none: it stores duplicates. "out of bounds", "too old sample", err-mimir-sample-timestamp-too-old and
// everything else is a refusal.
//
// They are looked for before the labels, which are ours and may say anything.
var duplicates = regexp.MustCompile(`^[^{]*(out of order sample|duplicate sample for timestamp|err-mimir-sample-(out-of-order|duplicate-timestamp))`)
