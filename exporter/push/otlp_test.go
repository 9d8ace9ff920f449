package push

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// otlpPoint is a received data point.
type otlpPoint struct {
	metric, unit string
	kind         protowire.Number
	temporality  uint64
	monotonic    bool
	attributes   string
	start, at    uint64 // nanoseconds
	value        float64
	histogram    []field
}

// series returns the metric name with the attributes.
func (p otlpPoint) series() string { return p.metric + "{" + p.attributes + "}" }

// readOTLP decodes a request: the attributes of its resource, and its points.
func readOTLP(t testing.TB, body []byte) (resource string, points []otlpPoint) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	attribute := func(b []byte) string {
		x := message(t, b)
		return fmt.Sprintf("%s=%q", x[0].text, message(t, x[1].text)[0].text)
	}
	resources := message(t, raw)
	if len(resources) != 1 {
		t.Fatalf("%d resources", len(resources))
	}
	of := message(t, resources[0].text)
	var all []string
	for _, f := range message(t, of[0].text) {
		all = append(all, attribute(f.text))
	}
	for _, m := range message(t, of[1].text) {
		fields := message(t, m.text)
		data := fields[3]
		p := otlpPoint{metric: string(fields[0].text), unit: string(fields[2].text), kind: data.no}
		for _, f := range message(t, data.text) {
			switch f.no {
			case 2:
				p.temporality = f.v
			case 3:
				p.monotonic = f.v == 1
			case 1:
				points = append(points, readPoint(t, p, f.text, attribute))
			}
		}
	}
	return strings.Join(all, ","), points
}

func readPoint(t testing.TB, p otlpPoint, b []byte, attribute func([]byte) string) otlpPoint {
	t.Helper()
	var attributes []string
	for _, f := range message(t, b) {
		switch {
		case p.kind == 10 && f.no == 1, p.kind != 10 && f.no == 7:
			attributes = append(attributes, attribute(f.text))
		case f.no == 2:
			p.start = f.v
		case f.no == 3:
			p.at = f.v
		case p.kind == 10:
			p.histogram = append(p.histogram, f)
		case f.no == 4:
			p.value = math.Float64frombits(f.v)
		}
	}
	p.attributes = strings.Join(attributes, ",")
	return p
}

// A gauge has the start of its second. A cumulative point has the start of its series and the end of a second. A delta
// has the time a millisecond after the start of its second, and its end. A reused encoder contains nothing of the
// previous request.
func TestOTLPTimes(t *testing.T) {
	const second, nano = 1_700_000_000, uint64(1e9)
	gauge := &table.Family{Name: "x_persecond_rt_max_seconds", Type: table.Gauge, Help: "Longest."}
	sum := &table.Family{Name: "x_persecond_pass_total", Type: table.Counter, Help: "Calls."}
	for _, tc := range []struct {
		format      Format
		histogram   table.Type
		temporality uint64
		start, at   uint64
	}{
		{OTLP, table.Histogram, 2, (second - 60) * nano, second},
		{OTLPDelta, table.GaugeHistogram, 1, second*nano + uint64(time.Millisecond), second + 1},
	} {
		enc := tc.format.encoder().(*otlpEncoder)
		for round := range 2 {
			enc.Reset()
			series := func(f *table.Family) {
				enc.Series(f, []string{"instance", "job", "resource", "zone"}, []string{"i", "j", "a\"", "ä"})
			}
			series(gauge)
			enc.Value(second, 0.25)
			enc.Value(second+1, math.Inf(1))
			series(sum)
			enc.Start(second - 60)
			enc.Value(second, 7)
			series(&table.Family{Name: "x_rt_seconds", Type: tc.histogram})
			enc.Start(second - 60)
			enc.Histogram(second, new(node.Histogram))
			series(&table.Family{Name: "x_nothing"}) // a series without points is omitted
			if enc.Samples() != 4 {
				t.Fatal(enc.Samples())
			}
			resource, points := readOTLP(t, enc.Body())
			if resource != `service.name="j",service.instance.id="i"` || len(points) != 4 {
				t.Fatalf("round %d: %s, %+v", round, resource, points)
			}
			for i, want := range []otlpPoint{
				{metric: gauge.Name, unit: "s", kind: 5, at: second * nano, value: 0.25},
				{metric: gauge.Name, unit: "s", kind: 5, at: (second + 1) * nano, value: math.Inf(1)},
				{
					metric: sum.Name, kind: 7, temporality: tc.temporality, monotonic: true,
					start: tc.start, at: tc.at * nano, value: 7,
				},
				{
					metric: "x_rt_seconds", unit: "s", kind: 10, temporality: tc.temporality,
					start: tc.start, at: tc.at * nano,
				},
			} {
				got := points[i]
				want.attributes, want.histogram = `instance="i",job="j",resource="a\"",zone="ä"`, got.histogram
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: got %+v, want %+v", tc.format.name(), got, want)
				}
			}
		}
	}
}

