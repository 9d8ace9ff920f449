package otlp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/logonce"
)

// failure is the error of a refused request, with the HTTP status and the gRPC code of the response. Senders repeat a
// request after [unavailable], and after no other code in this package.
type failure struct {
	// status is the HTTP status, and code the gRPC code.
	status, code int
	// reason is the value of the label of the metric.
	reason string
	// field is the path of the invalid field in the message, or empty.
	field string
	// text is ASCII. Without a field it contains no "%", because gRPC would have to escape it.
	text string
}

// Error implements error.
func (f *failure) Error() string {
	if f.field == "" {
		return f.text
	}
	return f.field + ": " + f.text
}

// Codes of gRPC.
const (
	invalidArgument   = 3
	deadlineExceeded  = 4
	resourceExhausted = 8
	unimplemented     = 12
	internalError     = 13
	unavailable       = 14
)

// invalidMessage is the reason of requests whose message cannot be decoded. Each of these failures is a separate value,
// because it names the field.
const invalidMessage = "invalid_message"

// Failures without a field. All requests share them, so they never change.
var (
	// errFull refuses a request when the receiver cannot remember its spans, or cannot hold its calls until their
	// seconds end. Capacity returns with time, so senders must repeat the request.
	errFull = &failure{
		status: http.StatusServiceUnavailable, code: unavailable, reason: "full",
		text: "the maximum number of spans is held; retry later",
	}
	// errBusy refuses a request that was evicted for a request of another host, or that found the queue of the decoders
	// full.
	errBusy = &failure{
		status: http.StatusServiceUnavailable, code: unavailable, reason: "busy",
		text: "other requests use the memory or the processors; retry later",
	}
	// errTooLarge applies to the size of the message before and after decompression.
	errTooLarge = &failure{
		status: http.StatusRequestEntityTooLarge, code: resourceExhausted, reason: "too_large",
		text: fmt.Sprintf("the request has more than %d MiB", maxBody>>20),
	}
	// errTooMany limits the memory of a decoder: a span may be much larger in memory than in a message.
	errTooMany = &failure{
		status: http.StatusRequestEntityTooLarge, code: resourceExhausted, reason: "too_many_spans",
		text: fmt.Sprintf("the request has more than %d spans", maxSpans),
	}
	// errSlow ends a request whose body makes too little progress.
	errSlow = &failure{
		status: http.StatusRequestTimeout, code: deadlineExceeded, reason: "slow",
		text: fmt.Sprintf(
			"the body stalled for a minute, or has taken longer than a minute at %d KiB a second",
			minRate>>10,
		),
	}
	// errIncomplete usually means that the client has disconnected, so nobody reads the response.
	errIncomplete = &failure{
		status: http.StatusBadRequest, code: invalidArgument, reason: "incomplete",
		text: "the body ended before its announced length",
	}
	// errPacked reports invalid gzip or zstd, a checksum that does not match, or a window that is too large.
	errPacked = &failure{
		status: http.StatusBadRequest, code: invalidArgument, reason: "invalid_compression",
		text: "the body cannot be decompressed with its announced encoding",
	}
	// errEncoding comes with a header that lists the supported encodings.
	errEncoding = &failure{
		status: http.StatusUnsupportedMediaType, code: unimplemented, reason: "unknown_compression",
		text: "the encoding of the body is not one of identity, gzip and zstd",
	}
	errType = &failure{
		status: http.StatusUnsupportedMediaType, code: unimplemented, reason: "content_type",
		text: "the content type is neither " + protobufType + " nor " + jsonType,
	}
	errNotFound = &failure{
		status: http.StatusNotFound, code: unimplemented, reason: "not_found",
		text: "traces are received at " + tracesPath + " and " + grpcMethod + " only",
	}
	errNotPost = &failure{
		status: http.StatusMethodNotAllowed, code: unimplemented, reason: "method",
		text: "spans are sent by POST",
	}
	// errInternal replaces errors that are not failures. The code returns no such error.
	errInternal = &failure{
		status: http.StatusInternalServerError, code: internalError, reason: "internal",
		text: "the receiver failed",
	}
)

// reasons are all reasons of failures, for the metric.
var reasons = [...]string{
	errFull.reason, errBusy.reason, errTooLarge.reason, errTooMany.reason, errSlow.reason, errIncomplete.reason,
	errPacked.reason, errEncoding.reason, errType.reason, errNotFound.reason, errNotPost.reason, errInternal.reason,
	invalidMessage,
}

// invalid returns the failure of a message that cannot be decoded.
func invalid(text string) *failure {
	return &failure{status: http.StatusBadRequest, code: invalidArgument, reason: invalidMessage, text: text}
}

// failureOf returns err as a failure, or nil if err is nil.
func failureOf(err error) *failure {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return f
	}
	return errInternal
}

// refusals counts the refused requests by reason, and logs each reason at most once a minute. Create it with
// newRefusals. Concurrent use is safe.
type refusals struct {
	log logonce.Logger
	// counts has a counter for each reason. The map itself is read-only.
	counts map[string]*atomic.Int64
}

func newRefusals(logger *slog.Logger) *refusals {
	r := &refusals{log: logonce.Logger{To: logger}, counts: map[string]*atomic.Int64{}}
	for _, reason := range reasons {
		r.counts[reason] = new(atomic.Int64)
	}
	return r
}

// add records the refusal of a request from host.
func (r *refusals) add(f *failure, host string) {
	r.counts[f.reason].Add(1)
	r.log.Log(slog.LevelWarn, "refused a request: "+f.reason, "err", f, "status", f.status, "host", host)
}

// metric returns the metric of refused requests.
func (r *refusals) metric() collector.Metric {
	return collector.Metric{
		Name: "otlp_refused_requests_total", Labels: []string{"reason"},
		Help: "Refused requests by reason. None of their spans is counted. Senders repeat requests that are refused " +
			"with full or busy.",
		Read: func(yield func(float64, ...string)) {
			for _, reason := range reasons {
				yield(float64(r.counts[reason].Load()), reason)
			}
		},
	}
}
