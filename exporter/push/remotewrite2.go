package push

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/node"
)

// RemoteWrite2 is Prometheus remote write 2.0: for Prometheus 3 with --web.enable-remote-write-receiver, the receiver
// prometheusremotewrite of the OpenTelemetry Collector, Mimir and others. It sends the metrics of [RemoteWrite] with
// their types, HELP texts and units, and with [Options.Histogram] the exemplars of calls with a trace ID. A request
// contains each name and label value once.
//
// In addition it sends cumulative counters, such as windowstat_persecond_pass_total. Their start timestamp is the
// second when the process first used the resource. The timestamp of a counter is the end of its second, as in [OTLP].
// Counters are not sent for seconds from the metric log.
//
// The response says how many samples the server stored, so the self-metrics are exact for partially stored requests. A
// server that responds 415, or 2xx without the headers X-Prometheus-Remote-Write-…-Written, does not read version 2.0
// and has stored nothing. The Pusher logs this once and sends the same samples, and all later ones of the process, by
// version 1.0: counters without start timestamps, and no metadata or exemplars. A proxy that removes the headers has
// the same effect; the server then receives the first samples twice, with equal values.
//
// RemoteWrite and RemoteWrite2 share the position of pushes with a metric log, so a change of the version sends every
// second once.
var RemoteWrite2 Format = remoteWrite2{sums: seconds.Cumulative}

// RemoteWrite2Delta is [RemoteWrite2] with deltas instead of cumulative counters: each sample counts the calls of its
// second. Its start timestamp is a millisecond after the start of the second, so that increase in Prometheus is exact,
// and its timestamp is the end of the second.
//
// Use deltas only for servers that store and use start timestamps. On other servers, rate and increase of these
// counters are wrong, because a delta looks like the reset of a counter; sum_over_time is right. Deltas are sent in
// separate requests. A server that does not read version 2.0 receives no deltas.
var RemoteWrite2Delta Format = remoteWrite2{sums: seconds.Single}

type remoteWrite2 struct {
	plain
	sums seconds.Temporality
}

// name returns the name of version 1.0, because both versions share the position file and the self-metrics.
func (remoteWrite2) name() string { return remoteWrite{}.name() }

func (remoteWrite2) prepare(r *http.Request) {
	r.Header.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
}

func (f remoteWrite2) encoder() encoder {
	return &remoteWrite2Encoder{deltas: f.sums == seconds.Single, refs: map[string]uint32{}}
}

func (f remoteWrite2) temporality() (sums, histograms seconds.Temporality) {
	return f.sums, seconds.Single
}

func (f remoteWrite2) group(family *table.Family) group {
	if f.sums == seconds.Single && family.Type == table.Counter {
		return deltas
	}
	return f.plain.group(family)
}

// judge implements Format. The headers of the response say how many samples the server stored.
func (remoteWrite2) judge(
	status int,
	h http.Header,
	body []byte,
	r *request,
) (v verdict, rejected int64, message string) {
	v = judge(status, h, body, r.doubt)
	stored, confirmed := storedSamples(h)
	switch {
	case v == accepted && !confirmed, status == http.StatusUnsupportedMediaType && !confirmed:
		return noVersion2, 0, ""
	case v == accepted, (v == refused || v == unconfirmed) && stored > 0:
		// Status 400 may also mean that the server has stored the valid samples of the request.
		if rejected = max(int64(r.samples)-stored, 0); status/100 != 2 || rejected > 0 {
			message = string(body)
		}
		return accepted, rejected, message
	}
	return v, 0, ""
}

// storedSamples returns the number of samples and histograms that the server stored, and whether the response has a
// valid header about any of them. A server may omit the headers of kinds that the request does not contain.
func storedSamples(h http.Header) (n int64, confirmed bool) {
	for _, kind := range []string{"Samples", "Histograms"} {
		stored, err := strconv.ParseInt(h.Get("X-Prometheus-Remote-Write-"+kind+"-Written"), 10, 64)
		if err == nil && stored >= 0 {
			n, confirmed = n+stored, true
		}
	}
	return n, confirmed
}

// The fields of the messages of remote write 2.0 (io/prometheus/write/v2/types.proto). A sample and a histogram have
// the fields of version 1.0 and a start timestamp.
const (
	request2Symbols   = 4
	request2Series    = 5
	series2Labels     = 1 // packed references to symbols: name, value, name, value …
	series2Samples    = 2
	series2Histograms = 3
	series2Exemplars  = 4
	series2Metadata   = 5
	sampleStart       = 3
	metadataType      = 1
	metadataHelp      = 3
	metadataUnit      = 4
	exemplarLabels    = 1
	exemplarValue     = 2
	exemplarMillis    = 3
)

// metadataTypes holds the numbers of the types of metrics.
var metadataTypes = map[table.Type]uint64{
	table.Counter: 1, table.Gauge: 2, table.Histogram: 3, table.GaugeHistogram: 4,
}

// remoteWrite2Encoder encodes a Request. The symbol table comes first, as some servers require, so it is separate from
// the series until the request is complete. A reference to a symbol takes one or two bytes.
type remoteWrite2Encoder struct {
	deltas  bool              // counters are deltas
	symbols []byte            // encoded symbol table
	refs    map[string]uint32 // index in the symbol table, by symbol
	out     []byte            // complete series
	samples int

	// The current series.
	family   *table.Family
	labels   []byte // encoded references
	points   []byte // samples, histograms and exemplars
	metadata []byte
	start    int64 // Unix time; 0 if the series is not cumulative

	// Labels of the previous series. The next series often has the same labels.
	names, values []string
	before, after []byte // references to the labels that sort before and after the name of the metric

	histogram histogramEncoder
	exemplar  []byte
	body      []byte
	packed    []byte // compressed body
}

