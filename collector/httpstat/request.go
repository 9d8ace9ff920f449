package httpstat

import (
	"bytes"
	"context"
	"net/http"
	"reflect"
	"unsafe"
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
// panicked. r keeps its context, unless the handler has assigned another request to its request. If no field has
// changed, giveBack writes nothing, because goroutines of outer middleware may read r.
func (w *writer) giveBack(r *http.Request) {
	h := &w.request
	switch {
	case h.Context() != w.ctx: // the handler has assigned another request to the copy
		*r = *h
	case !sameFields(h, r):
		*r = *h.WithContext(r.Context())
	}
}

// contextStart and contextEnd are the offsets of the context in a request. If net/http renames the field, both are 0.
var contextStart, contextEnd = func() (start, end uintptr) {
	field, ok := reflect.TypeFor[http.Request]().FieldByName("ctx")
	if !ok {
		return 0, 0
	}
	return field.Offset, field.Offset + field.Type.Size()
}()

// sameFields reports whether a and b have the same fields, except for the context. It compares the memory of the
// requests, because the path values have no accessor that lists them, and because the fields of a copied request are
// equal byte by byte until somebody sets them. Two equal strings at different addresses count as different.
func sameFields(a, b *http.Request) bool {
	type memory = [unsafe.Sizeof(*a)]byte
	x, y := (*memory)(unsafe.Pointer(a)), (*memory)(unsafe.Pointer(b))
	return a.Pattern == b.Pattern && // the most frequent difference, because ServeMux sets the pattern
		bytes.Equal(x[:contextStart], y[:contextStart]) && bytes.Equal(x[contextEnd:], y[contextEnd:])
}

// hungUp reports whether the client of a request has hung up: it has closed its connection or its stream. ctx is the
// context of the request. net/http cancels this context without a cause if the client hangs up. A deadline, or a
// cancellation with a cause, comes from the service.
func hungUp(ctx context.Context) bool {
	return ctx.Err() == context.Canceled && context.Cause(ctx) == context.Canceled
}
