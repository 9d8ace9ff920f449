package limiter

import (
	"net/http"
	"time"
)

// Begin prepares for the response to a request without a body. A page has no use for one, and net/http would wait for the
// rest of it before it writes the first byte: a request with a body is refused, and its connection closed. It reports whether
// the request is to be served.
//
// The response may take until timeout has passed, or as long as the server's WriteTimeout allows if that is less. A handler
// around this one that moved the write deadline is not seen.
func Begin(w http.ResponseWriter, r *http.Request, timeout time.Duration) bool {
	conn := http.NewResponseController(w) // its errors mean that there is no connection, as in a test
	if r.ContentLength != 0 {
		_ = conn.SetReadDeadline(past)
		w.Header().Set("Connection", "close")
		http.Error(w, "a request of this page has no body", http.StatusBadRequest)
		return false
	}
	if s, _ := r.Context().Value(http.ServerContextKey).(*http.Server); s == nil || s.WriteTimeout <= 0 || s.WriteTimeout > timeout {
		_ = conn.SetWriteDeadline(time.Now().Add(timeout)) // net/http takes it back after the response
	}
	return true
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// Closing returns a function that breaks off a response: what is being written fails. It must not be called after the handler
// has returned.
func Closing(w http.ResponseWriter) func() error {
	return func() error { return http.NewResponseController(w).SetWriteDeadline(past) }
}