// checkOTLPHistogram compares a histogram in OTLP with a histogram of client_golang.
func checkOTLPHistogram(t *testing.T, h *node.Histogram, want *dto.Histogram) {
	t.Helper()
	enc := OTLPDelta.encoder()
	enc.Series(&table.Family{Name: "m", Type: table.GaugeHistogram}, []string{"a"}, []string{"b"})
	enc.Histogram(1_700_000_000, h)
	_, points := readOTLP(t, enc.Body())
	numbers, got := map[protowire.Number]uint64{}, map[int64]uint64{}
	for _, f := range points[0].histogram {
		if numbers[f.no] = f.v; f.no != 8 {
			continue
		}
		buckets := message(t, f.text)
		index, counts := protowire.DecodeZigZag(buckets[0].v), buckets[1].text
		for ; len(counts) > 0; index++ {
			n, size := protowire.ConsumeVarint(counts)
			if counts = counts[size:]; n > 0 {
				got[index+1] = n // OTLP identifies a bucket by its lower bound
			}
		}
	}
	wanted := map[int64]uint64{}
	index, n, deltas := int64(0), int64(0), want.PositiveDelta
	for _, s := range want.PositiveSpan {
		index += int64(s.GetOffset())
		for range s.GetLength() {
			if n += deltas[0]; n > 0 {
				wanted[index] = uint64(n)
			}
			deltas = deltas[1:]
			index++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(wanted) || numbers[4] != want.GetSampleCount() ||
		math.Abs(math.Float64frombits(numbers[5])-want.GetSampleSum()) > 1e-9 ||
		protowire.DecodeZigZag(numbers[6]) != 3 || numbers[7] != want.GetZeroCount() {
		t.Errorf("got %v with %v, want %v", got, numbers, want)
	}
}

// otlpServer accepts OTLP pushes, except during an outage.
type otlpServer struct {
	mu       sync.Mutex
	outage   bool
	noDeltas bool
	requests [][]otlpPoint // accepted requests
}

// RoundTrip implements http.RoundTripper.
func (s *otlpServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage {
		return answer(http.StatusServiceUnavailable, "")
	}
	_, points := readOTLP(new(testing.T), body)
	if s.noDeltas && slices.ContainsFunc(points, func(p otlpPoint) bool { return p.temporality == 1 }) {
		return answer(http.StatusInternalServerError, "invalid temporality and type combination for metric \"m\"\n")
	}
	s.requests = append(s.requests, points)
	return answer(http.StatusOK, "")
}

// points returns the values of a metric of the resource a, by the Unix time of their points.
func (s *otlpServer) points(metric string) map[int64]float64 {
	all := map[int64]float64{}
	for _, points := range s.requests {
		for _, p := range points {
			if p.series() == metric+`{instance="i",job="j",resource="a"}` {
				all[int64(p.at/1e9)] = p.value
			}
		}
	}
	return all
}

// pushOTLP runs do and pushes its calls to a server. The caller must be in a synctest bubble.
func pushOTLP(
	t *testing.T, format Format, s *otlpServer, do func(c *collector.Collector),
) (numbers map[string]float64, began int64) {
	t.Helper()
	c, err := collector.New(collector.Options{Windows: node.Options{History: time.Minute}, RetireAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, Options{
		Format: format, URL: "http://x", Labels: map[string]string{"job": "j", "instance": "i"}, Histogram: true,
		Client: &http.Client{Transport: s}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now().Unix()
	stop := background.Start(p.Run)
	do(c)
	if err := stop(); err != nil {
		t.Error(err)
	}
	return job{Pusher: p}.counts(), began
}

// At the end of each second a sum contains all earlier counts. This holds after idle minutes without samples, and after
// an outage that was longer than the history and lost seconds.
func TestOTLPSumsAreCumulative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(otlpServer)
		want := map[int64]float64{} // by the end of each second with calls
		blocks := 0.0
		block := func(c *collector.Collector, n int) {
			for range n {
				c.Resource("a").Block("")
			}
			blocks += float64(n)
			want[time.Now().Unix()+1] = blocks
			time.Sleep(time.Second)
		}
		_, began := pushOTLP(t, OTLP, s, func(c *collector.Collector) {
			time.Sleep(3 * time.Second)
			for n := range 10 {
				block(c, n+1)
			}
			time.Sleep(3 * time.Minute)
			block(c, 3)
			s.mu.Lock()
			s.outage = true
			s.mu.Unlock()
			for range 120 {
				block(c, 2)
			}
			s.mu.Lock()
			s.outage = false
			s.mu.Unlock()
			for range 20 {
				block(c, 1)
			}
		})
		sums, gauges := s.points("windowstat_persecond_block_total"), s.points("windowstat_persecond_block")
		missing, first := 0, 0
		for at, sum := range want {
			got, ok := sums[at]
			if _, sent := gauges[at-1]; !sent {
				missing++
				continue
			}
			before, continues := sums[at-1]
			if !continues {
				first++
			}
			if !ok || got != sum || continues && got-before != gauges[at-1] {
				t.Errorf("sum at %d is %v (%t), previously %v, want %v", at-began, got, ok, before, sum)
			}
		}
		if missing < 50 || missing > 70 || first != 2 { // the first second, and the first one after the gap
			t.Errorf("%d missing seconds, %d sums without a previous sum", missing, first)
		}
		for _, points := range s.requests {
			for _, p := range points {
				// Start of the process, and of the resource.
				if first := int64(p.start / 1e9); p.kind != 5 && first != began && first != began+3 {
					t.Fatalf("%s begins at %d", p.series(), first-began)
				}
			}
		}
	})
}

// Deltas are sent in separate requests. A server that refuses them has all gauges, and nothing is resent.
func TestOTLPDeltasInSeparateRequests(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &otlpServer{noDeltas: refuses}
			calls := map[int64]float64{}
			n, _ := pushOTLP(t, OTLPDelta, s, func(c *collector.Collector) {
				for i := range 10 {
					for range i {
						c.Resource("a").Block("")
					}
					calls[time.Now().Unix()] = float64(i)
					time.Sleep(time.Second)
				}
			})
			gauges, deltas := s.points("windowstat_persecond_block"), s.points("windowstat_persecond_block_total")
			for at, want := range calls {
				delta, ok := deltas[at+1]
				if want > 0 && (gauges[at] != want || delta != want && !refuses || ok == refuses) {
					t.Errorf("%v calls: the gauge is %v, the delta %v (%t)", want, gauges[at], delta, ok)
				}
			}
			for _, points := range s.requests {
				for _, p := range points {
					if (p.kind == 5) != (points[0].kind == 5) {
						t.Fatal("one request has gauges and deltas")
					}
				}
			}
			if n["push_retries_total"] != 0 || n["push_samples_total"] == 0 ||
				(n["push_refused_samples_total"] > 0) != refuses {
				t.Errorf("%v", n)
			}
		})
	}
}

