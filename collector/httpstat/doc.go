// Package httpstat provides net/http middleware that counts the requests of HTTP services with package collector.
//
//	mux := http.NewServeMux()
//	mux.HandleFunc("GET /users/{id}", user)
//	http.ListenAndServe(addr, httpstat.Mux(c, mux))
//
// The resource of a request is the route that it matches, never its raw path, because the number of names must be
// small. The route must be known before the handler runs, because a call is counted as passed when it enters. There are
// three ways to determine the route: [Mux] looks it up in an http.ServeMux, [Route] wraps the handler of one route, and
// [Handler] takes a function. Requests that match no route share the name [Unmatched].
//
// If the routes of a service are unknown, [PathName] makes names from paths. Clients can invent paths. With [Earn], a
// name gets a resource only after the service has responded to a request of this name with success; see [Names].
//
// [Origin] and [OriginHeader] set the origin of a request: its sender. Limits are checked before the handler runs. The
// response to a refused request is 429.
//
// [Transport] counts the calls to other services.
//
//	client := &http.Client{Transport: httpstat.Transport(c, nil, nil)}
//
// # Statuses
//
// A request is counted with the status of its response: the first final status that the handler wrote, 200 if the
// handler wrote no status, or 101 if the handler hijacked the connection. A request that a limit refused is a block,
// not a completion, and has no code.
//
// If a handler panics before it writes a status, the request has no code: net/http closes the connection, and the
// client gets no response. If the handler panics after it has written a status, the request has this status. The client
// may not get this status, because net/http holds back a short response that was not flushed. If outer middleware
// recovers the panic and sends a status, use [Recovered] to count the request with this status.
//
// If the client hangs up before the response begins, the status is [StatusClientClosedRequest], 499 as in the log of
// nginx. The status that the handler writes afterwards is ignored. If the response has begun before the client hangs
// up, the request keeps the status of the response. A response begins with the first status, byte or flush of the
// handler. Only the response to an HTTP/1 request with a body begins later, when net/http sends the header of the
// response. net/http delays the header until two kilobytes are written, until a flush, or until the handler returns.
//
// When the client hangs up, net/http cancels the context of the request without a cause. From this, httpstat recognizes
// that the client has hung up. A service may cancel the contexts of its requests itself, for example the BaseContext of
// its server at shutdown. The service should then pass a cause (context.WithCancelCause). Otherwise httpstat counts
// these requests as if their clients had hung up.
//
// The response to a gRPC call has HTTP status 200, and the gRPC code in the field grpc-status of its trailers or its
// header. A POST request is a gRPC call if its content type begins with application/grpc. If the recorded status is 200
// and the response has a gRPC code, the call is counted with the gRPC code. Otherwise it is counted with the status.
// The documentation of package grpcstat lists the codes that are exceptions. A gRPC call is also an exception if
// [Exception] selects its HTTP status. gRPC-Web sends the trailers in the body, so only a code in the header is
// visible.
//
// A status of 500 or more is an exception, for handlers and for [Transport], unless [Exception] changes this. A panic
// of a handler is an exception, too, and propagates. The panic http.ErrAbortHandler, with which a handler aborts the
// response, is an exception only if the client has not hung up.
//
// OpenTelemetry counts statuses of 500 and more as errors of servers, and statuses of 400 and more as errors of
// clients. To count statuses of 400 and more as exceptions, use
//
//	httpstat.Exception(func(status int) bool { return status >= 400 })
//
// [Skip] excludes requests that should not be counted, such as health checks.
//
// The response time is the time of the handler. It ends when the handler returns, even if the connection was hijacked.
//
// # Routers and frameworks
//
// An http.ServeMux can be the handler of a route of another ServeMux. A request is then counted under the full pattern,
// which includes the pattern in the inner ServeMux. If the outer route strips a prefix, use [StripPrefix] instead of
// http.StripPrefix, so that the full pattern is known:
//
//	mux.Handle("/api/", httpstat.StripPrefix("/api", users)) // GET /api/users/{id}
//
// The modules ginstat, echostat, echov5stat and chistat have middleware with the same options for gin, echo and chi.
// They use [Middleware], which works with any router that determines the route of a request before it calls middleware.
//
// # Caveats
//
// If a request goes through two handlers of this package, one inside the other, it counts as a call of the resources of
// both handlers, but as only one inbound call. The resource of the inner handler is nested below the resource of the
// outer handler. A sum over resources therefore contains the request twice.
//
// The recorded status is the status that the handler wrote. If outer middleware replaces the response, as
// http.TimeoutHandler does, httpstat does not see the status of the replacement. Install such middleware inside the
// handlers of this package. httpstat then sees the response that the middleware sends.
//
// # The handler's request and writer
//
// The handler gets a copy of the request. The context of the copy contains the request's call, so calls that the
// handler makes with this context are nested below it. Outer middleware sees the original request, without this
// context. The handler may set fields of the copy. When the handler returns or panics, these fields are copied back to
// the original request. Outer middleware therefore sees the form, the pattern and the path values, and net/http deletes
// the files of an upload.
//
// The ResponseWriter that handlers get implements http.Flusher, http.Hijacker, http.CloseNotifier, http.Pusher and
// io.ReaderFrom exactly if the original ResponseWriter does. It also has the optional methods that
// http.ResponseController calls, and the method Unwrap. If outer middleware has wrapped the ResponseWriter, further
// methods of that wrapper are only accessible through Unwrap.
//
// There is one case without a wrapper: if the original ResponseWriter is the HTTP/1 writer of net/http itself, and the
// request has a body, the handler gets the original ResponseWriter. http.MaxBytesReader can close the connection only
// through this writer.
package httpstat
