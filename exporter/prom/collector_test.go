package prom_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

const ms = time.Millisecond

// service returns a Collector and its clock. The test sets the clock.
func service(t testing.TB, o collector.Options) (*collector.Collector, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o.Now = func() time.Time { return now }
	c, err := collector.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, &now
}

func register(t testing.TB, c *collector.Collector, o prom.Options) *prometheus.Registry {
	t.Helper()
	p, err := prom.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(p); err != nil {
		t.Fatal(err)
	}
	return r
}

var memory = regexp.MustCompile(`(?m)^(x_memory_(?:reserved_)?bytes(?:\{.*\})?) .*$`) // depends on the platform

var buildInfo = regexp.MustCompile(`(?m)^x_build_info\{.*$`)

func TestPage(t *testing.T) {
	c, now := service(
		t,
		collector.Options{MaxResources: 1, Windows: node.Options{Bounds: []time.Duration{5 * ms, 100 * ms}}},
	)
	r := c.Resource(`hos"ti` + "\n" + `le{|}\`)
	for i, rt := range []time.Duration{0, 5 * ms, 6 * ms, 300 * ms} {
		var err error
		if i == 3 {
			err = errors.New("x")
		}
		e := r.Enter()
		*now = now.Add(rt)
		e.Exit(err)
	}
	r.Block("")
	r.Block("busy")
	*now = now.Add(time.Second)
	r.Enter()
	e := c.Resource("beyond the limit").Enter()
	e.Exit(nil)

	rec := httptest.NewRecorder()
	h, err := prom.Handler(c, prom.Options{Namespace: "x"})
	if err != nil {
		t.Fatal(err)
	}
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	var page strings.Builder
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, "x_") {
			line = memory.ReplaceAllString(line, "$1 …")
			page.WriteString(buildInfo.ReplaceAllString(line, "x_build_info{…} 1"))
		}
	}
	want := `x_block_qps{resource="R"} 2
x_block_qps{resource="_other"} 0
x_block_total{reason="unspecified",resource="R"} 1
x_block_total{reason="busy",resource="R"} 1
x_block_total{reason="unspecified",resource="_other"} 0
x_entrances 1
x_entrance_overflow_events_total 0
x_leaf_overflow_events_total 0
x_leaves 2
x_limits 0
x_memory_bytes{part="statistics"} …
x_memory_bytes{part="seconds"} …
x_memory_bytes{part="histograms"} …
x_memory_bytes{part="names"} …
x_memory_bytes{part="limits"} …
x_memory_bytes{part="calls"} …
x_memory_reserved_bytes …
x_memory_max_bytes 201326592
x_origin_overflow_events_total 0
x_retired_resources_total 0
x_tree_overflow_events_total 0
x_unearned_events_total 0
x_build_info{…} 1
x_clock_offset_seconds 0
x_clock_repeated_seconds_total 0
x_clock_steps_total 0
x_complete_qps{resource="R"} 4
x_complete_qps{resource="_other"} 0
x_complete_total{resource="R"} 4
x_complete_total{resource="_other"} 1
x_exception_qps{resource="R"} 1
x_exception_qps{resource="_other"} 0
x_exception_total{resource="R"} 1
x_exception_total{resource="_other"} 0
x_in_flight{resource="R"} 1
x_in_flight{resource="_other"} 0
x_in_flight_elapsed_seconds{resource="R"} 0
x_in_flight_elapsed_seconds{resource="_other"} 0
x_in_flight_seconds_total{resource="R"} 0.310997376
x_in_flight_seconds_total{resource="_other"} 0
x_occupied_pass_total{resource="R"} 0
x_occupied_pass_total{resource="_other"} 0
x_overflow_events_total 1
x_pass_qps_peak{resource="R"} 4
x_pass_qps_peak{resource="_other"} 0
x_pass_qps{resource="R"} 4
x_pass_qps{resource="_other"} 0
x_pass_total{resource="R"} 5
x_pass_total{resource="_other"} 1
x_resources 2
x_rt_seconds_bucket{resource="R",le="0.005"} 2
x_rt_seconds_bucket{resource="R",le="0.1"} 3
x_rt_seconds_bucket{resource="R",le="+Inf"} 4
x_rt_seconds_sum{resource="R"} 0.311
x_rt_seconds_count{resource="R"} 4
x_rt_seconds_bucket{resource="_other",le="0.005"} 1
x_rt_seconds_bucket{resource="_other",le="0.1"} 1
x_rt_seconds_bucket{resource="_other",le="+Inf"} 1
x_rt_seconds_sum{resource="_other"} 0
x_rt_seconds_count{resource="_other"} 1
`
	got := strings.ReplaceAll(page.String(), `hos\"ti\nle{|}\\`, "R")
	if got := sorted(got); got != sorted(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// sorted sorts the lines, so that their order does not depend on the names of resources.
func sorted(page string) string {
	return strings.Join(slices.Sorted(strings.Lines(page)), "")
}

// The classic and the native histogram are one metric, and both contain every response time.
func TestHistogramIsClassicAndNative(t *testing.T) {
	c, now := service(t, collector.Options{})
	r := c.Resource("a")
	rts := []time.Duration{0, 1, 3 * ms, 3 * ms, 250 * ms, 9 * time.Second, 20 * time.Second}
	for _, rt := range rts {
		e := r.Enter()
		*now = now.Add(rt)
		e.Exit(nil)
	}
	families, err := register(t, c, prom.Options{}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	// The same observations in a histogram of client_golang.
	own := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "windowstat_rt_seconds", NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 500,
		Buckets: bounds(node.DefaultBounds()),
	})
	for _, rt := range rts {
		own.Observe(rt.Seconds())
	}
	var want dto.Metric
	if err := own.Write(&want); err != nil {
		t.Fatal(err)
	}
	want.Histogram.CreatedTimestamp = nil
	for _, f := range families {
		if f.GetName() == "windowstat_rt_seconds" {
			got := f.Metric[0].Histogram
			if created := got.CreatedTimestamp.AsTime(); !created.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
				t.Errorf("created %v", created)
			}
			got.CreatedTimestamp = nil
			if got.String() != want.Histogram.String() {
				t.Errorf("got  %v\nwant %v", got, want.Histogram)
			}
			return
		}
	}
	t.Error("no histogram")
}

func bounds(ds []time.Duration) (fs []float64) {
	for _, d := range ds {
		fs = append(fs, d.Seconds())
	}
	return fs
}

// The boundaries of windowstat's native histogram equal those of client_golang to the nanosecond.
func TestBoundariesMatchClientGolang(t *testing.T) {
	native := func(v float64) int {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", NativeHistogramBucketFactor: 1.1})
		h.Observe(v)
		var m dto.Metric
		if err := h.Write(&m); err != nil {
			t.Fatal(err)
		}
		return int(m.Histogram.PositiveSpan[0].GetOffset())
	}
	c, now := service(t, collector.Options{})
	var h node.Histogram
	// Response times up to a week. Beyond a week the clock of the test would advance too far.
	for i := -239; i < 150; i++ {
		edge := time.Duration(node.NativeBound(i) * 1e9)
		for _, rt := range []time.Duration{edge - 1, edge, edge + 1} {
			if rt <= 0 {
				continue
			}
			r := c.Resource(fmt.Sprint(i, rt))
			e := r.Enter()
			*now = now.Add(rt)
			e.Exit(nil)
			r.Snapshot(&h)
			for got := range h.Native() {
				if want := native(rt.Seconds()); got != want {
					t.Fatalf("%v is in bucket %d, client_golang's is %d", rt, got, want)
				}
			}
		}
	}
}

// The page passes promlint in every format, and each format can be parsed.
func TestLintInAllFormats(t *testing.T) {
	c, now := service(t, collector.Options{OpenTelemetry: true})
	e := c.Resource("a").Enter()
	*now = now.Add(time.Second)
	e.Exit(nil)
	for name, code := range map[string]collector.Code{
		"GET /users/{id}": collector.HTTPStatus(500), "/shop.Cart/Add": collector.GRPCCode(13),
	} {
		_, e, err := c.Enter(t.Context(), name, collector.Inbound())
		if err != nil {
			t.Fatal(err)
		}
		e.ExitCode(nil, code)
	}
	h, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	for format, accept := range map[string]string{
		"text":        "text/plain;version=0.0.4",
		"openmetrics": "application/openmetrics-text;version=1.0.0",
		"protobuf":    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); !strings.HasPrefix(accept, got) {
			t.Errorf("%s: Content-Type %s", format, got)
		}
		var families []*dto.MetricFamily
		if format == "openmetrics" {
			body, err := io.ReadAll(resp.Body)
			if err != nil || !strings.HasSuffix(string(body), "# EOF\n") {
				t.Errorf("OpenMetrics has no # EOF: %v", err)
			}
			for _, line := range []string{
				`windowstat_pass_total{resource="a"} 1.0`,
				"# TYPE windowstat_pass counter", `windowstat_rt_seconds_bucket{resource="a",le="1.0"} 1`,
				"# UNIT http_server_request_duration_seconds seconds",
				`http_server_active_requests{http_request_method="GET",http_route="/users/{id}"} 0.0`,
			} {
				if !strings.Contains(string(body), line+"\n") {
					t.Errorf("OpenMetrics has no line %q", line)
				}
			}
			continue
		}
		dec := expfmt.NewDecoder(resp.Body, expfmt.ResponseFormat(resp.Header))
		for {
			f := new(dto.MetricFamily)
			if err := dec.Decode(f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			families = append(families, f)
		}
		resp.Body.Close()
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil || len(problems) != 0 || len(families) < 30 {
			t.Errorf("%s: %d families, %v, %v", format, len(families), problems, err)
		}
	}
	problems, err := testutil.GatherAndLint(register(t, c, prom.Options{}))
	if err != nil || len(problems) != 0 {
		t.Error(problems, err)
	}
}

type source map[string]float64

// publish publishes the values of a source, each with the given label values.
func (s source) publish(c *collector.Collector, labels ...string) (withdraw func()) {
	var all []collector.Metric
	for name, v := range s {
		m := collector.Metric{Name: name, Help: name + "."}
		if len(labels) == 0 {
			m.Value = func() float64 { return v }
		} else {
			m.Labels = []string{"way"}
			m.Read = func(yield func(float64, ...string)) { yield(v, labels...) }
		}
		all = append(all, m)
	}
	return c.Publish(all...)
}

// A page includes metrics that parts publish after the page was created, once for each name and labels. They disappear
// when the parts end.
func TestPublish(t *testing.T) {
	c, _ := service(t, collector.Options{})
	reg := prometheus.NewRegistry()
	p, err := prom.New(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reg.MustRegister(p)
	page, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source{"x_total": 3, "x_lag_seconds": 4, "x_timestamp_seconds": 50}.publish(c, "a")
	ended := source{"x_total": 5, "x_lag_seconds": 2, "x_timestamp_seconds": 40}.publish(c, "a")
	source{"x_total": 7}.publish(c, "b")
	source{"plain": 1}.publish(c)
	read := func() (lines []string) {
		rec := httptest.NewRecorder()
		page.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		for line := range strings.Lines(rec.Body.String()) {
			if strings.HasPrefix(line, "windowstat_x_") || strings.HasPrefix(line, "windowstat_plain") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		slices.Sort(lines)
		return lines
	}
	both := []string{
		"windowstat_plain 1", `windowstat_x_lag_seconds{way="a"} 4`, `windowstat_x_timestamp_seconds{way="a"} 40`,
		`windowstat_x_total{way="a"} 8`, `windowstat_x_total{way="b"} 7`,
	}
	if got := read(); !slices.Equal(got, both) {
		t.Errorf("%q, want %q", got, both)
	}
	if n, err := testutil.GatherAndCount(reg, "windowstat_x_total", "windowstat_plain"); err != nil || n != 3 {
		t.Errorf("%d families in a registry, error %v", n, err)
	}
	ended()
	ended()
	if got, want := read(), []string{
		"windowstat_plain 1", `windowstat_x_lag_seconds{way="a"} 4`, `windowstat_x_timestamp_seconds{way="a"} 50`,
		`windowstat_x_total{way="a"} 3`, `windowstat_x_total{way="b"} 7`,
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The metrics of a part that does not run are absent. Zeros would present the part as healthy.
func TestAbsentParts(t *testing.T) {
	c, _ := service(t, collector.Options{})
	page, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	page.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for _, part := range []string{"metriclog_", "cursor_", "push_", "sampler_", "limits_", "replay_"} {
		if strings.Contains(rec.Body.String(), "windowstat_"+part) {
			t.Errorf("there is %s", part)
		}
	}
}

func TestNamespace(t *testing.T) {
	c, _ := service(t, collector.Options{})
	for _, ns := range []string{"1a", "a-b", "a_", "ü", "a b", "a:b", "_"} {
		if _, err := prom.Handler(c, prom.Options{Namespace: ns}); err == nil != (ns == "_") {
			t.Errorf("namespace %q: %v", ns, err)
		}
	}
}

// Two Collectors with different namespaces can be in one registry, next to other metrics.
func TestInAnotherRegistry(t *testing.T) {
	c, _ := service(t, collector.Options{})
	c.Resource("a")
	reg := register(t, c, prom.Options{Namespace: "one"})
	p, err := prom.New(c, prom.Options{Namespace: "two"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(reg.Register(p),
		reg.Register(prometheus.NewCounter(prometheus.CounterOpts{Name: "x_total", Help: "x"}))); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(reg); err != nil ||
		n != 2*(len(table.Metrics())-4+len(c.Metrics())-1+5)+1 { // no call is in flight, and memory has six parts
		t.Errorf("%d metrics, %v", n, err)
	}
}

// With a label for the origin or the entrance, each call is in one series, and the histogram contains all calls.
func TestBy(t *testing.T) {
	c, now := service(t, collector.Options{Windows: node.Options{Bounds: []time.Duration{time.Second}}})
	for _, origin := range []string{"web", "", "web"} {
		_, e, err := c.Enter(t.Context(), "a", collector.Origin(origin), collector.Entrance("http"))
		if err != nil {
			t.Fatal(err)
		}
		*now = now.Add(ms)
		e.Exit(nil)
	}
	c.Block(t.Context(), "a", "busy", collector.Origin("web"), collector.Entrance("cron"), collector.Batch(5))
	for _, tc := range []struct {
		o    prom.Options
		want string
	}{
		{prom.Options{}, `
			pass_total{resource="a"} 3
			block_total{reason="busy",resource="a"} 5
			rt_seconds_count{resource="a"} 3`},
		{prom.Options{By: prom.ByOrigin}, `
			pass_total{origin="",resource="a"} 1
			pass_total{origin="web",resource="a"} 2
			block_total{reason="busy",resource="a"} 5
			block_by_origin_total{origin="",resource="a"} 0
			block_by_origin_total{origin="web",resource="a"} 5
			rt_seconds_count{resource="a"} 3`},
		{prom.Options{By: prom.ByEntrance}, `
			pass_total{entrance="cron",resource="a"} 0
			pass_total{entrance="http",resource="a"} 3
			block_total{reason="busy",resource="a"} 5
			block_by_entrance_total{entrance="cron",resource="a"} 5
			block_by_entrance_total{entrance="http",resource="a"} 0
			rt_seconds_count{resource="a"} 3`},
	} {
		h, err := prom.Handler(c, tc.o)
		if err != nil {
			t.Fatal(err)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		got := ""
		for line := range strings.Lines(rec.Body.String()) {
			for _, name := range []string{"pass_total{", "block_total{", "block_by_", "rt_seconds_count{"} {
				if strings.HasPrefix(line, "windowstat_"+name) {
					got += strings.TrimPrefix(line, "windowstat_")
				}
			}
		}
		want := strings.ReplaceAll(tc.want, "\t", "")[1:] + "\n"
		if sorted(got) != sorted(want) {
			t.Errorf("%+v: got\n%s\nwant\n%s", tc.o, got, want)
		}
	}
	_, err := prom.New(c, prom.Options{Namespace: "1", By: "day"})
	if err == nil || !strings.Contains(err.Error(), `By: "day"`) || !strings.Contains(err.Error(), "Namespace") {
		t.Error(err)
	}
}

// No value is ever NaN or infinite, even in an idle service. The metrics of limits are per resource, for any
// [prom.Options].By.
func TestLimits(t *testing.T) {
	c, _ := service(t, collector.Options{})
	if err := c.SetLimits([]collector.Limit{
		{Resource: "*", Count: 9},
		{Resource: "b", Count: 5},
		{Resource: "b", Origin: "web", Count: 1},
		{Resource: "b", Grade: collector.Concurrency, Count: 0},
		{Resource: "c", Origin: "web", Grade: collector.Concurrency, Count: 1},
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		_, e, err := c.Enter(t.Context(), name, collector.Origin("mobile"), collector.Admitted())
		if err != nil {
			t.Fatal(err)
		}
		e.Exit(nil)
	}
	for _, by := range []prom.By{"", prom.ByOrigin} {
		h, err := prom.Handler(c, prom.Options{By: by})
		if err != nil {
			t.Fatal(err)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		got := ""
		for line := range strings.Lines(rec.Body.String()) {
			if strings.HasPrefix(line, "windowstat_limit_") {
				got += strings.TrimPrefix(line, "windowstat_limit_")
			}
		}
		want := `concurrency{resource="b"} 0
qps{resource="a"} 9
qps{resource="b"} 5
qps{resource="c"} 9
`
		if sorted(got) != sorted(want) {
			t.Errorf("by %q:\n%s", by, got)
		}
	}
}

func TestNoNaN(t *testing.T) {
	c, _ := service(t, collector.Options{})
	c.Resource("a")
	families, err := register(t, c, prom.Options{}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, families...)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if v := float64(s.Value); math.IsNaN(v) || math.IsInf(v, 0) {
			t.Error(s)
		}
	}
}
