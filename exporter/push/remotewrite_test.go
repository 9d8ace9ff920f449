package push

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// field is a field of a protobuf message.
type field struct {
	no   protowire.Number
	v    uint64
	text []byte
}

func message(t testing.TB, b []byte) (fields []field) {
	t.Helper()
	for len(b) > 0 {
		no, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		f := field{no: no}
		switch kind {
		case protowire.VarintType:
			f.v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.v, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.text, n = protowire.ConsumeBytes(b)
		default:
			t.Fatalf("field %d is of type %d", no, kind)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		fields = append(fields, f)
	}
	return fields
}

// decode returns the samples of a WriteRequest as lines in the text format.
func decode(t testing.TB, body []byte) (lines []string) {
	t.Helper()
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range message(t, raw) {
		name, labels, last := "", []string{}, ""
		for _, f := range message(t, series.text) {
			x := message(t, f.text)
			if f.no == 1 {
				key, value := string(x[0].text), string(x[1].text)
				if key <= last {
					t.Errorf("label %s after %s", key, last)
				}
				if last = key; key == "__name__" {
					name = value
				} else {
					labels = append(labels, fmt.Sprintf("%s=%q", key, value))
				}
				continue
			}
			if f.no == 4 {
				lines = append(lines, fmt.Sprintf("%s{%s} histogram", name, strings.Join(labels, ",")))
				continue
			}
			var numbers [3]uint64 // a field of a default value is absent
			for _, n := range x {
				numbers[n.no] = n.v
			}
			v, ms := math.Float64frombits(numbers[1]), numbers[2]
			lines = append(lines, fmt.Sprintf("%s{%s} %v %d", name, strings.Join(labels, ","), v, ms))
		}
	}
	return lines
}

// endpoint is a server that keeps the received lines and headers.
type endpoint struct {
	*httptest.Server
	mu      sync.Mutex
	lines   []string
	headers http.Header
}

func newEndpoint(t *testing.T, start func(*httptest.Server)) *endpoint {
	e := &endpoint{}
	e.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.headers = r.Header
		e.lines = append(e.lines, decode(t, body)...)
		w.WriteHeader(http.StatusNoContent)
	}))
	start(e.Server)
	t.Cleanup(e.Close)
	return e
}

