package otelstat_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/otelstat"
)

// newTracer returns a Collector, a tracer whose spans the Collector counts, and a store of the exported spans.
func newTracer(
	t testing.TB, o collector.Options, sampler sdktrace.Sampler, opts ...otelstat.Option,
) (*collector.Collector, trace.Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	c, err := collector.New(o)
	if err != nil {
		t.Fatal(err)
	}
	exported := tracetest.NewInMemoryExporter()
	p := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sampler),
		sdktrace.WithSpanProcessor(otelstat.NewProcessor(c, opts...)),
		sdktrace.WithSyncer(exported),
	)
	return c, p.Tracer("test"), exported
}

// codesOf returns the number of completed calls of a view by code.
func codesOf(v collector.View) map[string]int64 {
	all := map[string]int64{}
	for code, n := range v.Codes() {
		if n > 0 {
			all[code.String()] = n
		}
	}
	return all
}

func TestASpanCountsInTheSecondOfItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tracer, _ := newTracer(t, collector.Options{}, sdktrace.AlwaysSample())
		_, span := tracer.Start(t.Context(), "HTTP GET", trace.WithSpanKind(trace.SpanKindServer))
		time.Sleep(2300 * time.Millisecond)
		span.SetName("GET /users/{id}") // as HTTP middleware does after routing
		span.SetAttributes(attribute.Int("http.response.status_code", 200))
		end := time.Now().Truncate(time.Second)
		span.End()
		time.Sleep(2 * time.Second)

		r := c.Resource("GET /users/{id}")
		seconds := r.View().Last(10)
		if len(seconds) == 0 {
			t.Fatal("no second")
		}
		for _, m := range seconds {
			want := int64(0)
			if m.Start.Equal(end) {
				want = 1
			}
			if m.Pass != want || m.Complete != want || m.InFlight != 0 || m.InFlightMax != 0 || m.InFlightTime != 0 {
				t.Errorf(
					"second %v: %+v, want %d calls that passed and completed, and nothing in flight", m.Start, m,
					want,
				)
			}
		}
		total := r.Snapshot(nil).Total
		if total.RTSum != 2300*time.Millisecond || total.RTMax != 2300*time.Millisecond {
			t.Errorf("response time %v, want 2.3s", total.RTSum)
		}
		for _, r := range c.Seal().Resources {
			if r.Name() == "HTTP GET" {
				t.Error("the name that the span had before its end has a resource")
			}
		}
	})
}

func TestKinds(t *testing.T) {
	c, tracer, _ := newTracer(t, collector.Options{}, sdktrace.AlwaysSample())
	ctx, server := tracer.Start(t.Context(), "server", trace.WithSpanKind(trace.SpanKindServer))
	inner, internal := tracer.Start(ctx, "internal")
	_, client := tracer.Start(inner, "client", trace.WithSpanKind(trace.SpanKindClient))
	client.End()
	internal.End()
	server.End()
	remote := trace.ContextWithRemoteSpanContext(t.Context(), server.SpanContext())
	_, consumer := tracer.Start(remote, "consumer", trace.WithSpanKind(trace.SpanKindConsumer))
	consumer.End()
	_, alone := tracer.Start(t.Context(), "cron")
	alone.End()

	for _, tc := range []struct {
		what string
		view collector.View
		want int64
	}{
		{"inbound: server and consumer", c.Inbound(), 2},
		{"process: server, consumer and cron", c.Tree().View(), 3},
		{"resource client", c.Resource("client").View(), 1},
		{"resource internal", c.Resource("internal").View(), 1},
	} {
		if got := tc.view.Snapshot(nil).Total; got.Pass != tc.want || got.Complete != tc.want {
			t.Errorf("%s: %d passed, %d completed, want %d", tc.what, got.Pass, got.Complete, tc.want)
		}
	}
}

