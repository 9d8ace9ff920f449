package httpstat

import (
	"context"
	"io"
	"net/http"
	"reflect"
)

// The handler gets a request with another context. The handler's request must be a copy of the original, because other
// goroutines may read the context of the original. Except for the context, the copy must behave like the original, for
// the handler, for outer middleware and for net/http:
//
//   - When the body has been read, net/http adds the trailers to the map Trailer of the original. lend makes both
//     requests share this map.
//   - The handler sets fields of the copy: ServeMux sets the pattern and the path values, and ParseMultipartForm the
//     form. Outer middleware may read these fields in the original, and net/http deletes the uploaded files of the
//     original's form. giveBack therefore copies the fields back.

// lend sets w.request to a copy of r with the context inner.
func (w *writer) lend(r *http.Request, inner context.Context) {
	// A chunked request of HTTP/1 may have trailers. For HTTP/2, net/http has made the map already if there are
	// trailers.
	if r.Trailer == nil && len(r.TransferEncoding) > 0 {
		r.Trailer = http.Header{}
	}
	w.ctx = inner
	w.request = *r.WithContext(inner)
}

// giveBack copies the fields of the handler's request to the original request r, after the handler has returned or
// panicked. r keeps its context, unless the handler has assigned another request to its request. If none of the
// fields that giveBack compares has changed, it writes nothing, because goroutines of outer middleware may read r.
func (w *writer) giveBack(r *http.Request) {
	h := &w.request
	ctx := r.Context()
	if h.Context() != w.ctx { // the handler has assigned another request to the copy
		ctx = h.Context()
	} else if h.Pattern == r.Pattern && h.MultipartForm == r.MultipartForm &&
		(h.Form == nil) == (r.Form == nil) && (h.PostForm == nil) == (r.PostForm == nil) && sameBody(h.Body, r.Body) &&
		h.Method == r.Method && h.URL == r.URL && h.Host == r.Host && h.RemoteAddr == r.RemoteAddr &&
		h.RequestURI == r.RequestURI && h.ContentLength == r.ContentLength {
		return
	}
	*r = *h.WithContext(ctx)
}

// sameBody reports whether a and b are the same body. If their type is not comparable, it returns false.
func sameBody(a, b io.ReadCloser) bool {
	if a == nil || a == http.NoBody || reflect.TypeOf(a).Kind() == reflect.Pointer {
		return a == b
	}
	return reflect.ValueOf(a).Comparable() && a == b // Comparable allocates, but bodies of net/http are pointers
}

// hungUp reports whether the client of a request has hung up: it has closed its connection or its stream. ctx is the
// context of the request. net/http cancels this context without a cause if the client hangs up. A deadline, or a
// cancellation with a cause, comes from the service.
func hungUp(ctx context.Context) bool {
	return ctx.Err() == context.Canceled && context.Cause(ctx) == context.Canceled
}
