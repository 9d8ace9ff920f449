// Package redact removes from messages what may be secret: user information, query and fragment of a URL, and what a server
// repeats of the request that it refuses.
package redact

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
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

// cited is a quotation, which may lack its end.
var cited = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

// Error returns the error of an HTTP client or transport for messages: its first line, without what it cites, which is what the
// server sent and may repeat the request. URLs that net/http puts into its errors stay, without what may be secret. It wraps err.
func Error(err error) error {
	if err == nil {
		return nil
	}
	shown := map[string]string{}
	for u, rest := (*url.Error)(nil), err; errors.As(rest, &u); rest = u.Err {
		shown[strconv.Quote(u.URL)] = strconv.Quote(URL(u.URL))
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // oauth2 puts a response into the second
	text := Line(cited.ReplaceAllStringFunc(first, func(quotation string) string {
		if u, ok := shown[quotation]; ok {
			return u
		}
		return `"…"`
	}))
	if text == err.Error() {
		return err
	}
	return &stripped{text, err}
}

type stripped struct {
	text string
	err  error
}

func (b *stripped) Error() string { return b.text }
func (b *stripped) Unwrap() error { return b.err }
