package otlp

import (
	"encoding/binary"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
)

const (
	// maxBody is how many bytes a request may have, unpacked.
	maxBody = 16 << 20
	// maxMemory is what the bodies of all requests may take together: thousands of common ones.
	maxMemory = 4 * maxBody
	// firstBuffer holds the spans of a small service.
	firstBuffer = 16 << 10
)

// body is that of a request. What it takes of the memory for all grows with what its sender has sent, and not with what its headers
// announce: a thousand requests that promise 16 MiB and send nothing keep nobody out.
type body struct {
	used  *atomic.Int64 // by all
	bytes []byte
}

// read reads to the end. What a packed body unpacks to is bounded as what is not packed.
func (b *body) read(from io.Reader, packed bool) error {
	if packed {
		z, err := gzip.NewReader(from)
		if err != nil {
			return err
		}
		from = z
	}
	for {
		if n := cap(b.bytes); len(b.bytes) == n {
			size := min(max(2*n, firstBuffer), maxBody+1)
			if b.used.Add(int64(size-n)) > maxMemory {
				b.used.Add(int64(n - size))
				return errBusy
			}
			b.bytes = append(make([]byte, 0, size), b.bytes...)
		}
		n, err := from.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case len(b.bytes) > maxBody:
			return errTooLarge
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// readFrame reads a message of gRPC: behind whether it is packed, and its length.
func (b *body) readFrame(from io.Reader, encoding string) error {
	var header [5]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return err
	}
	packed, length := header[0] != 0, binary.BigEndian.Uint32(header[1:])
	switch {
	case length > maxBody:
		return errTooLarge
	case packed && encoding != "gzip":
		return errEncoding
	}
	err := b.read(io.LimitReader(from, int64(length)), packed)
	if err == nil && !packed && len(b.bytes) < int(length) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// free gives the memory back.
func (b *body) free() { b.used.Add(-int64(cap(b.bytes))) }
