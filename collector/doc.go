// Package collector is the SDK: it keeps exact statistics of a Go service's calls, second by second.
//
//	c, err := collector.New(collector.Options{})
//	checkout := c.Resource("checkout") // once; keep the handle
//
//	func handle() (err error) {
//		return checkout.Do(func() error { … })
//	}
//
// or, if the call is not one function,
//
//	func handle() (err error) {
//		e := checkout.Enter()
//		defer e.End(&err)
//		…
//	}
//
// or, for the calls of a request, with an origin, and with a context that leads to the nested calls,
//
//	ctx, e, err := c.Enter(ctx, "checkout", collector.Origin("mobile"), collector.Inbound())
//	ctx, e, err := load.EnterContext(ctx) // below it, by a kept handle
//
// A [Collector] holds a [Resource] for each name, up to a limit, and all data that exporters read. An [Entry] is a call
// in flight. A call is recorded once, for its resource, origin and entrance. [Resource.View], [Resource.Origins],
// [Resource.Entrances], [Collector.Inbound] and [Collector.Tree] read these records through a [View]: the current
// windows, totals, and the sealed seconds by the wall clock. A call may end with a [Code], such as an HTTP status. A
// [Limit] refuses calls.
//
// The packages below this one instrument frameworks: httpstat HTTP services and clients; ginstat, echostat, echov5stat
// and chistat web frameworks; grpcstat gRPC; sentinelstat services that use sentinel-golang. Package limitfile reads
// limits from a file.
//
// # Caveats
//
// An Entry that is never exited stays in flight for ever: a leak shows as a number of calls in flight that only grows.
// Statistics live in memory; exporters deliver them, and a restart begins at zero. Names should be few and known in
// advance. Names beyond the limits of [Options] share one resource. [Collector.Seal] retires idle resources; so does a
// new name if the table is full. Use [FromRequest] for names that are made from requests.
package collector
