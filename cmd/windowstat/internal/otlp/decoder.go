package otlp

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// encoding is the compression of a body.
type encoding string

// Encodings, with their names in HTTP and in gRPC.
const (
	plain        encoding = "identity"
	gzipEncoding encoding = "gzip"
	zstdEncoding encoding = "zstd"
	acceptedHTTP          = "gzip, zstd"         // in Accept-Encoding
	acceptedGRPC          = "identity,gzip,zstd" // in Grpc-Accept-Encoding
)

// parseEncoding returns the encoding with the name in a header. An empty name means an uncompressed body.
func parseEncoding(name string) (encoding, error) {
	switch e := encoding(strings.ToLower(strings.TrimSpace(name))); e {
	case "", plain:
		return plain, nil
	case gzipEncoding, "x-gzip":
		return gzipEncoding, nil
	case zstdEncoding:
		return e, nil
	}
	return "", errEncoding
}

// maxDecoders is the maximum number of requests that are decoded concurrently. The spans of all requests are counted
// one request at a time, so more decoders would wait for each other.
const maxDecoders = 8

// newDecoders returns as many decoders as there are processors, at most maxDecoders.
func newDecoders() chan *decoder {
	all := make(chan *decoder, min(runtime.GOMAXPROCS(0), maxDecoders))
	for range cap(all) {
		all <- new(decoder)
	}
	return all
}

// decoder decodes one request at a time, and keeps its memory for the next one. A request takes at most some 50 MiB in
// a decoder, and only while a processor works on it: 16 MiB decompressed, 8 MiB for the window of zstd, and the spans.
// A decoder keeps less than 20 MiB between requests. The zero value is ready for use.
type decoder struct {
	batch    batch
	gzip     *gzip.Reader
	zstd     *zstd.Decoder
	unpacked []byte
}

// reset releases the bytes of the request, which belong to its body.
func (d *decoder) reset() {
	const keptSpans, keptBytes = 16 << 10, 1 << 20
	// The spans and the buffer of a large request are released: most requests are small.
	clear(d.batch.spans)
	spans := d.batch.spans[:0]
	if cap(spans) > keptSpans {
		spans = nil
	}
	d.batch = batch{spans: spans}
	if d.unpacked = d.unpacked[:0]; cap(d.unpacked) > keptBytes {
		d.unpacked = nil
	}
}

// unframe returns the message in a gRPC frame, and its encoding. The frame states whether the message is compressed;
// name is the encoding of compressed messages.
func unframe(frame []byte, name string) ([]byte, encoding, error) {
	message := frame[frameHeader:][:binary.BigEndian.Uint32(frame[1:frameHeader])]
	if frame[0] == 0 {
		return message, plain, nil
	}
	e, err := parseEncoding(name)
	if e == plain {
		err = errEncoding // the sender did not name it
	}
	return message, e, err
}

// unpack returns the decompressed bytes, which are valid until reset.
func (d *decoder) unpack(body []byte, e encoding) ([]byte, error) {
	var from io.Reader
	switch e {
	case gzipEncoding:
		if d.gzip == nil {
			d.gzip = new(gzip.Reader)
		}
		// Reset reads the header, so it fails if the body is not gzip.
		if err := d.gzip.Reset(bytes.NewReader(body)); err != nil {
			return nil, errPacked
		}
		from = d.gzip
	case zstdEncoding:
		if d.zstd == nil {
			var err error
			// Of one processor, without goroutines. A larger window would be memory that a few bytes could ask for.
			d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(8<<20))
			if err != nil {
				return nil, err
			}
		}
		if len(body) == 0 { // zstd reads nothing as an empty message
			return nil, errPacked
		}
		if err := d.zstd.Reset(bytes.NewReader(body)); err != nil {
			return nil, errPacked
		}
		defer func() { _ = d.zstd.Reset(nil) }() // releases the body
		from = d.zstd
	default:
		return body, nil
	}
	// The limit is checked while decompressing: a few kilobytes may decompress to gigabytes.
	for to, size := d.unpacked, unpackedSize(body, e); ; {
		if len(to) == cap(to) {
			to = append(make([]byte, 0, min(max(minGrowth, size, 2*cap(to)), maxBody+1)), to...)
		}
		n, err := from.Read(to[len(to):cap(to)])
		to = to[:len(to)+n]
		d.unpacked = to
		switch {
		case len(to) > maxBody:
			return nil, errTooLarge
		case err == io.EOF:
			return to, nil
		case err != nil:
			return nil, errPacked
		}
	}
}

// unpackedSize estimates the size of a decompressed body, so that the buffer need not grow. The last bytes of gzip are
// the size, which a sender may invent; deflate cannot compress by more than a factor of 1032.
func unpackedSize(body []byte, e encoding) int {
	if n := len(body); e == gzipEncoding && n >= 4 {
		return min(int(binary.LittleEndian.Uint32(body[n-4:]))+1, 1032*n)
	}
	return 4 * len(body)
}
