package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// file is an open log, unpacked.
type file struct {
	io.Reader
	size   int64 // in bytes on the disk, 0 if unknown
	again  bool  // it can be opened again
	packed bool
	skip   func(n int64) error // skips bytes
	close  func() error
}

// counting counts the bytes read.
type counting struct {
	io.Reader
	n *atomic.Int64
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// open opens a log; its first bytes tell whether it is packed with gzip or zstd. "-" is stdin.
func open(name string, stdin io.Reader, read *atomic.Int64) (*file, error) {
	f := &file{close: func() error { return nil }}
	f.skip = func(n int64) error { _, err := io.CopyN(io.Discard, f, n); return err }
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
		f.close, raw = opened.Close, opened
		if info.Mode().IsRegular() {
			f.size, f.again = info.Size(), true
		}
	}
	buffered := bufio.NewReaderSize(counting{raw, read}, 64<<10)
	head, _ := buffered.Peek(4)
	var err error
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		f.packed = true
		f.Reader, err = gzip.NewReader(buffered)
	case isZstd(head):
		f.packed = true
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
		f.Reader = buffered
		if from, ok := raw.(*os.File); ok && f.again {
			f.skip = func(n int64) error {
				_, err := from.Seek(n-int64(buffered.Buffered()), io.SeekCurrent)
				buffered.Reset(counting{raw, read})
				return err
			}
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.close())
	}
	return f, nil
}

// isZstd reports whether a zstd frame begins so, or a skippable one, which pzstd puts in front.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) == 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18})
}
