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
//	e := checkout.Enter()
//	…
//	e.Exit(err)
//
// A [Collector] holds a [Resource] for each name, up to a limit, and everything that exporters read. An [Entry] is one
// call in flight. Package httpstat below this one instruments HTTP services.
//
// # Caveats
//
// An Entry that is never exited stays in flight for ever: a leak shows as in-flight calls that only grow. Statistics
// live in memory; exporters take them out, and a restart begins at zero. Resource names should be few and known in
// advance: beyond [Options].MaxResources they are counted together.
package collector
