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

// file is an open log, unpacked: what is read from it are lines, whatever is on the disk. It does not know whether the log ends or grows.
type file struct {
	startReader
	raw     *os.File // as it is on the disk; nil for stdin
	size    int64    // in bytes on the disk, 0 if unknown
	regular bool     // it can be opened again
	packed  bool
	close   func() error
}

// open opens a log; its first bytes tell whether it is packed with gzip or zstd. "-" is stdin.
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
	// The name may end in anything: rotation and copying rename files. The first bytes do not lie.
	buffered := bufio.NewReaderSize(raw, 64<<10)
	head, _ := buffered.Peek(zstd.HeaderMaxSize)
	f.packed, f.Reader = true, buffered
	var err error
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		f.Reader, err = gzip.NewReader(buffered)
	case isZstd(head):
		var d *zstd.Decoder
		if d, err = zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(128<<20)); err == nil {
			f.Reader = d
			closeFile := f.close
			f.close = func() error { d.Close(); return closeFile() }
		}
	case bytes.HasPrefix(head, []byte("BZh")):
		err = errors.New("it is packed with bzip2: decompress it first")
	case bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X'}):
		err = errors.New("it is packed with xz: decompress it first")
	default:
		f.packed = false
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.close())
	}
	return f, nil
}

// isZstd reports whether a zstd frame begins so, or a skippable one, which pzstd puts in front.
func isZstd(head []byte) bool { return new(zstd.Header).Decode(head) == nil }

const (
	// A block is large enough that its cost is that of its lines, and small enough that few are in memory.
	// blockSize is how much of a log is read at a time.
	blockSize = 256 << 10
	// maxLine is the length of the longest line that is read.
	maxLine = 1 << 20
)

// block is a piece of a log: whole lines, each with its newline except the last line of the log.
type block struct {
	data []byte
	long int       // lines before it that were too long, and skipped
	upTo time.Time // of a log that grows, if there is nothing: all lines written before were returned

	truncated bool  // the log was truncated behind it
	cut       int64 // bytes that were there then, and could not be read any more
}

// blocks reads a log block by block: whole lines, so that what parses them never sees a part of one. The beginning of a line at the end
// of a block is kept for the next one. A block may be longer than blockSize, if a line is: it grows to twice its size each time, until it
// has more than maxLine.
type blocks struct {
	r     io.Reader
	grows bool   // at its end, an incomplete line waits for its rest
	rest  []byte // the beginning of the next line
	skip  bool   // the rest of the line is too long
	end   error  // why nothing is read any more, though a file may have more by then
}

// next reads a block into buf, for which it may make another one. At the end the error is io.EOF; a log that grows has none, but empty
// blocks.
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
		// What is left of a line that is too long is thrown away as it comes, so that no line takes more memory than maxLine.
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
			if b.end = err; len(x.data) > 0 || x.long > 0 {
				err = nil // it comes with the next one
			}
			return x, err
		}
		end := bytes.LastIndexByte(x.data, '\n') + 1
		if end == 0 && len(x.data) > maxLine {
			x.long++
			x.data, b.skip = x.data[:0], true
		}
		if end > 0 || ended {
			b.rest = append(b.rest, x.data[end:]...)
			x.data = x.data[:end]
			return x, nil
		}
	}
}

// stream is the input from a file that ends, or from a pipe such as stdin. A goroutine reads ahead. A pipe that is followed does
// not tell that it is empty: if nothing comes for a while, the stream assumes that nothing is on its way.
//
// The buffers go round: a block is valid until the next call of look, and by then its buffer is used again. Fresh ones would cost up to
// a sixth of the processor time of a replay, for memory that is cleared and thrown away.
type stream struct {
	from  *file
	read  chan result
	done  <-chan struct{} // ends the reading, of a file that ends; nil if it is followed
	heard time.Time       // when something came last
	upTo  time.Time
}

// result is what was read: a block, or the error that ends the reading.
type result struct {
	block
	err error
}

// readAhead is how many blocks wait to be looked at.
const readAhead = 2

// newStream starts a goroutine that reads until the log or the context that has done ends.
func newStream(f *file, done <-chan struct{}) *stream {
	s := &stream{from: f, read: make(chan result, readAhead), done: done, heard: time.Now(), upTo: time.Unix(0, 0)}
	go func() {
		var data [2 + readAhead][]byte // one is read, one is looked at, and the others wait
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

// look returns whole lines. It waits for them if the file ends; of one that is followed it returns, if there are none, the time up to
// which nothing has come.
func (s *stream) look() (block, error) {
	if s.done != nil {
		select {
		case x := <-s.read:
			return x.block, x.err
		case <-s.done:
			return block{}, io.EOF
		}
	}
	// A block that waits comes before the time: otherwise lines that have come would be late.
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

// close closes a file. A pipe is left to the end of the process, as reading it may block.
func (s *stream) close() error {
	if !s.from.regular {
		return nil
	}
	return s.from.close()
}
