package live

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"
)

// piece is a part of the messages of many viewers, encoded and compressed once.
type piece struct{ plain, zipped []byte }

// gzipHead starts a gzip stream. What follows are pieces, each compressed by itself and referring to nothing before it, so that
// it can follow any other. A stream has no trailer, because it has no end.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

var deflaters sync.Pool

// pieceOf compresses a part.
func pieceOf(plain []byte) piece {
	z, _ := deflaters.Get().(*flate.Writer)
	if z == nil {
		z, _ = flate.NewWriter(nil, flate.DefaultCompression)
	}
	defer deflaters.Put(z)
	var out bytes.Buffer // never fails
	z.Reset(&out)
	_, _ = z.Write(plain)
	_ = z.Flush()
	return piece{plain, out.Bytes()}
}

// small makes a piece of less than 64 KiB that one viewer needs once. It is not worth compressing, and stands in a block as it is.
func small(plain []byte) piece {
	n := uint16(len(plain))
	b := binary.LittleEndian.AppendUint16([]byte{0}, n)
	return piece{plain, append(binary.LittleEndian.AppendUint16(b, ^n), plain...)}
}

// pieces are a message.
type pieces []piece

// add adds a piece, with a comma before it if it is not the first one of a list.
func (p pieces) add(x piece, first bool) pieces {
	if !first {
		p = append(p, comma)
	}
	return append(p, x)
}

var comma = small([]byte(","))

// buffers make few writes of many pieces.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 16<<10) }}

// write writes parts of a message in one go.
func write(w io.Writer, parts func(*bufio.Writer)) error {
	b := buffers.Get().(*bufio.Writer)
	defer buffers.Put(b)
	b.Reset(w)
	defer b.Reset(nil)
	parts(b) // an error stays until Flush
	return b.Flush()
}

func (p pieces) writeTo(b *bufio.Writer, zip bool) {
	for _, x := range p {
		if zip {
			_, _ = b.Write(x.zipped)
		} else {
			_, _ = b.Write(x.plain)
		}
	}
}

// size returns the bytes that are written.
func (p pieces) size(zip bool) (n int) {
	for _, x := range p {
		if zip {
			n += len(x.zipped)
		} else {
			n += len(x.plain)
		}
	}
	return n
}

// end is the end of a compressed body that has no other pieces: an empty last block, the checksum and the length.
func (p pieces) end() []byte {
	var sum uint32
	size := 0
	for _, x := range p {
		sum, size = crc32.Update(sum, crc32.IEEETable, x.plain), size+len(x.plain)
	}
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32([]byte("\x03\x00"), sum), uint32(size))
}
