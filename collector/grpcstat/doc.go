// Package grpcstat counts the calls of gRPC services and clients: interceptors on package collector.
//
//	srv := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(grpcstat.UnaryServer(c, grpcstat.OriginFromMetadata("x-caller"))),
//		grpc.ChainStreamInterceptor(grpcstat.StreamServer(c, grpcstat.OriginFromMetadata("x-caller"))),
//	)
//
//	conn, err := grpc.NewClient(target,
//		grpc.WithChainUnaryInterceptor(grpcstat.UnaryClient(c)),
//		grpc.WithChainStreamInterceptor(grpcstat.StreamClient(c)),
//	)
//
// The resource of a call that a server takes is its full method, such as "/pkg.Service/Method"; that of a call that a client makes is
// "client /pkg.Service/Method", so that a gateway, which does both, has two resources. Calls that a server takes are inbound and
// enter by [Entrance]; calls that a client makes are outbound. Each is an entry of its own, and its context is passed on:
// what a handler calls stands below the handler in the call tree, if it is called with the handler's context.
//
// # Limits
//
// Calls ask the Collector's limits. A server answers a call that is refused with ResourceExhausted, before the handler
// runs and before a stream's first message is read, with a RetryInfo of one second. A client does not send it.
// The error has that code in both places, and errors.Is finds [collector.ErrBlocked] in it, as interceptors further out
// and callers may want to know. Its message, which a server sends to the caller, names the limit and its reading.
//
// # Codes and exceptions
//
// A call is counted with the code that it ended with, under gRPC's name for it, such as NotFound. One that a limit refused is
// a block and has none, and so has one that panicked: what its caller gets is not known here.
//
// A code that means that the callee failed is an exception; one that is an answer about the call is none:
//
//	code                server  client
//	OK                  no      no
//	Canceled            no      no      the caller did not wait for it
//	Unknown             yes     yes     an error that was not foreseen
//	InvalidArgument     no      no      an answer about the request
//	DeadlineExceeded    yes     yes     the callee was too slow
//	NotFound            no      no      an answer about the data
//	AlreadyExists       no      no      an answer about the data
//	PermissionDenied    no      no      an answer about the caller
//	ResourceExhausted   no      yes     a limit of the callee did its work; its caller went without
//	FailedPrecondition  no      no      an answer about the data
//	Aborted             no      no      two calls met, and one gave way
//	OutOfRange          no      no      an answer about the request
//	Unimplemented       yes     yes     caller and callee do not fit together
//	Internal            yes     yes     the callee is broken
//	Unavailable         yes     yes     the callee cannot be reached, or is going
//	DataLoss            yes     yes     the callee is broken
//	Unauthenticated     no      no      an answer about the caller
//
// Any other number is an exception. An error that is no gRPC status has the code that gRPC gives it:
// Canceled and DeadlineExceeded for the errors of contexts, Unknown for all else. [collector.Options].Exception is asked
// about the rest, with the error as the handler or the call returned it, and can only say no. The option [Exception] puts
// another rule in the place of this one. OpenTelemetry's rule for servers is this one; of clients it takes every code but OK for
// an error. Calls that are not to be counted at all, such as health checks, are for [Skip].
//
// A handler that panics, or ends its goroutine, ends its call with [collector.ErrPanicked]; the panic goes on. So does
// one of interceptors further in and their streams, and of the error's own methods. The function of [Origin] is asked
// before a call enters: if it panics, the call is not counted. Where a client's stream ends by itself, with its context
// or its connection, there is nobody for a panic of [collector.Options].Exception and ExceptionClass to go on to: it ends
// there, and the call is an exception.
//
// # Caveats
//
// A stream is a call of the server's from when its headers have come, because the server has work with it from then on,
// and a unary call from when its request has been read. So a stream that the client cancels before its first message has
// passed and completed, with Canceled, though the method of a service that first reads a request, as those with a
// stream of answers do, has not run; a unary call that is cancelled so early is none.
//
// What interceptors do not see is not counted: calls to methods that the server does not have, requests that cannot be
// decoded, and answers that cannot be encoded or are too large, which count as the handler left them.
//
// A stream is one call, and its response time is its whole life. One that is open for a day, such as a health watch, is
// in flight for a day, and weighs on the average of its resource when it ends.
//
// A client's stream that is neither read to its end nor cancelled stays in flight until its connection is closed, as
// gRPC keeps it until then.
//
// Interceptors that retry make several calls of one. Put these interceptors inside of them to count each attempt, or
// outside to count them as one. The retries that gRPC makes by itself are always one.
package grpcstat