func TestCodesAndExceptions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		attrs  []attribute.KeyValue
		status codes.Code
		code   string
		failed bool
	}{
		{"HTTP", []attribute.KeyValue{attribute.Int("http.response.status_code", 404)}, codes.Unset, "404", false},
		{
			"HTTP before the conventions were stable",
			[]attribute.KeyValue{attribute.Int("http.status_code", 503)},
			codes.Error, "503", true,
		},
		{
			"made-up status",
			[]attribute.KeyValue{attribute.Int("http.response.status_code", 999)},
			codes.Unset,
			"other", false,
		},
		{
			"status that is no number",
			[]attribute.KeyValue{attribute.String("http.response.status_code", "404")},
			codes.Unset, "", false,
		},
		{
			"negative status",
			[]attribute.KeyValue{attribute.Int64("http.response.status_code", -1<<63)},
			codes.Unset,
			"other", false,
		},
		{"gRPC", []attribute.KeyValue{attribute.Int("rpc.grpc.status_code", 5)}, codes.Unset, "NotFound", false},
		{"gRPC OK", []attribute.KeyValue{attribute.Int("rpc.grpc.status_code", 0)}, codes.Unset, "OK", false},
		{"gRPC by name", []attribute.KeyValue{
			attribute.String("rpc.system.name", "grpc"),
			attribute.String("rpc.response.status_code", "DEADLINE_EXCEEDED"),
		}, codes.Error, "DeadlineExceeded", true},
		{"gRPC cancelled", []attribute.KeyValue{
			attribute.String("rpc.system", "grpc"),
			attribute.String("rpc.response.status_code", "CANCELLED"),
		}, codes.Unset, "Canceled", false},
		{
			"gRPC made up",
			[]attribute.KeyValue{attribute.Int64("rpc.grpc.status_code", 1<<62)},
			codes.Unset, "other",
			false,
		},
		{"another RPC", []attribute.KeyValue{
			attribute.String("rpc.system.name", "jsonrpc"),
			attribute.String("rpc.response.status_code", "OK"),
		}, codes.Unset, "", false},
		{"no code, status Error", nil, codes.Error, "", true},
		{"no code, status Ok", nil, codes.Ok, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, tracer, _ := newTracer(t, collector.Options{}, sdktrace.AlwaysSample())
			_, span := tracer.Start(t.Context(), "call")
			span.SetAttributes(tc.attrs...)
			span.SetStatus(tc.status, "")
			span.End()
			v := c.Resource("call").View()
			if got, want := codesOf(v), map[string]int64{tc.code: 1}; !maps.Equal(got, want) {
				t.Errorf("codes %v, want %v", got, want)
			}
			if got := v.Snapshot(nil).Total.Exception == 1; got != tc.failed {
				t.Errorf("an exception: %v, want %v", got, tc.failed)
			}
		})
	}
}

func TestOptionsGetTheSpanError(t *testing.T) {
	class := func(err error) string {
		var e *otelstat.Error
		if errors.As(err, &e) {
			return e.Type
		}
		return "?"
	}
	var seen error
	c, tracer, _ := newTracer(
		t,
		collector.Options{
			ExceptionClass: class,
			Exception:      func(err error) bool { seen = err; return err.Error() != "gone" },
		},
		sdktrace.AlwaysSample(),
	)
	for description, kind := range map[string]string{"connection refused": "dial", "gone": "client"} {
		_, span := tracer.Start(t.Context(), "call")
		span.SetStatus(codes.Error, description)
		span.SetAttributes(attribute.String("error.type", kind))
		span.End()
	}
	if got := maps.Collect(c.Resource("call").Exceptions()); got["dial"] != 1 || len(got) != 1 {
		t.Errorf("classes %v, want one exception of the class dial; Options.Exception got %v last", got, seen)
	}
}

// A span that ends in an unusual way counts as at most one call, and the response time is never negative.
func TestUnusualSpanEnds(t *testing.T) {
	c, tracer, _ := newTracer(t, collector.Options{}, sdktrace.AlwaysSample())
	start := func(name string, at time.Time) trace.Span {
		_, span := tracer.Start(t.Context(), name, trace.WithTimestamp(at))
		return span
	}
	now := time.Now()

	twice := start("twice", now)
	twice.End()
	twice.SetName("renamed")
	twice.End()
	start("never", now)
	start("before it began", now).End(trace.WithTimestamp(now.Add(-time.Hour)))
	start("long ago", now.Add(-time.Hour)).End(trace.WithTimestamp(now.Add(-59 * time.Minute)))
	elsewhere := start("in other goroutines", now)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { elsewhere.End() })
	}
	wg.Wait()
	func() {
		defer func() { _ = recover() }()
		_, span := tracer.Start(t.Context(), "panics")
		defer span.End()
		panic("oh")
	}()

	got := map[string]string{}
	for _, r := range c.Seal().Resources {
		s := r.Snapshot(nil)
		got[r.Name()] = fmt.Sprint(s.Total.Pass, s.Total.Complete, s.InFlight)
		if s.Total.RTSum < 0 {
			t.Errorf("%s took %v", r.Name(), s.Total.RTSum)
		}
	}
	want := map[string]string{
		"twice": "1 1 0", "before it began": "1 1 0", "long ago": "1 1 0", "in other goroutines": "1 1 0",
		"panics": "1 1 0",
	}
	if !maps.Equal(got, want) {
		t.Errorf("passed, completed, in flight: %v, want %v", got, want)
	}
	if rt := c.Resource("before it began").Snapshot(nil).Total.RTSum; rt != 0 {
		t.Errorf("a span that ended before it began took %v", rt)
	}
	if rt := c.Resource("long ago").Snapshot(nil).Total.RTSum; rt != time.Minute {
		t.Errorf("a span of a minute took %v", rt)
	}
}

