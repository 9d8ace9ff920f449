package push

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// series2 is a series of a request of remote write 2.0.
type series2 struct {
	labels     string // as in the text format, with the name of the metric in front
	kind       uint64
	help, unit string
	samples    []sample2
	histograms int
	exemplars  []string
}

// sample2 is a sample of remote write 2.0. Times are in milliseconds.
type sample2 struct {
	value  float64
	at     uint64
	start  uint64
	series string
}

// decode2 reads a Request. It checks the symbol table and the order of the labels.
func decode2(t testing.TB, body []byte) (all []series2) {
	t.Helper()
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	var symbols []string
	refs := func(packed []byte) (found []string) {
		for len(packed) > 0 {
			v, n := protowire.ConsumeVarint(packed)
			packed, found = packed[n:], append(found, symbols[v])
		}
		return found
	}
	for _, f := range message(t, raw) {
		if f.no == 4 {
			if len(all) > 0 || slices.Contains(symbols, string(f.text)) {
				t.Errorf("the symbol %q is late or twice", f.text)
			}
			symbols = append(symbols, string(f.text))
			continue
		}
		var s series2
		for _, f := range message(t, f.text) {
			switch f.no {
			case 1:
				s.labels = labels2(t, refs(f.text))
			case 2:
				x := sample2{series: s.labels}
				for _, f := range message(t, f.text) {
					switch f.no {
					case 1:
						x.value = math.Float64frombits(f.v)
					case 2:
						x.at = f.v
					case 3:
						x.start = f.v
					}
				}
				s.samples = append(s.samples, x)
			case 3:
				s.histograms++
			case 4:
				m := message(t, f.text)
				v, at := math.Float64frombits(m[1].v), m[2].v
				s.exemplars = append(s.exemplars, fmt.Sprint(strings.Join(refs(m[0].text), "="), " ", v, " ", at))
			case 5:
				for _, f := range message(t, f.text) {
					switch f.no {
					case 1:
						s.kind = f.v
					case 3:
						s.help = symbols[f.v]
					case 4:
						s.unit = symbols[f.v]
					}
				}
			}
		}
		all = append(all, s)
	}
	if len(all) > 0 && (len(symbols) == 0 || symbols[0] != "") {
		t.Errorf("the symbol table begins with %q", symbols[:min(1, len(symbols))])
	}
	return all
}

