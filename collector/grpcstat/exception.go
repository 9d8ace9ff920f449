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

// exit ends the call of entry with the error err, and counts the call with the gRPC code of err. To find the code, exit
// calls methods of err. If such a method panics, for example because err contains a nil pointer, the call still ends,
// as an exception without a code.
func (o *options) exit(entry *collector.Entry, err error) {
	counted, code := collector.ErrPanicked, collector.Code{} // replaced when the methods of err return
	defer func() { entry.ExitCode(counted, code) }()
	if err == collector.ErrPanicked { // a call that panicked has no code
		return
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err) // gRPC's server uses the same conversion
	}
	grpcCode := s.Code()
	code = collector.GRPCCode(uint32(grpcCode))
	if failed := o.exception(grpcCode); !failed {
		err = nil
	}
	counted = err
}

// refusal is the error of a refused call: the error of package collector with a gRPC status.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// GRPCStatus returns the status that gRPC sends to the caller. status.FromError calls GRPCStatus, too.
func (r refusal) GRPCStatus() *status.Status {
	s := status.New(codes.ResourceExhausted, r.Error())
	if with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)}); err == nil {
		return with
	}
	return s
}
