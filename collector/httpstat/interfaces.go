package httpstat

import (
	"io"
	"net/http"
	"reflect"
	"sync/atomic"
)

// Each bit represents an optional interface that a ResponseWriter can have: http.Flusher, http.Hijacker,
// http.CloseNotifier, http.Pusher and io.ReaderFrom.
const (
	flushes = 1 << iota
	hijacks
	notifies
	pushes
	reads
)

// httpCloseNotifier has the same method as http.CloseNotifier. Linters report uses of http.CloseNotifier, because it is
// deprecated, but gin and older handlers need the method.
type httpCloseNotifier interface{ CloseNotify() <-chan bool }

// knownAbilities caches the result of abilitiesOf for the first type of ResponseWriter. Most services have only one
// such type. Each of the five type assertions that the cache saves takes some nanoseconds.
var knownAbilities atomic.Pointer[abilities]

type abilities struct {
	of  reflect.Type
	has int
}

// abilitiesOf returns the bits of the optional interfaces of w.
func abilitiesOf(w http.ResponseWriter) int {
	t, known := reflect.TypeOf(w), knownAbilities.Load()
	if known != nil && known.of == t {
		return known.has
	}
	has := 0
	if _, ok := w.(http.Flusher); ok {
		has |= flushes
	}
	if _, ok := w.(http.Hijacker); ok {
		has |= hijacks
	}
	if _, ok := w.(httpCloseNotifier); ok {
		has |= notifies
	}
	if _, ok := w.(http.Pusher); ok {
		has |= pushes
	}
	if _, ok := w.(io.ReaderFrom); ok {
		has |= reads
	}
	if known == nil {
		knownAbilities.Store(&abilities{t, has})
	}
	return has
}

