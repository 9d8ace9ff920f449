package proxy

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// clientBody is the body of a request on its way to the upstream. It records how reading it went:
//
//	ended    the upstream can have all of it
//	broken   the client sent an invalid body, or closed the connection
//	stalled  the client sent nothing for the stall timeout; broken is set, too
//
// The transport reads and closes it from its own goroutines, also after the upstream has responded.
//
// The error handler reads the three results to attribute a failure: the transport reports only that writing the request
// failed, and does not say whether the client or the upstream caused the failure.
type clientBody struct {
	io.ReadCloser
	conn                   *http.ResponseController
	ended, broken, stalled atomic.Bool
	closed                 atomic.Bool // the transport needs no more

	trailer   http.Header // of the request; net/http fills it in at the end of the body
	announced http.Header // a copy of trailer with the announced names

	mu        sync.Mutex
	continued bool // the client has a 100 Continue, or gets one with the first read
}

// newClientBody returns the body of r, whose response is written to w. It removes the names of trailers that describe
// the client, see [describesClient].
func newClientBody(w http.ResponseWriter, r *http.Request) *clientBody {
	maps.DeleteFunc(r.Trailer, func(name string, _ []string) bool { return describesClient(name) })
	return &clientBody{
		ReadCloser: r.Body,
		conn:       http.NewResponseController(w),
		trailer:    r.Trailer,
		announced:  maps.Clone(r.Trailer),
	}
}

// Read reads the body. At its end, net/http has added all trailers. Read removes those that no header announced,
// because the upstream must not get them.
func (b *clientBody) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	b.mu.Lock() // waits for sendContinue
	b.continued = true
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil, errors.Is(err, http.ErrBodyReadAfterClose):
	case err == io.EOF:
		b.ended.Store(true)
		maps.DeleteFunc(b.trailer, func(name string, _ []string) bool {
			_, announced := b.announced[name]
			return !announced
		})
	case b.closed.Load(): // interrupted by Close
	default:
		b.stalled.Store(errors.Is(err, os.ErrDeadlineExceeded))
		b.broken.Store(true)
	}
	return n, err
}

// Close interrupts a Read that waits for the client. The HTTP/2 transport waits for the end of Read before it delivers
// the trailers of an upstream that responds before it has read the body. Close does not close the body of net/http,
// which would wait for Read, too; net/http closes it when the handler returns.
func (b *clientBody) Close() error {
	if b.closed.Store(true); !b.ended.Load() {
		return b.conn.SetReadDeadline(time.Now().Add(-time.Second))
	}
	return nil
}
