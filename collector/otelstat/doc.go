// Package otelstat counts the spans of a service that traces with OpenTelemetry: a SpanProcessor on package collector.
//
//	provider := trace.NewTracerProvider(
//		trace.WithSpanProcessor(otelstat.NewProcessor(c)),
//		trace.WithSampler(trace.AlwaysRecord(sampler)), // counts all, exports those that the sampler takes
//		trace.WithBatcher(exporter),
//	)
//
// # Sampling
//
// The SDK tells processors of spans that are recorded, and a sampler that drops a span keeps it from being counted. So a service
// that samples wraps its sampler, as above, in the SDK's AlwaysRecord: then every span is counted, and those that the sampler
// takes are exported, as before. A call is counted here with the id of its trace as an exemplar if its trace is sampled.
//
// # What is counted
//
// A span has its final name only when it ends: that of otelhttp gets the route's after the handler has run. So a call is counted
// when its span ends, under the name that it has then, in the second in which End is called: it passes and completes, with the
// span's duration, in one change. Its begin is in no second, and nothing is known of what was in flight: concurrency reads as 0,
// no limit refuses such a call, and limits on concurrency do not know it. Use a middleware for these. A span that
// never ends is never counted, and nothing is kept for it; one that ends twice is one call. A timestamp that is given to End
// changes the duration, not the second; where it is before the begin, the duration is 0.
//
// Spans of the kinds server and consumer are inbound calls, by [Entrance]; those of the kinds client and producer are outbound.
// A span with a parent in the same process is a part of that: it is in its resource's numbers, not in those of the entrance or
// the process. There is no call tree: a processor does not know of the entries above a span.
//
// The code of a call is the attribute http.response.status_code, or http.status_code; of gRPC rpc.grpc.status_code, or
// rpc.response.status_code with rpc.system (or rpc.system.name) grpc. A call whose span has the status Error is an exception,
// of type [*Error], by which [collector.Options].Exception and ExceptionClass can tell which; [Exception] puts another rule in the
// place of the status. A span that was never given the status Error is none, whatever its events are: a panic is an exception if
// the instrumentation says so, as those of HTTP and gRPC do.
//
// # Names
//
// The names of spans are few, by OpenTelemetry's conventions. Where a service makes them of what strangers send, such as paths, the
// Collector's limits hold: what is beyond them is counted for [collector.Other]. [Skip] leaves spans out, such as those of health checks,
// or all that are internal.
package otelstat