// wrap returns the ResponseWriter rw, which records the response and writes it to w.target. The caller must set
// w.target to target. rw has the same optional interfaces as target, because handlers may behave differently if an
// interface is missing or added. Each combination of interfaces needs its own struct type, which gets its methods from
// its embedded fields. The first field is the writer w, and all other fields point to w. A single allocation therefore
// contains both w and rw.
func wrap(target http.ResponseWriter) (w *writer, rw http.ResponseWriter) {
	switch abilitiesOf(target) {
	case flushes:
		x := new(struct {
			writer
			*flusher
		})
		x.flusher = (*flusher)(&x.writer)
		return &x.writer, x
	case hijacks:
		x := new(struct {
			writer
			*hijacker
		})
		x.hijacker = (*hijacker)(&x.writer)
		return &x.writer, x
	case flushes | hijacks:
		x := new(struct {
			writer
			*flusher
			*hijacker
		})
		x.flusher = (*flusher)(&x.writer)
		x.hijacker = (*hijacker)(&x.writer)
		return &x.writer, x
	case notifies:
		x := new(struct {
			writer
			*closeNotifier
		})
		x.closeNotifier = (*closeNotifier)(&x.writer)
		return &x.writer, x
	case flushes | notifies:
		x := new(struct {
			writer
			*flusher
			*closeNotifier
		})
		x.flusher = (*flusher)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		return &x.writer, x
	case hijacks | notifies:
		x := new(struct {
			writer
			*hijacker
			*closeNotifier
		})
		x.hijacker = (*hijacker)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		return &x.writer, x
	case flushes | hijacks | notifies:
		x := new(struct {
			writer
			*flusher
			*hijacker
			*closeNotifier
		})
		x.flusher = (*flusher)(&x.writer)
		x.hijacker = (*hijacker)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		return &x.writer, x
	case pushes:
		x := new(struct {
			writer
			*pusher
		})
		x.pusher = (*pusher)(&x.writer)
		return &x.writer, x
	case flushes | pushes:
		x := new(struct {
			writer
			*flusher
			*pusher
		})
		x.flusher = (*flusher)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		return &x.writer, x
	case hijacks | pushes:
		x := new(struct {
			writer
			*hijacker
			*pusher
		})
		x.hijacker = (*hijacker)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		return &x.writer, x
	case flushes | hijacks | pushes:
		x := new(struct {
			writer
			*flusher
			*hijacker
			*pusher
		})
		x.flusher = (*flusher)(&x.writer)
		x.hijacker = (*hijacker)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		return &x.writer, x
	case notifies | pushes:
		x := new(struct {
			writer
			*closeNotifier
			*pusher
		})
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		return &x.writer, x
	case flushes | notifies | pushes:
		x := new(struct {
			writer
			*flusher
			*closeNotifier
			*pusher
		})
		x.flusher = (*flusher)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		return &x.writer, x
	case hijacks | notifies | pushes:
		x := new(struct {
			writer
			*hijacker
			*closeNotifier
			*pusher
		})
		x.hijacker = (*hijacker)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		return &x.writer, x
	case flushes | hijacks | notifies | pushes:
		x := new(struct {
			writer
			*flusher
			*hijacker
			*closeNotifier
			*pusher
		})
		x.flusher = (*flusher)(&x.writer)
		x.hijacker = (*hijacker)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		return &x.writer, x
	case reads:
		x := new(struct {
			writer
			*readerFrom
		})
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case flushes | reads:
		x := new(struct {
			writer
			*flusher
			*readerFrom
		})
		x.flusher = (*flusher)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case hijacks | reads:
		x := new(struct {
			writer
			*hijacker
			*readerFrom
		})
		x.hijacker = (*hijacker)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case flushes | hijacks | reads:
		x := new(struct {
			writer
			*flusher
			*hijacker
			*readerFrom
		})
		x.flusher = (*flusher)(&x.writer)
		x.hijacker = (*hijacker)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case notifies | reads:
		x := new(struct {
			writer
			*closeNotifier
			*readerFrom
		})
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case flushes | notifies | reads:
		x := new(struct {
			writer
			*flusher
			*closeNotifier
			*readerFrom
		})
		x.flusher = (*flusher)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case hijacks | notifies | reads:
		x := new(struct {
			writer
			*hijacker
			*closeNotifier
			*readerFrom
		})
		x.hijacker = (*hijacker)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case flushes | hijacks | notifies | reads:
		x := new(struct {
			writer
			*flusher
			*hijacker
			*closeNotifier
			*readerFrom
		})
		x.flusher = (*flusher)(&x.writer)
		x.hijacker = (*hijacker)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case pushes | reads:
		x := new(struct {
			writer
			*pusher
			*readerFrom
		})
		x.pusher = (*pusher)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case flushes | pushes | reads:
		x := new(struct {
			writer
			*flusher
			*pusher
			*readerFrom
		})
		x.flusher = (*flusher)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case hijacks | pushes | reads:
		x := new(struct {
			writer
			*hijacker
			*pusher
			*readerFrom
		})
		x.hijacker = (*hijacker)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case flushes | hijacks | pushes | reads:
		x := new(struct {
			writer
			*flusher
			*hijacker
			*pusher
			*readerFrom
		})
		x.flusher = (*flusher)(&x.writer)
		x.hijacker = (*hijacker)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case notifies | pushes | reads:
		x := new(struct {
			writer
			*closeNotifier
			*pusher
			*readerFrom
		})
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case flushes | notifies | pushes | reads:
		x := new(struct {
			writer
			*flusher
			*closeNotifier
			*pusher
			*readerFrom
		})
		x.flusher = (*flusher)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case hijacks | notifies | pushes | reads:
		x := new(struct {
			writer
			*hijacker
			*closeNotifier
			*pusher
			*readerFrom
		})
		x.hijacker = (*hijacker)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	case flushes | hijacks | notifies | pushes | reads:
		x := new(struct {
			writer
			*flusher
			*hijacker
			*closeNotifier
			*pusher
			*readerFrom
		})
		x.flusher = (*flusher)(&x.writer)
		x.hijacker = (*hijacker)(&x.writer)
		x.closeNotifier = (*closeNotifier)(&x.writer)
		x.pusher = (*pusher)(&x.writer)
		x.readerFrom = (*readerFrom)(&x.writer)
		return &x.writer, x
	}
	w = new(writer)
	return w, w
}
