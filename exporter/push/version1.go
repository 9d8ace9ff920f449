package push

import (
	"errors"
	"log/slog"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// format returns the format of new requests.
func (p *sender) format() Format {
	if f, ok := p.opts.Format.(remoteWrite2); ok && p.useVersion1.Load() {
		return f.version1()
	}
	return p.opts.Format
}

// fallBack makes all further requests of remote write 2.0 requests of version 1.0, and counts a retry. err is the
// response to the request that must be sent again.
func (p *sender) fallBack(err error) {
	if !p.useVersion1.Swap(true) {
		p.log.Log(slog.LevelWarn, "the server does not accept remote write 2.0; sending version 1.0", "err", err)
	}
	p.mu.Lock()
	p.total.retries++
	p.mu.Unlock()
}

// toVersion1 converts a request of remote write 2.0 to version 1.0. It refuses a request with deltas and returns false,
// because the server would treat deltas as cumulative counters.
func (r *request) toVersion1() bool {
	f, ok := r.format.(remoteWrite2)
	if !ok {
		return true
	}
	if r.group == deltas {
		r.verdict, r.lastErr = refused, errors.New("deltas need remote write 2.0")
		return false
	}
	r.format, r.body = f.version1(), version1(r.body)
	return true
}

// version1 returns the format for a server that does not read version 2.0. Cumulative counters continue, because they
// are right without start timestamps. Deltas end, because they are not.
func (f remoteWrite2) version1() remoteWrite {
	if f.sums == seconds.Cumulative {
		return remoteWrite{sums: seconds.Cumulative}
	}
	return remoteWrite{}
}

// version1 converts the body of a request of remote write 2.0 to version 1.0. The samples are the same, so the request
// keeps its samples and its place in the batch. Start timestamps, metadata and exemplars are dropped.
//
// Only requests that were encoded before the server's first response need a conversion. It reads the encoded messages,
// because the seconds of a request of [Write] cannot be read again.
func version1(body []byte) []byte {
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		panic("push: the body of a request is not snappy: " + err.Error()) // our encoder made it
	}
	var symbols []string
	var out, series []byte
	eachField(raw, func(no protowire.Number, _ uint64, text []byte) {
		if no == request2Symbols {
			symbols = append(symbols, string(text))
			return
		}
		series = series[:0]
		eachField(text, func(no protowire.Number, _ uint64, text []byte) {
			switch no {
			case series2Labels:
				series = appendLabels(series, symbols, text)
			case series2Samples:
				series = appendString(series, seriesSamples, withoutStart(text))
			case series2Histograms:
				series = appendString(series, seriesHistograms, text) // the same message; it has no start
			}
		})
		out = appendString(out, requestSeries, series)
	})
	return snappy.Encode(nil, out)
}

// appendLabels appends the labels with the references refs.
func appendLabels(b []byte, symbols []string, refs []byte) []byte {
	next := func() string {
		v, n := protowire.ConsumeVarint(refs)
		refs = refs[n:]
		return symbols[v]
	}
	for len(refs) > 0 {
		name := next()
		b = appendLabel(b, name, next())
	}
	return b
}

// withoutStart returns an encoded sample without its start timestamp, the last field.
func withoutStart(sample []byte) []byte {
	for at := 0; at < len(sample); {
		no, _, n := protowire.ConsumeField(sample[at:])
		if no == sampleStart {
			return sample[:at]
		}
		at += n
	}
	return sample
}
