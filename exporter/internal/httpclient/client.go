// Package httpclient has what pushes and verify have in common: their HTTP clients, and what they read of a response.
package httpclient

import (
	"net/http"

	"github.com/windowstat/windowstat/exporter/internal/version"
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
func UserAgent() string { return "windowstat/" + version.String() }
