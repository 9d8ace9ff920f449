// Package redact removes from messages what may be secret: user information, query and fragment of a URL, and what a server
// repeats of the request that it refuses.
package redact

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
)

// secret matches what may be secret in a URL.
var secret = regexp.MustCompile(`(?s)(//)[^?#]*@|[?#].*`)

// URL returns a URL, which may be malformed, without what may be secret, for messages.
func URL(s string) string { return secret.ReplaceAllString(s, "$1") }

// ParseURL parses the URL of a server, which has http:// or https://, a host, and no user information: that belongs in the options of
// the client. The error has no secrets.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q: %w", URL(s), errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q is not http:// or https:// with a host", URL(s))
	case u.User != nil:
		return nil, errors.New("it has user information, which belongs in Client")
	}
	return u, nil
}
