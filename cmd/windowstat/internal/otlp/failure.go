package otlp

import (
	"errors"
	"fmt"
	"net/http"
	"os"
)

// failure is why a request is not taken, with the status of HTTP and the code of gRPC that say so. Senders repeat what is unavailable,
// and nothing else here.
type failure struct {
	status, code int
	text         string // ASCII, without a %
}

// Error implements error.
func (f *failure) Error() string { return f.text }

// Codes of gRPC.
const (
	invalidArgument   = 3
	deadlineExceeded  = 4
	resourceExhausted = 8
	unimplemented     = 12
	unavailable       = 14
)

var (
	errFull     = &failure{http.StatusServiceUnavailable, unavailable, "too many spans are held; send them again later"}
	errBusy     = &failure{http.StatusServiceUnavailable, unavailable, "too many requests are being read; send this one again later"}
	errTooLarge = &failure{http.StatusRequestEntityTooLarge, resourceExhausted, fmt.Sprintf("the request has more than %d MiB", maxBody>>20)}
	errTooMany  = &failure{http.StatusRequestEntityTooLarge, resourceExhausted, fmt.Sprintf("the request has more than %d spans", maxSpans)}
	errHalf     = &failure{http.StatusBadRequest, invalidArgument, "the message is not protobuf, or not whole"}
	errJSON     = &failure{http.StatusBadRequest, invalidArgument, "the message is not OTLP's JSON, or not whole"}
	errSlow     = &failure{http.StatusRequestTimeout, deadlineExceeded, "the body has stood still for too long"}
	errBody     = &failure{http.StatusBadRequest, invalidArgument, "the body cannot be read: it is not what its encoding says, or not whole"}
	errNotFound = &failure{http.StatusNotFound, unimplemented, "there is nothing here: traces are received at " + tracesPath + " and " + grpcMethod}
	errNotPost  = &failure{http.StatusMethodNotAllowed, unimplemented, "spans are sent by POST"}
	errType     = &failure{http.StatusUnsupportedMediaType, unimplemented, "the content is neither " + protobufType + " nor " + jsonType}
	errEncoding = &failure{http.StatusUnsupportedMediaType, unimplemented, "the content is neither plain nor gzip"}
)

// failureOf is an error as a failure, nil for none.
func failureOf(err error) *failure {
	var f *failure
	switch {
	case err == nil || errors.As(err, &f):
		return f
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	}
	return errBody
}
