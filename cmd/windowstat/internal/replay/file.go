package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// file is an open log whose content is lines: it decompresses packed files. The caller decides whether the log ends or
// grows.
type file struct {
	startReader
	raw     *os.File // the file on the disk; nil for stdin
	size    int64    // in bytes on the disk, 0 if unknown
	regular bool     // can be opened again
	packed  bool
	close   func() error
}

// open opens a log. "-" is stdin. The first bytes show the compression:
//
//	1f 8b                gzip
//	28 b5 2f fd          zstd, also after a skippable frame, which pzstd writes
//	"BZh", fd "7zX"      bzip2, xz: an error
//	ff fe, fe ff         UTF-16: an error
//	anything else        lines
func open(name string, stdin io.Reader) (*file, error) {
	f := &file{close: func() error { return nil }}
	raw := stdin
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		info, err := opened.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a directory", name)
		}
		if err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		f.close, f.raw, raw = opened.Close, opened, opened
		if info.Mode().IsRegular() {
			f.size, f.regular = info.Size(), true
		}
	}
	// Check the content: rotation and copying rename files, so the extension of a name proves nothing.
	buffered := bufio.NewReaderSize(raw, 64<<10)
	head, _ := buffered.Peek(zstd.HeaderMaxSize)
	f.packed, f.Reader = true, buffered
	var err error
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		f.Reader, err = gzip.NewReader(buffered)
	case isZstd(head):
		var d *zstd.Decoder
		if d, err = zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(128<<20)); err == nil {
			f.Reader = d
			closeFile := f.close
			f.close = func() error { d.Close(); return closeFile() }
		}
	case bytes.HasPrefix(head, []byte("BZh")):
		err = errors.New("it is packed with bzip2: decompress it first")
	case bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X'}):
		err = errors.New("it is packed with xz: decompress it first")
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		err = errors.New("it is UTF-16, as PowerShell's > writes it: convert it to UTF-8 first")
	default:
		f.packed = false
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.close())
	}
	return f, nil
}

// isZstd reports whether head begins with a zstd frame or a skippable frame.
func isZstd(head []byte) bool { return new(zstd.Header).Decode(head) == nil }

const (
	// blockSize is the number of bytes that are read at a time: large enough that the cost of a block is small compared
	// with the cost of its lines, and small enough that few lines are in memory.
	blockSize = 256 << 10
	// maxLine is the maximum length of a line. Longer lines are skipped.
	maxLine = 1 << 20
)

// block is a part of a log. It consists of complete lines, each with its newline except the last line of the log.
type block struct {
	data []byte
	long int       // lines before the block that were skipped because they were too long
	upTo time.Time // not zero if a log that grows has no new lines: all lines before upTo were returned

	truncated bool  // the log was truncated after the block
	cut       int64 // bytes that the truncation removed before they were read
}

// blocks reads a log in blocks of complete lines, because a parser must never see a part of a line. rest keeps the
// beginning of the last line for the next block:
//
//	read      GET /a 200 \n GET /b 200 \n GET /c 2         00 \n GET /d ...
//	block     [first block              ]
//	                                     [second block          ]
//
// If a line is longer than blockSize, the block doubles until the line is complete or has more than maxLine bytes.
type blocks struct {
	r     io.Reader
	grows bool   // at the end of the log, an incomplete line waits for its rest
	rest  []byte // the beginning of the next line
	skip  bool   // the rest of the line is too long
	end   error  // of the last read; nothing is read afterwards
}

// next reads a block into buf, or into a new buffer if buf is too small. At the end, the error is io.EOF. For a log
// that grows, next returns empty blocks at the end.
func (b *blocks) next(buf []byte) (block, error) {
	var x block
	if b.end != nil {
		return x, b.end
	}
	x.data = append(buf[:0], b.rest...)
	b.rest = b.rest[:0]
	for {
		n := len(x.data)
		if n == cap(x.data) {
			x.data = append(x.data, make([]byte, max(blockSize, n))...)[:n]
		}
		got, err := b.r.Read(x.data[n:cap(x.data)])
		x.data = x.data[:n+got]
		// Drop the rest of a line that is too long while reading it. No line takes more memory than maxLine.
		if b.skip {
			i := bytes.IndexByte(x.data[n:], '\n')
			if i < 0 {
				x.data = x.data[:n]
			} else {
				x.data = append(x.data[:n], x.data[n+i+1:]...)
				b.skip = false
			}
		}
		ended := errors.Is(err, io.EOF)
		if err != nil && !(ended && b.grows) {
			if !ended {
				x.data = x.data[:bytes.LastIndexByte(x.data, '\n')+1] // the last line may be torn
			}
			x.data = dropHoles(x.data)
			if b.end = err; len(x.data) > 0 || x.long > 0 {
				err = nil // the next call returns b.end
			}
			return x, err
		}
		end := bytes.LastIndexByte(x.data, '\n') + 1
		if end == 0 && !ended {
			x.data = dropHoles(x.data) // a hole of any length takes no memory
			end = bytes.LastIndexByte(x.data, '\n') + 1
		}
		if end == 0 && len(x.data) > maxLine {
			x.long++
			x.data, b.skip = x.data[:0], true
		}
		if end > 0 || ended {
			b.rest = append(b.rest, x.data[end:]...)
			x.data = dropHoles(x.data[:end])
			return x, nil
		}
	}
}

