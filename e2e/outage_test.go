package e2e

import (
	"errors"
	"net/http"
	"time"
)

// outage reports whether a page with outages is in an outage: 15 of every 30 seconds. This is harder than 15 of every
// minute, because there are more outages, and half of the scrapes of a run fail.
func outage() bool { return time.Now().Unix()%30 < 15 }

// flaky responds with status 500 during an outage.
func flaky(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if outage() {
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		page.ServeHTTP(w, r)
	})
}

// torn breaks off its responses in the middle during an outage. Their status is 200, and the server has already read
// some of the samples when it detects the error.
func torn(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !outage() {
			page.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding") // a partial response must be readable
		page.ServeHTTP(&tearing{ResponseWriter: w, left: 3000}, r)
		panic(http.ErrAbortHandler) // closes the connection
	})
}

// tearing writes some bytes, and then fails.
type tearing struct {
	http.ResponseWriter
	left int
}

var errTorn = errors.New("connection lost")

func (w *tearing) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b[:min(len(b), w.left)])
	w.left -= n
	if err == nil && n < len(b) {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // otherwise nothing would arrive
		err = errTorn
	}
	return n, err
}
