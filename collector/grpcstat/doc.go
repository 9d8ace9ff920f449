// Package grpcstat counts the calls of gRPC services and clients. It provides interceptors for package collector.
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
// The resource of a server's call is its full method, such as "/pkg.Service/Method". The resource of a client's call is
// "client /pkg.Service/Method", so a gateway, which serves and calls the same method, has two resources. Calls of
// servers are inbound and enter by [Entrance]; calls of clients are outbound. The handler of a call gets a context with
// the call: calls that the handler makes with this context are below the handler's call in the call tree.
//
// # Limits
//
// Limits of the Collector apply to all calls. A server refuses a call before the handler runs, and before it reads the
// first message of a stream. The response is ResourceExhausted with a RetryInfo of one second. A client does not send a
// refused call. In both cases the error has the code ResourceExhausted, and errors.Is(err, [collector.ErrBlocked]) is
// true for the error that outer interceptors and callers get. A server sends the message of the error to the caller;
// the message contains the limit and its current value.
//
// # Codes and exceptions
//
// A call is counted with its final code, under gRPC's name, such as NotFound. A refused call is a block and has no
// code. A call that panicked has no code, because this package does not know which code the caller gets.
//
// A code is an exception if it means that the called service failed. A code is no exception if it only describes the
// request, the data or the caller. The columns say whether a code is an exception for a server and for a client:
//
//	code                server  client  reason
//	OK                  no      no      the call succeeded
//	Canceled            no      no      the caller stopped waiting
//	Unknown             yes     yes     unexpected error
//	InvalidArgument     no      no      describes the request
//	DeadlineExceeded    yes     yes     the callee was too slow
//	NotFound            no      no      describes the data
//	AlreadyExists       no      no      describes the data
//	PermissionDenied    no      no      describes the caller
//	ResourceExhausted   no      yes     the callee refused the call by a limit; the caller got no result
//	FailedPrecondition  no      no      describes the data
//	Aborted             no      no      two calls conflicted, and one was aborted
//	OutOfRange          no      no      describes the request
//	Unimplemented       yes     yes     caller and callee are incompatible
//	Internal            yes     yes     the callee is broken
//	Unavailable         yes     yes     the callee is unreachable or shutting down
//	DataLoss            yes     yes     the callee is broken
//	Unauthenticated     no      no      describes the caller
//
// Any other code is an exception. An error that is not a gRPC status has the code that gRPC gives it: Canceled or
// DeadlineExceeded for context errors, Unknown for all other errors. [collector.Options].Exception can reject the
// exceptions of this table; the function gets the error that the handler or the call returned. The option [Exception]
// replaces the table. OpenTelemetry's rule for servers equals the table; for clients it treats every code except OK as
// an error. [Skip] excludes calls that should not be counted, such as health checks.
//
// A handler that panics or calls runtime.Goexit ends its call with [collector.ErrPanicked]; the panic propagates. The
// same is true for a panic in an inner interceptor, in a method of an inner interceptor's stream, and in a method of
// the returned error. (grpcstat calls methods of the error to find the code.) The function of [Origin] runs before a
// call enters: if it panics, the call is not counted.
//
// A client's stream can end in the background, when its context ends or its connection is closed. A panic of
// [collector.Options].Exception or ExceptionClass cannot propagate to a caller then. grpcstat therefore recovers the
// panic, and counts the call as an exception.
//
// # Caveats
//
// A server counts a stream from the arrival of its headers, because the stream takes resources from then on. A unary
// call that is canceled before the server has read the request is not counted. A stream that is canceled before its
// first message is counted: it passes, and completes with Canceled. This is true even if the method of the service
// never runs, as for a method with a single request and a stream of responses: generated code reads the request before
// it calls the method.
//
// Events outside the interceptors are not counted: calls of methods that the server does not have, and requests that
// cannot be decoded. A call whose response cannot be encoded or is too large counts with the result of the handler.
//
// A stream is one call, and its response time is its whole life. For example, a health watch that is open for a day is
// in flight for a day. When the stream ends, its response time of a day affects the average of the resource.
//
// If a client neither reads a stream to its end nor cancels it, the stream stays in flight until its connection is
// closed, because gRPC keeps the stream until then.
//
// Interceptors that retry make several calls out of one. Install the interceptors of this package inside of the
// retrying interceptors to count each attempt, or outside of them to count one call. gRPC's built-in retries always
// count as one call.
package grpcstat
