package replay

import (
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// spool is what came from a pipe, packed in a temporary file, so that it can be read again: for its names, and in order.
type spool struct {
	file  *os.File
	ended error // why the pipe ended; reading it again meets the same
}

// newSpool reads a pipe to its end.
func newSpool(r io.Reader) (s *spool, err error) {
	file, err := os.CreateTemp("", "windowstat-*.zst")
	if err != nil {
		return nil, err
	}
	s = &spool{file: file}
	_ = os.Remove(file.Name()) // where that cannot be done now, close does it
	w, err := zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.ended = io.EOF
	if _, err := io.Copy(struct{ io.Writer }{w}, recording{r, &s.ended}); err != nil && err != s.ended {
		return nil, errors.Join(err, s.close()) // it cannot be kept
	}
	if err := w.Close(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// open begins at the beginning. Several may read at once.
func (s *spool) open() (*input, error) {
	const most = 1 << 62
	d, err := zstd.NewReader(io.NewSectionReader(s.file, 0, most), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return &input{Reader: io.MultiReader(d, recording{nil, &s.ended}), close: func() error { d.Close(); return nil }}, nil
}

// recording notes the error with which a reader ends; without a reader it ends with that.
type recording struct {
	io.Reader
	err *error
}

func (r recording) Read(p []byte) (n int, err error) {
	if r.Reader == nil {
		return 0, *r.err
	}
	if n, err = r.Reader.Read(p); err != nil {
		*r.err = err
	}
	return n, err
}

func (s *spool) close() error {
	err := s.file.Close()
	_ = os.Remove(s.file.Name())
	return err
}