// A job of half a second sends everything that it counted, with the right labels and headers.
func TestShortJob(t *testing.T) {
	e := newEndpoint(t, (*httptest.Server).StartTLS)
	client := e.Client() // trusts the certificate
	client.Transport = withPassword{client.Transport}
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(c, Options{
		URL: e.URL + "/api/v1/write", Labels: map[string]string{"job": "nightly", "instance": "a:1", "Zone": "ä"},
		Client:  client,
		Metrics: []string{"windowstat_persecond_block"},
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := w.Start()
	const calls = 100
	for range calls {
		c.Resource("a\n\"").Block("")
		time.Sleep(5 * time.Millisecond)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	sum, before := 0, int64(0)
	for _, line := range e.lines {
		if strings.HasPrefix(line, "windowstat_persecond_run{") {
			continue
		}
		var v int
		var at int64
		rest, ok := strings.CutPrefix(line,
			`windowstat_persecond_block{Zone="ä",instance="a:1",job="nightly",resource="a\n\""} `)
		if _, err := fmt.Sscan(rest, &v, &at); !ok || err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if at <= before || at%1000 != 0 {
			t.Errorf("%s after %d", line, before)
		}
		sum, before = sum+v, at
	}
	if sum != calls {
		t.Errorf("%d calls arrived, want %d", sum, calls)
	}
	if h := e.headers; h.Get("Content-Type") != "application/x-protobuf" || h.Get("Content-Encoding") != "snappy" ||
		h.Get("X-Prometheus-Remote-Write-Version") != "0.1.0" ||
		h.Get("Authorization") != "Basic bWU6c2VjcmV0" || !strings.HasPrefix(h.Get("User-Agent"), "windowstat/") {
		t.Errorf("%v", h)
	}
}

// Unknown certificates and wrong credentials refuse no samples, because they may be corrected.
func TestUnknownCertificate(t *testing.T) {
	e := newEndpoint(t, (*httptest.Server).StartTLS)
	e.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(c, Options{
		URL:    e.URL,
		Labels: map[string]string{"job": "a", "instance": "b"},
		Drain:  100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := w.Start()
	c.Resource("a").Block("")
	if err := stop(); err == nil || !strings.HasPrefix(err.Error(), "push: ") || len(e.lines) > 0 {
		t.Errorf("%v, %v", err, e.lines)
	}
}

func TestNewErrors(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil || !strings.HasPrefix(err.Error(), "push: ") {
		t.Error(err)
	}
}

// All values are sent unchanged: small, large, negative, not a number.
func TestValues(t *testing.T) {
	enc := RemoteWrite.encoder()
	var want []string
	f := &table.Family{Name: "m"}
	for i, v := range []float64{0, 1, -1.5, 1e300, 5e-324, math.Inf(-1), math.NaN()} {
		enc.Series(f, []string{"a"}, []string{fmt.Sprint(i)})
		enc.Series(f, []string{"z"}, []string{fmt.Sprint(i)}) // a series without samples is omitted
		enc.Series(f, []string{"a", "z"}, []string{fmt.Sprint(i), ""})
		enc.Value(int64(1e9+i), v)
		enc.Value(int64(1e9+i+1), v)
		want = append(want, fmt.Sprintf(`m{a="%d",z=""} %v %d000`, i, v, int(1e9)+i),
			fmt.Sprintf(`m{a="%d",z=""} %v %d000`, i, v, int(1e9)+i+1))
	}
	for range 2 {
		if got := decode(t, enc.Body()); !slices.Equal(got, want) || enc.Samples() != len(want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	enc.Reset()
	if len(decode(t, enc.Body())) != 0 {
		t.Error("the request is not empty after Reset")
	}
}

// withPassword adds a user and a password to requests.
type withPassword struct{ http.RoundTripper }

func (p withPassword) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth("me", "secret")
	return p.RoundTripper.RoundTrip(r)
}

// The histogram of a second is a native gauge histogram. It equals the histogram of client_golang for the same response
// times, by remote write and by OTLP.
func FuzzHistogram(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 1, 255})
	f.Add([]byte("some response times, far apart and close together\xff\xfe\x00"))
	f.Fuzz(func(t *testing.T, powers []byte) {
		now := time.Unix(1_700_000_000, 0)
		c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		want := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", NativeHistogramBucketFactor: 1.1})
		open := c.Seal().Open
		r := c.Resource("a")
		for _, x := range powers {
			rt := time.Duration(math.Exp2(float64(x)/8)) - 1 // up to 4 s
			_, e, err := c.Enter(t.Context(), "a", collector.StartedAt(now.Add(-rt)))
			if err != nil {
				t.Fatal(err)
			}
			e.Exit(nil)
			want.Observe(rt.Seconds())
		}
		now = now.Add(time.Second)
		var h node.Histogram
		c.Seal()
		r.View().Node().Histogram(open, open+1, &h)
		enc := RemoteWrite.encoder()
		enc.Series(&table.Family{Name: "m"}, []string{"a"}, []string{"b"})
		enc.Histogram(1_700_000_000, &h)
		if enc.Samples() != 1 {
			t.Fatal(enc.Samples())
		}
		raw, err := snappy.Decode(nil, enc.Body())
		if err != nil {
			t.Fatal(err)
		}
		var m dto.Metric
		if err := want.Write(&m); err != nil {
			t.Fatal(err)
		}
		series := message(t, message(t, raw)[0].text)
		got := message(t, series[len(series)-1].text)
		if no := series[len(series)-1].no; no != 4 {
			t.Fatalf("histogram is field %d of the series, want 4", no)
		}
		checkHistogram(t, got, m.Histogram)
		checkOTLPHistogram(t, &h, m.Histogram)
	})
}

// checkHistogram compares a histogram in remote write with a histogram of client_golang.
func checkHistogram(t *testing.T, got []field, want *dto.Histogram) {
	t.Helper()
	numbers := map[protowire.Number]uint64{}
	var buckets, wanted []int64 // index and count of non-empty buckets
	var spans []field
	for _, f := range got {
		switch f.no {
		case 11:
			spans = append(spans, f)
		case 12:
			deltas, index, n := f.text, int64(0), int64(0)
			for _, s := range spans {
				span := message(t, s.text)
				index += protowire.DecodeZigZag(span[0].v)
				for range span[1].v {
					v, size := protowire.ConsumeVarint(deltas)
					deltas = deltas[size:]
					if n += protowire.DecodeZigZag(v); n > 0 {
						buckets = append(buckets, index, n)
					}
					index++
				}
			}
			if len(deltas) > 0 {
				t.Fatalf("%d extra bytes of buckets", len(deltas))
			}
		default:
			numbers[f.no] = f.v
		}
	}
	index, n, deltas := int64(0), int64(0), want.PositiveDelta
	for _, s := range want.PositiveSpan {
		index += int64(s.GetOffset())
		for range s.GetLength() {
			if n += deltas[0]; n > 0 {
				wanted = append(wanted, index, n)
			}
			deltas = deltas[1:]
			index++
		}
	}
	sum := math.Float64frombits(numbers[3])
	delete(numbers, 3)
	wantNumbers := map[protowire.Number]uint64{
		1:  want.GetSampleCount(),
		4:  protowire.EncodeZigZag(3),
		5:  math.Float64bits(want.GetZeroThreshold()),
		6:  want.GetZeroCount(),
		14: 3, // gauge
		15: 1_700_000_000_000,
	}
	if math.Abs(sum-want.GetSampleSum()) > 1e-9 || !slices.Equal(buckets, wanted) ||
		len(spans) == 0 && want.GetZeroCount() == 0 || !maps.Equal(numbers, wantNumbers) {
		t.Errorf("got %v with sum %v in buckets %v, want %v", numbers, sum, buckets, want)
	}
}

// A Pusher sends histograms only if its options select them.
func TestHistogramOption(t *testing.T) {
	for _, histogram := range []bool{false, true} {
		e := newEndpoint(t, (*httptest.Server).Start)
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := New(c, Options{
			URL:       e.URL,
			Labels:    map[string]string{"job": "a", "instance": "b"},
			Histogram: histogram,
			Metrics:   []string{"windowstat_persecond_pass"},
		})
		if err != nil {
			t.Fatal(err)
		}
		stop := w.Start()
		call := c.Resource("a").Enter()
		call.Exit(nil)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		n := strings.Count(strings.Join(e.lines, "\n"), "windowstat_persecond_rt_distribution_seconds{")
		if (n > 0) != histogram {
			t.Errorf("%d histograms: %q", n, e.lines)
		}
	}
}
