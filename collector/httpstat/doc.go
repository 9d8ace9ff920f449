// Package httpstat provides net/http middleware that counts the requests of HTTP services with package collector.
//
//	mux := http.NewServeMux()
//	mux.HandleFunc("GET /users/{id}", user)
//	http.ListenAndServe(addr, httpstat.Mux(c, mux))
//
// The resource of a request is the route that it matches, never its raw path, because the number of names must be
// small. The route must be known before the handler runs, because a call passes when it enters. There are three ways to
// determine it: [Mux] looks it up in an http.ServeMux, [Route] wraps the handler of one route, and [Handler] takes a
// function. Requests that match no route share the name [Unmatched].
//
// If the routes of a service are unknown, [PathName] makes names from paths. Clients can invent paths, so such names
// should be earned: see [Earn] and [Names].
//
// [Origin] and [OriginHeader] set the origin of a request: its sender. Limits are checked before the handler runs; the
// response to a refused request is 429. [Transport] counts the calls to other services.
//
//	client := &http.Client{Transport: httpstat.Transport(c, nil, nil)}
//
// # Statuses
//
// A request is counted with the status of its response: the first final status that the handler wrote, 200 if the
// handler wrote none, or 101 if it hijacked the connection. If a handler panics before it writes a status, the request
// has no code: net/http closes the connection, and the client gets no response. If the handler panics later, the
// request has the status that the handler wrote, although net/http sends nothing of a short response that was not
// flushed. For middleware that recovers panics and sends a status, use [Recovered]. A request that a limit refused is a
// block, not a completion, and has no code.
//
// If the client hangs up before the response begins, the status is [StatusClientClosedRequest], 499 as in the log of
// nginx. The status that the handler writes afterwards is ignored. httpstat recognizes a hang-up by the context of
// the request, because net/http cancels it without a cause. If the response has begun before the hang-up, the request
// keeps the status of the response. On HTTP/1, the response to a request with a body begins when its header is sent.
// net/http delays the header until two kilobytes are written, until a flush, or until the handler returns. A service
// that cancels the contexts of its requests itself, for example the BaseContext of its server at shutdown, should give
// a cause (context.WithCancelCause). Otherwise these requests count as hang-ups.
//
// The response to a gRPC call has HTTP status 200, and the gRPC code in the field grpc-status of its trailers or its
// header. A POST request is a gRPC call if its content type begins with application/grpc. It is counted with the gRPC
// code if the response has one. The documentation of package grpcstat lists the codes that are exceptions; the statuses
// of [Exception] are exceptions, too. gRPC-Web sends the trailers in the body, so only a code in the header is visible.
//
// A status of 500 or more is an exception, for handlers and for [Transport], unless [Exception] changes this. A panic
// of a handler is an exception, too, and propagates. This includes http.ErrAbortHandler, the panic that aborts a
// response, unless the client has hung up. OpenTelemetry has the same rule for servers. For clients, it counts 400 and
// more as errors. To do the same, use
//
//	httpstat.Exception(func(status int) bool { return status >= 400 })
//
// [Skip] excludes requests that should not be counted, such as health checks.
//
// The response time is the time of the handler. It ends when the handler returns, even if the connection was hijacked.
//
// # Routers and frameworks
//
// Requests to a ServeMux below another one are counted with full patterns. Use [StripPrefix] instead of
// http.StripPrefix to keep them:
//
//	mux.Handle("/api/", httpstat.StripPrefix("/api", users)) // GET /api/users/{id}
//
// The modules ginstat, echostat, echov5stat and chistat have middleware with the same options for gin, echo and chi.
// All use [Middleware], which works with any router that determines the route of a request before it calls middleware.
//
// # Caveats
//
// A request that passes two of these handlers is one inbound call. It counts for both resources, the inner one below
// the outer one, so a sum over resources contains it twice.
//
// The recorded status is the status that the handler wrote. Outer middleware that replaces the response, as
// http.TimeoutHandler does, is not visible; install it inside.
//
// # The handler's request and writer
//
// The handler gets a copy of the request. The context of the copy contains the entry of the request, so entries that
// the handler makes with this context are nested below it. Outer middleware sees the original request, without the
// entry. When the handler returns or panics, the fields that it has set in the copy are copied back. Outer middleware
// therefore sees the form, the pattern and the path values, and net/http deletes the files of an upload.
//
// The ResponseWriter that handlers get implements http.Flusher, http.Hijacker, http.CloseNotifier, http.Pusher and
// io.ReaderFrom exactly if the original one does. It has the methods of http.ResponseController, and Unwrap. The
// handler of an HTTP/1 request with a body gets the ResponseWriter of net/http itself, because http.MaxBytesReader
// closes the connection only through it. If other middleware has wrapped the ResponseWriter outside, further methods of
// that wrapper are only accessible through Unwrap.
package httpstat
