package httpstat

import (
	"context"
	"io"
	"net/http"
	"reflect"
)

// The handler gets a request with another context. This request must be a copy, because other goroutines may read the
// context of the original. Except for the context, the copy must behave like the original, for the handler, for outer
// middleware and for net/http:
//
//   - net/http adds trailers to the original when the body has been read. lend makes both requests share the map.
//   - Handlers set fields: ServeMux sets the pattern and path values, ParseMultipartForm the form. net/http deletes the
//     files of the form of the original, and outer middleware may read any field. giveBack copies the fields back.

// lend fills in w.request, a copy of r with the context inner.
func (w *writer) lend(r *http.Request, inner context.Context) {
	if r.Trailer == nil && len(r.TransferEncoding) > 0 { // HTTP/2 announces trailers and has a map for them
		r.Trailer = http.Header{}
	}
	w.ctx = inner
	w.request = *r.WithContext(inner)
}

// giveBack makes r equal to the copy that the handler had, except for the context. It writes nothing if the handler has
// set no field, because goroutines of outer middleware may read r.
func (w *writer) giveBack(r *http.Request) {
	h := &w.request
	ctx := r.Context()
	if h.Context() != w.ctx { // a handler may assign to *r
		ctx = h.Context()
	} else if h.Pattern == r.Pattern && h.MultipartForm == r.MultipartForm &&
		(h.Form == nil) == (r.Form == nil) && (h.PostForm == nil) == (r.PostForm == nil) && sameBody(h.Body, r.Body) &&
		h.Method == r.Method && h.URL == r.URL && h.Host == r.Host && h.RemoteAddr == r.RemoteAddr &&
		h.RequestURI == r.RequestURI && h.ContentLength == r.ContentLength {
		return
	}
	*r = *h.WithContext(ctx)
}

// sameBody reports whether a and b are the same. It reports false for values that cannot be compared.
func sameBody(a, b io.ReadCloser) bool {
	if a == nil || a == http.NoBody || reflect.TypeOf(a).Kind() == reflect.Pointer {
		return a == b
	}
	return reflect.ValueOf(a).Comparable() && a == b // allocates; the bodies of net/http are pointers
}

// hungUp reports whether the client of a request has closed its connection or stream. net/http then cancels the context
// of the request, without a cause. A deadline, or a cancellation with a cause, comes from the service.
func hungUp(ctx context.Context) bool {
	return ctx.Err() == context.Canceled && context.Cause(ctx) == context.Canceled
}