// OpenTelemetry's SDK does not pass dropped spans to processors. With AlwaysRecord, all spans are counted, and only
// sampled spans are exported.
func TestSampling(t *testing.T) {
	for _, tc := range []struct {
		name                        string
		sampler                     sdktrace.Sampler
		counted, exported, exemplar int
	}{
		{"all", sdktrace.AlwaysSample(), 10, 10, 1},
		{"none", sdktrace.NeverSample(), 0, 0, 0},
		{"none, all recorded", sdktrace.AlwaysRecord(sdktrace.NeverSample()), 10, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, tracer, exported := newTracer(t, collector.Options{}, tc.sampler)
			for range 10 {
				_, span := tracer.Start(t.Context(), "call", trace.WithTimestamp(time.Now().Add(-20*time.Millisecond)))
				span.End()
			}
			r := c.Resource("call")
			if n := r.Snapshot(nil).Total.Complete; n != int64(tc.counted) {
				t.Errorf("%d counted, want %d", n, tc.counted)
			}
			if n := len(exported.GetSpans()); n != tc.exported {
				t.Errorf("%d exported, want %d", n, tc.exported)
			}
			if n := len(r.Exemplars()); n < tc.exemplar || tc.exemplar == 0 && n > 0 {
				t.Errorf("%d exemplars, want %d", n, tc.exemplar)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	peer := func(s sdktrace.ReadOnlySpan) string {
		for _, a := range s.Attributes() {
			if a.Key == "peer" {
				return a.Value.AsString()
			}
		}
		return ""
	}
	c, tracer, _ := newTracer(t, collector.Options{}, sdktrace.AlwaysSample(),
		otelstat.Origin(peer),
		otelstat.Skip(func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "GET /healthz" }), otelstat.Skip(nil),
		otelstat.Exception(func(s sdktrace.ReadOnlySpan) bool { return s.Status().Description == "really" }))
	for _, name := range []string{"GET /healthz", "call", "call"} {
		_, span := tracer.Start(t.Context(), name, trace.WithAttributes(attribute.String("peer", "web")))
		span.SetStatus(codes.Error, "not really")
		span.End()
	}
	_, span := tracer.Start(t.Context(), "call")
	span.SetStatus(codes.Error, "really")
	span.End()
	r := c.Resource("call")
	if total := r.Snapshot(nil).Total; total.Complete != 3 || total.Exception != 1 {
		t.Errorf("%d calls, %d exceptions; want 3 and 1", total.Complete, total.Exception)
	}
	for origin, v := range r.Origins() {
		if want := map[string]int64{"web": 2, "": 1}[origin]; v.Snapshot(nil).Total.Complete != want {
			t.Errorf("origin %q: %d, want %d", origin, v.Snapshot(nil).Total.Complete, want)
		}
	}
	for _, r := range c.Seal().Resources {
		if r.Name() == "GET /healthz" {
			t.Error("a skipped span is counted")
		}
	}
}

func TestNilCollectorCountsNothing(t *testing.T) {
	p := otelstat.NewProcessor(nil)
	_, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p)).Tracer("x").Start(t.Context(), "call")
	span.End()
	if err := errors.Join(p.ForceFlush(t.Context()), p.Shutdown(t.Context())); err != nil {
		t.Error(err)
	}
}

// Spans use the quota of QPS limits, but are never refused.
func TestLimitsCountSpans(t *testing.T) {
	c, tracer, _ := newTracer(t, collector.Options{}, sdktrace.AlwaysSample())
	if err := c.SetLimits([]collector.Limit{{Resource: "call", Count: 3}}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, span := tracer.Start(context.Background(), "call")
		span.End()
	}
	r := c.Resource("call")
	if total := r.Snapshot(nil).Total; total.Pass != 5 || total.Block != 0 {
		t.Errorf("%d passed, %d refused; want 5 and 0", total.Pass, total.Block)
	}
	if _, err := r.TryEnter(); !errors.Is(err, collector.ErrBlocked) {
		t.Errorf("TryEnter after the spans returns %v, want ErrBlocked", err)
	}
}

func BenchmarkSpan(b *testing.B) {
	for name, processors := range map[string]int{"without": 0, "with": 1} {
		b.Run(name, func(b *testing.B) {
			c, err := collector.New(collector.Options{})
			if err != nil {
				b.Fatal(err)
			}
			var opts []sdktrace.TracerProviderOption
			for range processors {
				opts = append(opts, sdktrace.WithSpanProcessor(otelstat.NewProcessor(c)))
			}
			tracer := sdktrace.NewTracerProvider(opts...).Tracer("bench")
			b.ReportAllocs()
			for b.Loop() {
				_, span := tracer.Start(
					context.Background(), "GET /users/{id}", trace.WithSpanKind(trace.SpanKindServer),
				)
				span.SetAttributes(attribute.Int("http.response.status_code", 200))
				span.End()
			}
		})
	}
}
