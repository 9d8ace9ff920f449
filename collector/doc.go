// Package collector is the SDK: it keeps exact statistics of a Go service's calls, second by second.
//
//	c, err := collector.New(collector.Options{})
//	checkout := c.Resource("checkout") // call Resource once, and keep the result (a handle)
//
//	func handle() (err error) {
//		return checkout.Do(func() error { … })
//	}
//
// If the call is not a single function, mark its start with Enter and its end with End:
//
//	func handle() (err error) {
//		e := checkout.Enter()
//		defer e.End(&err)
//		…
//	}
//
// If the call belongs to a request, pass the context of the request to [Collector.Enter] or [Resource.EnterContext].
// These methods return the context of the call. Another call that enters with this context is nested below the call:
//
//	ctx, e, err := c.Enter(ctx, "checkout", collector.Origin("mobile"), collector.Inbound())
//	…
//	ctx, inner, err := loadUser.EnterContext(ctx) // nested below checkout; loadUser is another handle
//
// A [Collector] holds all data that exporters read. It has a [Resource] for each name, up to a maximum number. An
// [Entry] is a call in flight. A call has a resource, an origin (its caller), and an entrance (the point where its
// chain of calls enters the process). The Collector records each call once, for this combination.
//
// A [View] reads the records of many combinations as one: the current windows, the totals, and the sealed seconds of an
// interval of wall-clock time. A sealed second has ended and never changes. [Resource.View], [Resource.Origins],
// [Resource.Entrances], [Collector.Inbound] and [Collector.Tree] return Views.
//
// A call may end with a [Code], such as an HTTP status. A [Limit] refuses calls.
//
// Packages in subdirectories instrument frameworks. Package httpstat is for HTTP services and clients. Packages
// ginstat, echostat, echov5stat and chistat are for web frameworks, and grpcstat is for gRPC. Package sentinelstat is
// for services that use sentinel-golang, and otelstat for services that use OpenTelemetry. Package limitfile reads
// limits from a file.
//
// # Caveats
//
// If the Entry of a call is never ended, the call stays in flight for ever. In a service with this defect, the number
// of calls in flight only grows.
//
// Statistics live only in memory: after a restart, all counts begin at zero. To keep the numbers, send them to a
// database or a log with an exporter.
//
// Names should be few and known in advance. If there are more names than [Options] allow, the surplus names share one
// resource. [Collector.Seal] retires resources that have been idle for long: it removes them and frees their memory. If
// the table of resources is full, a new name also retires an idle resource. Use [FromRequest] for names that are made
// from requests.
package collector
