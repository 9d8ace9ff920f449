package push

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Format is a protocol with its encoding: [RemoteWrite], [RemoteWrite2], [RemoteWrite2Delta], [VictoriaMetrics], [OTLP]
// or [OTLPDelta]. Only this package implements it, with one file for each format.
type Format interface {
	// name returns the value of the label format in the self-metrics. It is also part of the name of the position file.
	name() string
	// prepare sets the headers and parameters of a request.
	prepare(*http.Request)
	// encoder returns an encoder of requests, which only one goroutine at a time may use.
	encoder() encoder
	// temporality returns the sums and the histograms that are sent in addition to the values of seconds. Histograms
	// are sent only if they are selected.
	temporality() (sums, histograms seconds.Temporality)
	// group returns the group of a family. Each group is sent in separate requests, because some servers refuse a whole
	// request that contains a family of certain types.
	group(*table.Family) group
	// judge returns the verdict for the response to a request, by its status, its headers and the beginning of its
	// body; see the function judge. For a request that is accepted, it also returns the number of samples that the
	// server dropped, and the message about them in the response.
	judge(status int, h http.Header, body []byte, r *request) (v verdict, rejected int64, message string)
}

// group is a set of families that are sent in the same requests.
type group int

const (
	values     group = iota // accepted by every server
	histograms              // native histograms; not accepted by every server
	deltas                  // delta sums; not accepted by every server
	groups
)

// plain is embedded in formats that send values and histograms of single seconds, and whose requests are accepted or
// refused as a whole.
type plain struct{}

func (plain) temporality() (sums, histograms seconds.Temporality) {
	return seconds.None, seconds.Single
}

func (plain) judge(status int, h http.Header, body []byte, r *request) (verdict, int64, string) {
	return judge(status, h, body, r.doubt), 0, ""
}

func (plain) group(f *table.Family) group {
	if f.Type == table.GaugeHistogram {
		return histograms
	}
	return values
}

// deltaOffset is the time from the start of a second to the start timestamp of its delta. A range of PromQL excludes
// its start, and a sample counts as a whole only if its start timestamp is within the range. With the start of the
// second itself, the first second of a range of whole seconds would be extrapolated from the others. Prometheus stores
// milliseconds.
const deltaOffset = time.Millisecond

// encoder encodes the bodies of requests.
type encoder interface {
	seconds.Sink
	// Samples returns the number of samples in the body so far.
	Samples() int
	// Body returns the finished, compressed body. It is valid until Reset.
	Body() []byte
	// Reset starts a new body.
	Reset()
}

// compressors holds idle compressors, which take almost a megabyte each.
var compressors gzipped.Writers

// zipped is the reused memory for a body with gzip.
type zipped struct{ out bytes.Buffer }

// zip returns the output of write, compressed with gzip. Everything stays in memory, so no errors occur.
func (z *zipped) zip(write func(io.Writer)) []byte {
	z.out.Reset()
	to, end := compressors.Start(&z.out)
	write(to)
	_ = end()
	return z.out.Bytes()
}

// appendHead appends the tag and the length of a message of this size. The message must follow.
func appendHead(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

// appendString appends a field with a string, bytes or a message.
func appendString[T string | []byte](b []byte, field protowire.Number, text T) []byte {
	return append(appendHead(b, field, len(text)), text...)
}

// appendVarint appends a field with a varint.
func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// appendFixed appends a field with a fixed64.
func appendFixed(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

// appendDouble appends a field with a double.
func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return appendFixed(b, field, math.Float64bits(v))
}

// sizeString returns the number of bytes that appendString appends.
func sizeString[T string | []byte](field protowire.Number, text T) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(len(text))
}

// sizeVarint returns the number of bytes that appendVarint appends.
func sizeVarint(field protowire.Number, v uint64) int {
	return protowire.SizeTag(field) + protowire.SizeVarint(v)
}

// eachField calls f for each varint, string and message of a protobuf message. If the message is truncated, so is its
// last string.
func eachField(b []byte, f func(no protowire.Number, v uint64, text []byte)) {
	for len(b) > 0 {
		no, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.VarintType && kind != protowire.BytesType {
			return
		}
		v, size := protowire.ConsumeVarint(b[n:])
		if size < 0 {
			return
		}
		var text []byte
		if b = b[n+size:]; kind == protowire.BytesType {
			end := min(v, uint64(len(b)))
			text, b = b[:end], b[end:]
		}
		f(no, v, text)
	}
}