// labels2 formats names and values. The names must be sorted.
func labels2(t testing.TB, list []string) string {
	t.Helper()
	name, labels := "", []string{}
	for i := 0; i < len(list); i += 2 {
		if i > 0 && list[i] <= list[i-2] {
			t.Errorf("label %s after %s", list[i], list[i-2])
		}
		if list[i] == "__name__" {
			name = list[i+1]
		} else {
			labels = append(labels, fmt.Sprintf("%s=%q", list[i], list[i+1]))
		}
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

// A request has each string once, the type, HELP and unit of each metric, and the start of each counter. A reused
// encoder contains nothing of the previous request.
func TestRemoteWrite2Encoding(t *testing.T) {
	const at = 1_700_000_000
	gauge := &table.Family{Name: "rt_max_seconds", Type: table.Gauge, Unit: "seconds", Help: "Longest."}
	counter := &table.Family{Name: "pass_total", Type: table.Counter, Help: "Calls."}
	histogram := &table.Family{Name: "rt_seconds", Type: table.GaugeHistogram, Unit: "seconds", Help: "Longest."}
	for _, tc := range []struct {
		Format
		start, at uint64
	}{
		{RemoteWrite2, (at - 60) * 1000, at * 1000},
		{RemoteWrite2Delta, at*1000 + 1, (at + 1) * 1000},
	} {
		enc := tc.encoder().(*remoteWrite2Encoder)
		for range 2 {
			enc.Reset()
			series := func(f *table.Family, resource string) {
				enc.Series(f, []string{"Zone", "job", "resource"}, []string{"ä", "seconds", resource})
			}
			series(gauge, "a\"")
			enc.Value(at, 0.25)
			enc.Value(at+1, 0)
			enc.Value(at+2, math.Copysign(0, -1))
			series(gauge, "without samples")
			series(counter, "a\"")
			enc.Start(at - 60)
			enc.Value(at, 7)
			series(histogram, "b")
			enc.Exemplars([]collector.Exemplar{{TraceID: "lost"}}) // a series has a sample or a histogram
			enc.Histogram(at, new(node.Histogram))
			enc.Exemplars([]collector.Exemplar{
				{TraceID: "later", RT: time.Second, At: time.UnixMilli(at*1000 + 600)},
				{TraceID: "sooner", RT: time.Millisecond, At: time.UnixMilli(at*1000 + 500)},
			})
			if n := enc.Samples(); n != 5 {
				t.Errorf("%d samples", n)
			}
			of := func(name, resource string) string {
				return fmt.Sprintf(`%s{Zone="ä",job="seconds",resource=%q}`, name, resource)
			}
			sum := of("pass_total", "a\"")
			longest := of("rt_max_seconds", "a\"")
			want := []series2{
				{labels: longest, kind: 2, help: "Longest.", unit: "seconds", samples: []sample2{
					{value: 0.25, at: at * 1000, series: longest},
					{at: (at + 1) * 1000, series: longest},
					{value: math.Copysign(0, -1), at: (at + 2) * 1000, series: longest},
				}},
				{
					labels:  sum,
					kind:    1,
					help:    "Calls.",
					samples: []sample2{{value: 7, at: tc.at, start: tc.start, series: sum}},
				},
				{
					labels:     of("rt_seconds", "b"),
					kind:       4,
					help:       "Longest.",
					unit:       "seconds",
					histograms: 1,
					exemplars: []string{
						"trace_id=sooner 0.001 1700000000500", "trace_id=later 1 1700000000600",
					},
				},
			}
			if got := decode2(t, enc.Body()); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got\n%+v, want\n%+v", got, want)
			}
		}
	}
}

// A request of version 2.0 that is converted to version 1.0 has the samples, the histograms and the labels that
// version 1.0 encodes itself.
func TestConversionToVersion1(t *testing.T) {
	stream, line := twentySeconds(t, 3, 50)
	open := line.Open()
	for _, selection := range []*seconds.Selection{
		{},
		{Histogram: seconds.Single, Sums: seconds.Cumulative},
	} {
		encode := func(f Format) []byte {
			enc := f.encoder()
			sink := NewLabelled(enc, map[string]string{"job": "shop", "instance": "a:1", "Zone": "ä"})
			stream.Emit(selection, open-20, open, seconds.Limit{Seconds: 20}, sink)
			return enc.Body()
		}
		want, got := decode(t, encode(RemoteWrite)), decode(t, version1(encode(RemoteWrite2)))
		if len(want) < 100 || !slices.Equal(got, want) {
			t.Errorf("%d lines, want %d lines", len(got), len(want))
		}
	}
}

// The position of version 1.0 is the position of version 2.0, so that an upgrade sends the seconds that are left.
func TestVersionsShareAPosition(t *testing.T) {
	for _, f := range []Format{RemoteWrite2, RemoteWrite2Delta} {
		if got, want := f.name(), RemoteWrite.name(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The calls with a trace ID are exemplars of the histograms of their seconds, each of them once.
func TestExemplarsOfSeconds(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		now = now.Add(time.Second)
		_, e, err := c.Enter(t.Context(), "a", collector.StartedAt(now.Add(-time.Duration(1+i*i)*100*time.Millisecond)))
		if err != nil {
			t.Fatal(err)
		}
		e.ExitTrace(nil, collector.Code{}, fmt.Sprint("trace", i))
	}
	now = now.Add(time.Second)
	c.Seal()
	stream, line := seconds.NewResources(c, "w", nil), seconds.NewLine(c)
	enc := RemoteWrite2.encoder()
	var got []string
	for at := line.First(); at < line.Open(); at++ {
		enc.Reset()
		sink := NewLabelled(enc, map[string]string{"job": "j", "instance": "i"})
		stream.Emit(&seconds.Selection{Histogram: seconds.Single}, at, at+1, seconds.Limit{Seconds: 1}, sink)
		for _, s := range decode2(t, enc.Body()) {
			for _, x := range s.exemplars {
				got = append(got, fmt.Sprint(at-1_700_000_000, " ", s.labels, " ", x))
			}
		}
	}
	const series = `w_persecond_rt_distribution_seconds{instance="i",job="j",resource="a"} trace_id=`
	want := []string{
		"1 " + series + "trace0 0.1 1700000001000",
		"2 " + series + "trace1 0.2 1700000002000",
		"3 " + series + "trace2 0.5 1700000003000",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
