// Package httpclient has what pushes and verify have in common: their HTTP clients, and what they read of a response.
package httpclient

import (
	"net/http"
	"strconv"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// New returns a copy of a client, or, if that is nil, one with the default transport that keeps some idle connections. It follows no
// redirects: a request that is not sent where the options say must be seen.
func New(given *http.Client, idle int) *http.Client {
	client := &http.Client{}
	if given != nil {
		*client = *given
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok { // a program may have set another
		t = t.Clone()
		t.MaxIdleConnsPerHost = idle
		client.Transport = t
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// UserAgent is the value of the header, unless the client's transport says otherwise.
func UserAgent() string { return "windowstat/" + collector.Version() }

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
