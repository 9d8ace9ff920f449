package httpstat

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/windowstat/windowstat/collector"
)

// gRPC over HTTP sends status 200 for every call, and the result in the field Grpc-Status: in the trailers, or in the
// header if the response has no body. See
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses.

// grpcError is the error of a call whose gRPC code is an exception. [collector.Options].Exception receives it.
type grpcError uint32

func (e grpcError) Error() string {
	return "httpstat: gRPC status " + collector.GRPCCode(uint32(e)).String()
}

// grpcUnknown is the code UNKNOWN, which clients also use for a status that is not a number.
const grpcUnknown = 2

// isGRPC reports whether a request is a gRPC call.
func isGRPC(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// grpcStatus returns the gRPC code in the header or the trailers of a response. A handler sets trailers in its header,
// with or without http.TrailerPrefix.
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

// grpcFailure returns the error of a call with a gRPC code, or nil. The rule is that of package grpcstat: on the side
// of the server, codes that blame the caller are no exceptions; a client also fails if the server has no capacity.
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
