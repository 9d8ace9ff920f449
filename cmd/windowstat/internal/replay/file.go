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

// file is an open log. It decompresses the file, so that its content is lines. The caller decides whether the log ends
// or grows.
type file struct {
	startReader
	raw     *os.File // the file on the disk; nil for stdin
	size    int64    // in bytes on the disk, 0 if unknown
	regular bool     // it can be opened again
	packed  bool
	close   func() error
}

// open opens a log. Its first bytes show whether it is compressed with gzip or zstd. "-" is stdin.
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
	// Rotation and copying rename files, so the extension of a name proves nothing.
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

// isZstd reports whether head begins with a zstd frame, or with a skippable frame, which pzstd writes first.
func isZstd(head []byte) bool { return new(zstd.Header).Decode(head) == nil }

const (
	// blockSize is the number of bytes that are read at a time. A block is so large that its own cost is small compared
	// with the cost of its lines, and so small that few of its lines are in memory.
	blockSize = 256 << 10
	// maxLine is the maximum length of a line. Longer lines are skipped.
	maxLine = 1 << 20
)

// block is a part of a log. It consists of complete lines, each with its newline except the last line of the log.
type block struct {
	data []byte
	long int       // skipped lines before the block, which were too long
	upTo time.Time // if a log that grows has no more lines: all lines written before were returned

	truncated bool  // the log was truncated after the block
	cut       int64 // bytes that the truncation removed before they were read
}

// blocks reads a log in blocks of complete lines, so that a parser never sees a part of a line. It keeps the beginning
// of the last line for the next block. A block is longer than blockSize if a line is: it doubles each time, until it
// has more than maxLine bytes.
type blocks struct {
	r     io.Reader
	grows bool   // at the end of the log, an incomplete line waits for its rest
	rest  []byte // the beginning of the next line
	skip  bool   // the rest of the line is too long
	end   error  // of the last read; nothing is read afterwards
}

// next reads a block into buf, or into a new buffer if buf is too small. At the end the error is io.EOF. A log that
// grows returns empty blocks instead.
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
		// Drop the rest of a line that is too long as it is read, so that no line takes more memory than maxLine.
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
				err = nil // the next call returns it
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

// A power cut leaves a hole: NULs of any length, and then the next line of the server. The truncation of a log that a
// server writes without O_APPEND does the same. The line before a hole has lost its end.

// minHole is the number of NULs within a line that make a hole, because a hole has at least the length of a line. Fewer
// NULs are part of a malformed line.
const minHole = 16

// nextHole returns the first hole in data from an index on, and the length of the hole; a negative index if there is
// none.
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

// dropHoles removes the holes from data in place. A hole within a line ends the line, so that the line behind it is a
// separate line. If there is no NUL, dropHoles costs one scan for a byte.
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

// stream is the input from a file that ends, or from a pipe such as stdin. A goroutine reads ahead. A followed pipe
// does not show that it is empty. If nothing arrives for a while, the stream assumes that no line is on its way.
//
// The buffers are reused: a block is valid until the next call of look. New buffers would cost up to a sixth of the CPU
// time of a replay, because the runtime clears their memory.
type stream struct {
	from  *file
	read  chan result
	done  <-chan struct{} // ends the reading of a file that ends; nil for a followed pipe
	heard time.Time       // when the last block arrived
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

// look returns complete lines. It waits for them if the file ends. If a followed pipe has no lines, look returns the
// time before which all lines have arrived.
func (s *stream) look() (block, error) {
	if s.done != nil {
		select {
		case x := <-s.read:
			return x.block, x.err
		case <-s.done:
			return block{}, io.EOF
		}
	}
	// Check for a block before the time is used, because the lines in a waiting block would otherwise be late.
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

// close closes a file. It leaves a pipe open until the process ends, because the goroutine may be blocked in a read.
func (s *stream) close() error {
	if !s.from.regular {
		return nil
	}
	return s.from.close()
}
