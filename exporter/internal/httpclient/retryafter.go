package httpclient

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter returns the wait that a server asks for, at most a minute; 0 for none.
func RetryAfter(h http.Header) time.Duration {
	header := h.Get("Retry-After")
	d := time.Duration(0)
	if seconds, err := strconv.Atoi(header); err == nil {
		d = time.Duration(min(max(seconds, 0), 3600)) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), time.Minute)
}
