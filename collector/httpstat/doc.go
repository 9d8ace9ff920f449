// Package httpstat counts the requests of HTTP services: net/http middleware on package collector.
//
//	mux := http.NewServeMux()
//	mux.HandleFunc("GET /users/{id}", user)
//	http.ListenAndServe(addr, httpstat.Mux(c, mux))
//
// The resource of a request is the route it matches, never its raw path: names must be few. It must be known before
// the handler runs, because a call passes when it enters. There are three ways to know it: [Mux] looks it up in an
// http.ServeMux; [Route] wraps one route's handler and is given its name; [Handler] takes a function. Requests that match no
// route share the name [Unmatched].
//
// A service whose routes are not known has names made from paths, by [PathName]. Anybody can make up paths, so these names
// should be earned: see [Earn] and [Names].
//
// Who sends a request, its origin, is set by [Origin] or [OriginHeader]. Limits are asked before the handler runs, and
// a request that they refuse is answered with 429. [Transport] counts the calls to other services.
//
//	client := &http.Client{Transport: httpstat.Transport(c, nil, nil)}
//
// # Statuses
//
// A request is counted with the status that it was answered with: the first one that the handler wrote, informational ones
// aside, 200 if it wrote none, 101 for a connection that it hijacked. A handler that panicked before it wrote any has no code:
// net/http closes the connection, and the client gets nothing. One that panicked later has the status that it wrote, though of
// a short answer that was not flushed net/http sends nothing either. Behind middleware that recovers panics and answers with a
// status there is [Recovered]. A request that a limit refused is a block, not a
// completion, and has no code.
//
// A status of 500 or more is an exception, on both sides, unless [Exception] says otherwise, and so is a handler that panicked
// (http.ErrAbortHandler included, which is how net/http aborts a response). The panic goes on. OpenTelemetry has the same rule
// for servers; of clients it takes 400 and more for errors, which is
//
//	httpstat.Exception(func(status int) bool { return status >= 400 })
//
// Requests that are not to be counted at all, such as health checks, are for [Skip].
//
// The response time is the handler's: it ends when the handler returns, for a hijacked connection, too.
//
// # Routers and frameworks
//
// A ServeMux below another one counts with its whole patterns, behind [StripPrefix] instead of http.StripPrefix, too:
//
//	mux.Handle("/api/", httpstat.StripPrefix("/api", users)) // GET /api/users/{id}
//
// For gin, echo and chi there is a middleware with these options in the modules ginstat, echostat, echov5stat and chistat
// beside this package. What they are made of is [Middleware], for routers that tell the route of a request when they call
// a middleware.
//
// # Caveats
//
// A request that passes two of these handlers is one inbound call. It counts for both resources, the inner one below the outer one,
// so it is twice in a sum over resources.
//
// The status is the one that the handler wrote. Middleware outside that answers in its place, as http.TimeoutHandler does, is
// not seen; it goes inside.
//
// A handler gets a copy of the request, whose context knows the entry: entries that the handler makes with it are
// nested below. Middleware outside sees the request without it.
//
// The ResponseWriter that handlers get implements http.Flusher, http.Hijacker and io.ReaderFrom where net/http's own does, and Unwrap
// for http.ResponseController. Any other interface of the wrapped writer is reached through Unwrap only, http.Pusher of HTTP/2
// included.
package httpstat
