package redact

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

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
