package proxy

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"sync/atomic"
)

// clientBody is a request's body that remembers how it went.
type clientBody struct {
	io.ReadCloser
	ended, broken, stalled atomic.Bool

	trailer, announced http.Header // as they come, and those that may
}

// newClientBody returns the body of a request, whose trailers are those that its headers have announced. None says who asks.
func newClientBody(r *http.Request) *clientBody {
	maps.DeleteFunc(r.Trailer, func(name string, _ []string) bool { return saysWhoAsks(name) })
	return &clientBody{ReadCloser: r.Body, trailer: r.Trailer, announced: maps.Clone(r.Trailer)}
}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil, errors.Is(err, http.ErrBodyReadAfterClose):
	case err == io.EOF:
		b.ended.Store(true)
		maps.DeleteFunc(b.trailer, func(name string, _ []string) bool {
			_, announced := b.announced[name]
			return !announced
		})
	default:
		b.stalled.Store(errors.Is(err, os.ErrDeadlineExceeded))
		b.broken.Store(true)
	}
	return n, err
}