// Samples that a server drops from an accepted request count as refused, even if the response is longer than the part
// of it that is read.
func TestOTLPPartialSuccess(t *testing.T) {
	partial := func(rejected int64, words string) string {
		b := appendString(appendVarint(nil, 1, uint64(rejected)), 2, words)
		return string(appendString(nil, 1, b))
	}
	for _, tc := range []struct {
		body                 string
		doubt                bool
		accepted, refused, u int64
		says                 string
	}{
		{body: "", accepted: 10},
		{body: partial(0, ""), accepted: 10},
		{body: partial(3, "too many"), accepted: 7, refused: 3, says: "too many"},
		{body: partial(3, "too many"), doubt: true, accepted: 7, u: 3, says: "too many"},
		{body: partial(0, "deprecated"), accepted: 10, says: "deprecated"},
		{body: partial(99, "all"), refused: 10, says: "all"},
		{body: partial(-1, ""), accepted: 10},
		{body: partial(4, strings.Repeat("long ", 5000)), accepted: 6, refused: 4, says: "long long"},
		{body: "what is this", accepted: 10},
		{body: "\xff\xff\xff\xff\xff\xff", accepted: 10},
	} {
		var log bytes.Buffer
		o := Options{URL: "http://x", Format: OTLP, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		s := newReceiver()
		s.before = func(*http.Request) (*http.Response, error) {
			return answer(200, tc.body, "Content-Type", "application/x-protobuf")
		}
		o.Client = &http.Client{Transport: s}
		o.defaults()
		p := newSender(o, maxWait)
		r := request{format: o.Format, body: []byte("x"), samples: 10, doubt: tc.doubt}
		settled := p.deliver(t.Context(), &r)
		v, got := r.verdict, p.total
		if !settled || v != accepted || got.samples != tc.accepted || got.refused != tc.refused ||
			got.unconfirmed != tc.u || !strings.Contains(log.String(), tc.says) || (tc.says == "") != (log.Len() == 0) {
			t.Errorf("%.50q: %d, %+v, %s", tc.body, v, got, log.String())
		}
	}
}
