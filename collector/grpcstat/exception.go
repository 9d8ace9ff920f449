package grpcstat

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

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

// exit ends a call that ended with err, under its code. To know that is to ask methods of the error, such as that of a nil
// pointer in it: the call ends, too, if they do not return.
func (o *options) exit(entry *collector.Entry, err error) {
	counted, code := collector.ErrPanicked, collector.Code{} // unless they return
	defer func() { entry.ExitCode(counted, code) }()
	if err == collector.ErrPanicked { // nobody was answered
		return
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err) // as gRPC's server does
	}
	answer := s.Code()
	code = collector.GRPCCode(uint32(answer))
	if failed := o.exception(answer); !failed {
		err = nil
	}
	counted = err
}

// refusal is the error of a call that a limit refused: package collector's, with a gRPC status.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// GRPCStatus is what gRPC sends, and what status.FromError finds.
func (r refusal) GRPCStatus() *status.Status {
	s := status.New(codes.ResourceExhausted, r.Error())
	if with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)}); err == nil {
		return with
	}
	return s
}
