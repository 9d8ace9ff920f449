package httpstat

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/windowstat/windowstat/collector"
)

// gRPC sends HTTP status 200 for every call. The result of the call is in the field Grpc-Status: in the trailers, or in
// the header if the response has no body. See https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses.

// grpcError is the error of a call whose gRPC code is an exception. [collector.Options].Exception receives this error.
type grpcError uint32

func (e grpcError) Error() string {
	return "httpstat: gRPC status " + collector.GRPCCode(uint32(e)).String()
}

// grpcUnknown is the code UNKNOWN. gRPC clients also use this code if the value of Grpc-Status is not a number.
const grpcUnknown = 2

// isGRPC reports whether a request is a gRPC call.
func isGRPC(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// grpcStatus returns the gRPC code of a response. The parameter fields is the header or the trailers of the response.
// ok is false if fields has no code. The map that a handler gets from ResponseWriter.Header also has the trailers.
// Their names may begin with http.TrailerPrefix.
func grpcStatus(fields http.Header) (code uint32, ok bool) {
	for name, values := range fields {
		if len(values) > 0 && strings.EqualFold(strings.TrimPrefix(name, http.TrailerPrefix), "Grpc-Status") {
			n, err := strconv.ParseUint(values[0], 10, 32)
			if err != nil {
				return grpcUnknown, true
			}
			return uint32(n), true
		}
	}
	return 0, false
}

// grpcFailure returns the error of a call with a gRPC code, or nil if the code is not an exception. client is true for
// a call that this process makes, and false for a call that it serves. The rule is the same as in package grpcstat: a
// code that only describes the request, the data or the caller is not an exception. ResourceExhausted is an exception
// for a client, but not for a server.
func grpcFailure(code uint32, client bool) error {
	switch collector.GRPCCode(code).String() {
	case "OK", "Canceled", "InvalidArgument", "NotFound", "AlreadyExists", "PermissionDenied", "FailedPrecondition",
		"Aborted", "OutOfRange", "Unauthenticated":
		return nil
	case "ResourceExhausted":
		if !client {
			return nil
		}
	}
	return grpcError(code)
}
