// Package collector is the SDK: it gives a Go service exact statistics of its calls, second by second.
//
//	c, err := collector.New(collector.Options{})
//	checkout := c.Resource("checkout") // once; keep the handle
//
//	func handle() (err error) {
//		return checkout.Do(func() error { … })
//	}
//
// or, where the call is not one function,
//
//	func handle() (err error) {
//		e := checkout.Enter()
//		defer e.End(&err)
//		…
//	}
//
// or, for calls that belong to a request, with who sent it and what it calls in turn,
//
//	ctx, e, err := c.Enter(ctx, "checkout", collector.Origin("mobile"), collector.Inbound())
//	ctx, e, err := load.EnterContext(ctx) // below it, by a kept handle
//
// A [Collector] holds a [Resource] for each name, up to a limit, and everything that exporters read. An [Entry] is one
// call in flight. A call is recorded once, by resource, origin and entrance; [Resource.View], [Resource.Origins],
// [Resource.Entrances], [Collector.Inbound] and [Collector.Tree] read that, each by a [View]: the windows at the present
// moment, totals, and the sealed seconds by the wall clock. A call may end with a [Code], what it was answered. A [Limit] refuses
// calls.
//
// Package httpstat below this one instruments HTTP services and clients, ginstat, echostat, echov5stat and chistat those of
// frameworks, grpcstat those of gRPC, sentinelstat services that use sentinel-golang; limitfile reads limits from a file.
//
// # Caveats
//
// An Entry that is never exited stays in flight for ever: a leak shows as in-flight calls that only grow. Statistics
// live in memory; exporters take them out, and a restart begins at zero. Names should be few and known in advance:
// beyond the limits of [Options] they are counted together. Idle resources are retired when the Collector is sealed, see
// [Collector.Seal], or when the table is full and a new name comes. Names made of what strangers send should be [Earned].
package collector