// Reset implements encoder. The first symbol must be the empty string.
func (e *remoteWrite2Encoder) Reset() {
	clear(e.refs)
	clear(e.names) // the symbols are gone
	clear(e.values)
	e.symbols, e.out, e.points, e.samples = e.symbols[:0], e.out[:0], e.points[:0], 0
	e.names, e.values, e.before, e.after = e.names[:0], e.values[:0], e.before[:0], e.after[:0]
}

// Samples implements encoder.
func (e *remoteWrite2Encoder) Samples() int { return e.samples }

// ref returns the reference to a symbol. It adds the symbol if necessary.
func (e *remoteWrite2Encoder) ref(symbol string) uint64 {
	if len(e.refs) == 0 {
		e.refs[""] = 0
		e.symbols = appendString(e.symbols, request2Symbols, "")
	}
	ref, ok := e.refs[symbol]
	if !ok {
		ref = uint32(len(e.refs))
		e.refs[symbol] = ref
		e.symbols = appendString(e.symbols, request2Symbols, symbol)
	}
	return uint64(ref)
}

// appendRefs appends references to two symbols.
func (e *remoteWrite2Encoder) appendRefs(b []byte, name, value string) []byte {
	return protowire.AppendVarint(protowire.AppendVarint(b, e.ref(name)), e.ref(value))
}

// Series implements seconds.Sink. Labels must be sorted, including the name of the metric.
func (e *remoteWrite2Encoder) Series(f *table.Family, names, values []string) {
	e.flush()
	e.family, e.start = f, 0
	if !slices.Equal(e.names, names) || !slices.Equal(e.values, values) {
		e.names, e.values = append(e.names[:0], names...), append(e.values[:0], values...)
		e.before, e.after = e.before[:0], e.after[:0]
		for i, name := range names {
			if name < metricName { // upper case sorts before the underscore
				e.before = e.appendRefs(e.before, name, values[i])
			} else {
				e.after = e.appendRefs(e.after, name, values[i])
			}
		}
	}
	e.labels = e.appendRefs(append(e.labels[:0], e.before...), metricName, f.Name)
	e.labels = append(e.labels, e.after...)
	m := appendVarint(e.metadata[:0], metadataType, metadataTypes[f.Type])
	if f.Help != "" {
		m = appendVarint(m, metadataHelp, e.ref(f.Help))
	}
	if f.Unit != "" {
		m = appendVarint(m, metadataUnit, e.ref(f.Unit))
	}
	e.metadata = m
}

// flush appends the current series to out, unless it has no samples.
func (e *remoteWrite2Encoder) flush() {
	if len(e.points) == 0 {
		return
	}
	size := sizeString(series2Labels, e.labels) + len(e.points) + sizeString(series2Metadata, e.metadata)
	b := appendString(appendHead(e.out, request2Series, size), series2Labels, e.labels)
	e.out = appendString(append(b, e.points...), series2Metadata, e.metadata)
	e.points = e.points[:0]
}

// Start implements seconds.Starter.
func (e *remoteWrite2Encoder) Start(unix int64) { e.start = unix }

// Value implements seconds.Sink. A delta has the start of its second plus [deltaOffset], and the end of its second.
// Zero is the default of the field for the value, so a value of zero takes no space.
func (e *remoteWrite2Encoder) Value(unix int64, v float64) {
	start := e.start * 1000
	if e.deltas && e.family.Type == table.Counter {
		start, unix = unix*1000+deltaOffset.Milliseconds(), unix+1
	}
	var buffer [32]byte
	b := buffer[:0]
	if math.Float64bits(v) != 0 { // -0 is not the default
		b = appendDouble(b, sampleValue, v)
	}
	b = appendVarint(b, sampleMillis, uint64(unix*1000))
	if start != 0 {
		b = appendVarint(b, sampleStart, uint64(start))
	}
	e.points = appendString(e.points, series2Samples, b)
	e.samples++
}

// Histogram implements seconds.Sink. It encodes a gauge histogram.
func (e *remoteWrite2Encoder) Histogram(unix int64, h *node.Histogram) {
	e.points = appendString(e.points, series2Histograms, e.histogram.encode(unix, h))
	e.samples++
}

// Exemplars implements seconds.Exemplars. Prometheus refuses exemplars that do not ascend by time and value.
func (e *remoteWrite2Encoder) Exemplars(list []collector.Exemplar) {
	slices.SortFunc(list, func(a, b collector.Exemplar) int {
		return cmp.Or(cmp.Compare(a.At.UnixMilli(), b.At.UnixMilli()), cmp.Compare(a.RT, b.RT))
	})
	if len(e.points) == 0 { // a series must have a sample
		return
	}
	for _, x := range list {
		var buffer [16]byte
		b := appendString(e.exemplar[:0], exemplarLabels, e.appendRefs(buffer[:0], text.TraceLabel, x.TraceID))
		b = appendDouble(b, exemplarValue, x.RT.Seconds())
		e.exemplar = appendVarint(b, exemplarMillis, uint64(x.At.UnixMilli()))
		e.points = appendString(e.points, series2Exemplars, e.exemplar)
	}
}

// Body implements encoder.
func (e *remoteWrite2Encoder) Body() []byte {
	e.flush()
	e.body = append(append(e.body[:0], e.symbols...), e.out...)
	e.packed = snappy.Encode(e.packed[:cap(e.packed)], e.body)
	return e.packed
}
