package grpcstat

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

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
