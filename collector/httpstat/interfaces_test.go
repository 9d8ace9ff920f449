package httpstat_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// errReached is the error that the methods of the type everything return.
var errReached = errors.New("the wrapped writer was reached")

// everything is a ResponseWriter with all optional interfaces.
type everything struct{ plain }

func (everything) Flush()                                       {}
func (everything) FlushError() error                            { return errReached }
func (everything) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errReached }
func (everything) CloseNotify() <-chan bool                     { return make(chan bool) }
func (everything) Push(string, *http.PushOptions) error         { return errReached }
func (everything) ReadFrom(io.Reader) (int64, error)            { return 0, errReached }

// errorFlusher is an http.Flusher with the method FlushError, which http.ResponseController prefers to Flush.
type errorFlusher interface {
	http.Flusher
	FlushError() error
}

// combinations returns ResponseWriters that forward their calls to e, one for each combination of the optional
// interfaces.
func combinations(e everything) []http.ResponseWriter {
	w := e.plain
	return []http.ResponseWriter{
		w,
		struct {
			plain
			errorFlusher
		}{w, e},
		struct {
			plain
			http.Hijacker
		}{w, e},
		struct {
			plain
			errorFlusher
			http.Hijacker
		}{w, e, e},
		struct {
			plain
			http.CloseNotifier
		}{w, e},
		struct {
			plain
			errorFlusher
			http.CloseNotifier
		}{w, e, e},
		struct {
			plain
			http.Hijacker
			http.CloseNotifier
		}{w, e, e},
		struct {
			plain
			errorFlusher
			http.Hijacker
			http.CloseNotifier
		}{w, e, e, e},
		struct {
			plain
			http.Pusher
		}{w, e},
		struct {
			plain
			errorFlusher
			http.Pusher
		}{w, e, e},
		struct {
			plain
			http.Hijacker
			http.Pusher
		}{w, e, e},
		struct {
			plain
			errorFlusher
			http.Hijacker
			http.Pusher
		}{w, e, e, e},
		struct {
			plain
			http.CloseNotifier
			http.Pusher
		}{w, e, e},
		struct {
			plain
			errorFlusher
			http.CloseNotifier
			http.Pusher
		}{w, e, e, e},
		struct {
			plain
			http.Hijacker
			http.CloseNotifier
			http.Pusher
		}{w, e, e, e},
		struct {
			plain
			errorFlusher
			http.Hijacker
			http.CloseNotifier
			http.Pusher
		}{w, e, e, e, e},
		struct {
			plain
			io.ReaderFrom
		}{w, e},
		struct {
			plain
			errorFlusher
			io.ReaderFrom
		}{w, e, e},
		struct {
			plain
			http.Hijacker
			io.ReaderFrom
		}{w, e, e},
		struct {
			plain
			errorFlusher
			http.Hijacker
			io.ReaderFrom
		}{w, e, e, e},
		struct {
			plain
			http.CloseNotifier
			io.ReaderFrom
		}{w, e, e},
		struct {
			plain
			errorFlusher
			http.CloseNotifier
			io.ReaderFrom
		}{w, e, e, e},
		struct {
			plain
			http.Hijacker
			http.CloseNotifier
			io.ReaderFrom
		}{w, e, e, e},
		struct {
			plain
			errorFlusher
			http.Hijacker
			http.CloseNotifier
			io.ReaderFrom
		}{w, e, e, e, e},
		struct {
			plain
			http.Pusher
			io.ReaderFrom
		}{w, e, e},
		struct {
			plain
			errorFlusher
			http.Pusher
			io.ReaderFrom
		}{w, e, e, e},
		struct {
			plain
			http.Hijacker
			http.Pusher
			io.ReaderFrom
		}{w, e, e, e},
		struct {
			plain
			errorFlusher
			http.Hijacker
			http.Pusher
			io.ReaderFrom
		}{w, e, e, e, e},
		struct {
			plain
			http.CloseNotifier
			http.Pusher
			io.ReaderFrom
		}{w, e, e, e},
		struct {
			plain
			errorFlusher
			http.CloseNotifier
			http.Pusher
			io.ReaderFrom
		}{w, e, e, e, e},
		struct {
			plain
			http.Hijacker
			http.CloseNotifier
			http.Pusher
			io.ReaderFrom
		}{w, e, e, e, e},
		struct {
			plain
			errorFlusher
			http.Hijacker
			http.CloseNotifier
			http.Pusher
			io.ReaderFrom
		}{w, e, e, e, e, e},
	}
}
