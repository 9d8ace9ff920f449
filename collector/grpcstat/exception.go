package grpcstat

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
)

// serverFailed reports whether a code that a handler returns means that the server failed.
func serverFailed(c codes.Code) bool {
	switch c {
	case codes.OK, codes.Canceled, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.ResourceExhausted, codes.FailedPrecondition, codes.Aborted, codes.OutOfRange, codes.Unauthenticated:
		return false
	}
	return true
}

// clientFailed reports whether a code that a client gets means that the call failed.
func clientFailed(c codes.Code) bool { return c == codes.ResourceExhausted || serverFailed(c) }

// exit ends a call that ended with err. To know whether that is an exception is to ask methods of the error, such as that
// of a nil pointer in it: the call ends, too, if they do not return.
func exit(entry *collector.Entry, err error, failed func(codes.Code) bool) {
	counted := collector.ErrPanicked // unless they return
	defer func() { entry.Exit(counted) }()
	counted = exception(err, failed)
}

// exception returns the error if its code is an exception, nil if not.
func exception(err error, failed func(codes.Code) bool) error {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err) // as gRPC's server does
	}
	if failed(s.Code()) {
		return err
	}
	return nil
}
