// Package httpclient has the parts of an HTTP client that push and verify share.
package httpclient

import (
	"net/http"
	"strconv"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// New returns a copy of a client, or, for nil, a client with a copy of the default transport that keeps idle
// connections. The client follows no redirects: a request to a wrong address must fail visibly.
func New(given *http.Client, idle int) *http.Client {
	client := &http.Client{}
	if given != nil {
		*client = *given
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok { // a program may have replaced it
		t = t.Clone()
		t.MaxIdleConnsPerHost = idle
		client.Transport = t
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// UserAgent returns the default value of the header User-Agent: windowstat and its version. The transport of a client
// can replace the value.
func UserAgent() string { return "windowstat/" + collector.Version() }

// RetryAfter returns the wait that the header Retry-After requests, at most a minute, or 0 without it.
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
