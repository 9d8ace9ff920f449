package e2e

import (
	"errors"
	"net/http"
	"time"
)

// outage reports whether a page with outages has one: 15 of every 30 seconds, which is harder than 15 of every minute,
// because there are more of them, and half of the scrapes of a run fail.
func outage() bool { return time.Now().Unix()%30 < 15 }

// flaky answers 500 in an outage.
func flaky(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if outage() {
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		page.ServeHTTP(w, r)
	})
}

// torn breaks its answers off in their middle in an outage. Their status is 200, and a server that reads them has some
// of the samples in its hands when it finds out.
func torn(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !outage() {
			page.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding") // so that what arrives can be read
		page.ServeHTTP(&tearing{ResponseWriter: w, left: 3000}, r)
		panic(http.ErrAbortHandler) // closes the connection
	})
}

// tearing lets some bytes through, and then fails.
type tearing struct {
	http.ResponseWriter
	left int
}

var errTorn = errors.New("connection lost")

func (w *tearing) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b[:min(len(b), w.left)])
	w.left -= n
	if err == nil && n < len(b) {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // or nothing would arrive
		err = errTorn
	}
	return n, err
}
