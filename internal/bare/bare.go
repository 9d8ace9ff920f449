// Package bare takes out of messages what of a URL may be secret.
package bare

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// secret is what of a URL may be secret: user, query and fragment.
var secret = regexp.MustCompile(`(?s)(//)[^?#]*@|[?#].*`)

// URL returns a URL, which may be malformed, without what may be secret. Messages have no other.
func URL(s string) string { return secret.ReplaceAllString(s, "$1") }

// Error is an error without the secrets of URLs in its text, which net/http puts there.
func Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for u, rest := (*url.Error)(nil), err; errors.As(rest, &u); rest = u.Err {
		text = strings.ReplaceAll(text, strconv.Quote(u.URL), strconv.Quote(URL(u.URL)))
	}
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
