package push

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// secret is what of a URL may be secret: user, query and fragment.
var secret = regexp.MustCompile(`(?s)(//)[^?#]*@|[?#].*`)

// bareURL returns a URL, which may be malformed, without what may be secret. Messages have no other.
func bareURL(s string) string { return secret.ReplaceAllString(s, "$1") }

// bareError is an error without the secrets of URLs in its text, which net/http puts there.
func bareError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for u, rest := (*url.Error)(nil), err; errors.As(rest, &u); rest = u.Err {
		text = strings.ReplaceAll(text, strconv.Quote(u.URL), strconv.Quote(bareURL(u.URL)))
	}
	if text == err.Error() {
		return err
	}
	return &bare{text, err}
}

type bare struct {
	text string
	err  error
}

func (b *bare) Error() string { return b.text }
func (b *bare) Unwrap() error { return b.err }
