package push

import (
	"bytes"
	"io"
	"math"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Format is how seconds are sent: [RemoteWrite], [VictoriaMetrics], [OTLP] or [OTLPDelta]. It is implemented in this package only, a
// file for each.
type Format interface {
	// name is the value of the label way in the self-metrics, and part of the name of the file of the position.
	name() string
	// prepare sets the headers and parameters of a request.
	prepare(*http.Request)
	// encoder makes an encoder of requests, which is used by one goroutine at a time.
	encoder() encoder
	// temporality is which sums, and which histograms if there are any, are sent beside the values of seconds.
	temporality() (sums, histograms seconds.Temporality)
	// group says which families are in requests of their own, because some servers refuse the whole request that they are in.
	group(*table.Family) group
	// refused returns how many samples an accepting response says that the server did not take, and its words about the request.
	refused(body []byte) (samples int64, words string)
}

// group is families that are in the same requests.
type group int

const (
	values     group = iota // that every server takes
	histograms              // native ones, which servers may be without
	deltas                  // of sums
	groups
)

// plain is what formats have in common that send values and histograms of seconds, and whose requests are accepted or refused as a whole.
type plain struct{}

func (plain) temporality() (sums, histograms seconds.Temporality) {
	return seconds.None, seconds.Single
}
func (plain) refused([]byte) (int64, string) { return 0, "" }
func (plain) group(f *table.Family) group {
	if f.Type == table.GaugeHistogram {
		return histograms
	}
	return values
}

// encoder encodes the bodies of requests.
type encoder interface {
	seconds.Sink
	// Samples returns the number of samples in the body so far.
	Samples() int
	// Body returns the finished body, compressed. It is valid until Reset.
	Body() []byte
	// Reset starts a new body.
	Reset()
}

// zips has idle compressors, which take almost a megabyte each.
var zips gzipped.Writers

// zipped is the memory for a body with gzip.
type zipped struct{ out bytes.Buffer }

// zip returns what is written, with gzip. It all stays in memory, so there are no errors.
func (z *zipped) zip(write func(io.Writer)) []byte {
	z.out.Reset()
	to, end := zips.Start(&z.out)
	write(to)
	_ = end()
	return z.out.Bytes()
}

// appendHead appends what is before a message of this size.
func appendHead(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

func appendString[T string | []byte](b []byte, field protowire.Number, text T) []byte {
	return append(appendHead(b, field, len(text)), text...)
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFixed(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return appendFixed(b, field, math.Float64bits(v))
}

// sizeString is how much appendString appends, for a message around it.
func sizeString[T string | []byte](field protowire.Number, text T) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(len(text))
}

// sizeVarint is how much appendVarint appends.
func sizeVarint(field protowire.Number, v uint64) int {
	return protowire.SizeTag(field) + protowire.SizeVarint(v)
}

// eachField calls f for each varint and each string or message of a protobuf message. The message may be cut off: then so is its last
// string.
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