// A hole is a sequence of NULs. A power cut leaves one, followed by the next line of the server. So does truncating a
// log whose writer does not use O_APPEND: the writer continues at its old offset. The line before a hole has lost its
// end.
//
//	GET /a 200 \n GET /b 2 NUL NUL ... NUL GET /c 200 \n        data on the disk
//	GET /a 200 \n GET /b 2 \n              GET /c 200 \n        data after dropHoles

// minHole is the minimum length of a hole, because a hole is at least as long as a line. Fewer NULs are part of a
// malformed line.
const minHole = 16

// nextHole returns the index and the length of the first hole at or after from, or a negative index without a hole.
func nextHole(data []byte, from int) (at, length int) {
	for at = from; ; at += length {
		i := bytes.IndexByte(data[at:], 0)
		if i < 0 {
			return -1, 0
		}
		at += i
		length = len(data[at:]) - len(bytes.TrimLeft(data[at:], "\x00"))
		if length >= minHole {
			return at, length
		}
	}
}

// dropHoles removes the holes from data in place. A hole within a line becomes a newline, so the bytes after the hole
// are a separate line. Without a NUL, dropHoles costs one scan for a byte.
func dropHoles(data []byte) []byte {
	at, length := nextHole(data, 0)
	if at < 0 {
		return data
	}
	kept, from := data[:0], 0
	for ; at >= 0; at, length = nextHole(data, from) {
		kept = append(kept, data[from:at]...)
		if n := len(kept); n > 0 && kept[n-1] != '\n' {
			kept = append(kept, '\n')
		}
		from = at + length
	}
	return append(kept, data[from:]...)
}

// stream is the input from a file that ends, or from a pipe such as stdin. A goroutine reads ahead. A pipe cannot be
// asked whether it is empty. If nothing arrives on a followed pipe for the length of a poll, the stream assumes that no
// line is on its way.
//
// Buffers are reused: a block is valid until the next call of look. New buffers would cost up to a sixth of the CPU
// time of a replay, because the runtime clears their memory.
type stream struct {
	from  *file
	read  chan result
	done  <-chan struct{} // ends the reading of a file that ends; nil for a followed pipe
	heard time.Time       // arrival of the last block
	upTo  time.Time
}

// result is a block, or the error that ends the reading.
type result struct {
	block
	err error
}

// readAhead is the number of blocks that wait for look.
const readAhead = 2

// newStream starts a goroutine that reads until the log ends or done is closed.
func newStream(f *file, done <-chan struct{}) *stream {
	s := &stream{from: f, read: make(chan result, readAhead), done: done, heard: time.Now(), upTo: time.Unix(0, 0)}
	go func() {
		var data [2 + readAhead][]byte // one is being read, one is being parsed, and the others wait
		all := blocks{r: f}
		for i := 0; ; i = (i + 1) % len(data) {
			x, err := all.next(data[i])
			data[i] = x.data
			select {
			case s.read <- result{x, err}:
			case <-done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// look returns complete lines. For a file that ends, it waits for them. If a followed pipe has no lines, look returns a
// time: all lines written before that time have arrived.
func (s *stream) look() (block, error) {
	if s.done != nil {
		select {
		case x := <-s.read:
			return x.block, x.err
		case <-s.done:
			return block{}, io.EOF
		}
	}
	// Check for a block before using the time. Otherwise the lines of a waiting block would be late.
	now := time.Now()
	select {
	case x := <-s.read:
		s.heard = now
		return x.block, x.err
	default:
	}
	if now.Sub(s.heard) >= poll {
		s.upTo = now.Add(-poll)
	}
	return block{upTo: s.upTo}, nil
}

// close closes a regular file. A pipe stays open until the process ends, because the goroutine may be blocked in a
// read.
func (s *stream) close() error {
	if !s.from.regular {
		return nil
	}
	return s.from.close()
}
