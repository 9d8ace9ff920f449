package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// sent is a span that a test sends.
type sent struct {
	service    string
	name       string
	kind       kind
	id         uint64 // of the trace and of the span; 0 for empty ids
	start, end time.Time
	failed     bool
	state      string
	attributes map[string]any // string, int, float64 or bool
	flags      uint32
	parent     uint64
}

// at returns a server span that starts and ends at the given seconds after epochOfTests.
func at(id uint64, start, end float64) sent {
	return sent{
		service: "shop", name: "GET /cart", kind: kindServer, id: id, start: second(start), end: second(end),
		attributes: map[string]any{
			"http.request.method":       "GET",
			"http.route":                "/cart",
			"http.response.status_code": 200,
		},
	}
}

// epochOfTests is the origin of the times in tests.
var epochOfTests = time.Unix(1_800_000_000, 0)

func second(s float64) time.Time {
	return epochOfTests.Add(time.Duration(s * float64(time.Second)).Round(time.Microsecond))
}

func (s *sent) ids() (trace, id []byte) {
	if s.id == 0 {
		return nil, nil
	}
	id = binary.BigEndian.AppendUint64(nil, s.id)
	return append([]byte("trace-id"), id...), id
}

func (s *sent) nanos() (start, end uint64) {
	nanos := func(t time.Time) uint64 {
		if t.IsZero() {
			return 0
		}
		return uint64(t.UnixNano())
	}
	return nanos(s.start), nanos(s.end)
}

func put(b []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}

func putAttribute(b []byte, number protowire.Number, key string, v any) []byte {
	var value []byte
	switch v := v.(type) {
	case string:
		value = put(nil, 1, []byte(v))
	case int:
		value = protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(v))
	case bool:
		value = protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), protowire.EncodeBool(v))
	case float64:
		value = protowire.AppendFixed64(protowire.AppendTag(nil, 4, protowire.Fixed64Type), math.Float64bits(v))
	}
	return put(b, number, put(put(nil, 1, []byte(key)), 2, value))
}

// toProtobuf encodes spans as an SDK does, each with its own resource.
func toProtobuf(spans ...sent) (request []byte) {
	for _, s := range spans {
		trace, id := s.ids()
		start, end := s.nanos()
		b := put(put(nil, 1, trace), 2, id)
		b = put(b, 3, []byte(s.state))
		if s.parent != 0 {
			b = put(b, 4, binary.BigEndian.AppendUint64(nil, s.parent))
		}
		b = put(b, 5, []byte(s.name))
		b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), uint64(s.kind))
		b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), start)
		b = protowire.AppendFixed64(protowire.AppendTag(b, 8, protowire.Fixed64Type), end)
		for _, key := range slices.Sorted(maps.Keys(s.attributes)) {
			b = putAttribute(b, 9, key, s.attributes[key])
		}
		if s.failed {
			b = put(b, 15, protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 2))
		}
		b = protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), s.flags)
		scope := put(put(nil, 1, []byte("")), 2, b)
		request = put(
			request,
			1,
			put(put(nil, 2, scope), 1, putAttribute(nil, 1, "service.name", s.service)),
		) // the resource follows its spans
	}
	return request
}

// toJSON encodes spans in OTLP's JSON.
func toJSON(spans ...sent) []byte {
	attribute := func(key string, v any) string {
		switch v.(type) {
		case int:
			return fmt.Sprintf(`{"key":%q,"value":{"intValue":"%d"}}`, key, v)
		case float64:
			return fmt.Sprintf(`{"key":%q,"value":{"doubleValue":"%v"}}`, key, v) // also Infinity and NaN
		}
		return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, key, v)
	}
	var all []string
	for _, s := range spans {
		trace, id := s.ids()
		start, end := s.nanos()
		attributes := []string{
			`{"key":"list","value":{"arrayValue":{"values":[{"intValue":"1"},{"doubleValue":1.5}]}}}`,
		}
		for _, key := range slices.Sorted(maps.Keys(s.attributes)) {
			attributes = append(attributes, attribute(key, s.attributes[key]))
		}
		status, parent := `{}`, ""
		if s.failed {
			status = `{"code":2,"message":"no"}`
		}
		if s.parent != 0 {
			parent = fmt.Sprintf("%016x", s.parent)
		}
		span := fmt.Sprintf(
			`{"traceId":%q,"spanId":%q,"parentSpanId":%q,"traceState":%q,"name":%q,"kind":%d,"flags":%d,`+
				`"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s],"status":%s,`+
				`"events":[{"name":"e"}],"links":null}`,
			hex.EncodeToString(trace), hex.EncodeToString(id), parent, s.state, s.name, s.kind, s.flags,
			start, end, strings.Join(attributes, ","), status)
		all = append(all, fmt.Sprintf(
			`{"resource":{"attributes":[%s]},"scopeSpans":[{"scope":{"name":"x"},"spans":[%s]}]}`,
			attribute("service.name", s.service), span))
	}
	return []byte(`{"resourceSpans":[` + strings.Join(all, ",") + `]}`)
}

// receiving is a receiver with its Collector.
type receiving struct {
	*receiver
	stats *collector.Collector
	now   time.Time
}

func receive(t testing.TB, o Options, now time.Time, after time.Time) *receiving {
	t.Helper()
	if o.Tolerance == 0 {
		o.Tolerance = DefaultTolerance
	}
	if o.MaxResources == 0 {
		o.MaxResources = 1000
	}
	if o.MaxSpans == 0 {
		o.MaxSpans = DefaultMaxSpans
	}
	earned, err := httpstat.NewNames(httpstat.NamesOptions{MaxNames: o.MaxResources, MaxValues: maxPathValues})
	if err != nil {
		t.Fatal(err)
	}
	r := newReceiver(&o, earned, after, now)
	c, err := collector.New(
		collector.Options{Now: r.clock.Now, Given: []string{httpstat.Unmatched}, MaxResources: o.MaxResources},
	)
	if err != nil {
		t.Fatal(err)
	}
	r.serve(c, slog.New(slog.DiscardHandler))
	return &receiving{r, c, now}
}

// send decodes and counts spans at the given second after epochOfTests.
func (r *receiving) send(t testing.TB, now float64, spans ...sent) rejected {
	t.Helper()
	var b batch
	if err := b.protobuf(toProtobuf(spans...)); err != nil {
		t.Fatal(err)
	}
	not, err := r.take(&b, second(now))
	if err != nil {
		t.Fatal(err)
	}
	return not
}

// perSecond returns a number of each second of a view, by the second after epochOfTests. It omits zeros.
func perSecond(v collector.View, of func(*secondOf) int64) map[int64]int64 {
	all := map[int64]int64{}
	for _, m := range v.Last(600) {
		x := secondOf{m.Pass, m.Complete, m.Exception, m.InFlight, m.InFlightMax}
		if n := of(&x); n != 0 {
			all[m.Start.Unix()-epochOfTests.Unix()] = n
		}
	}
	return all
}

type secondOf struct{ pass, complete, exception, inFlight, most int64 }

func testLogger(testing.TB) *slog.Logger { return slog.New(slog.DiscardHandler) }
