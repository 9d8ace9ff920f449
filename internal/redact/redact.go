// Package redact removes secrets from messages: the user information, query and fragment of a URL, and parts of a
// request that a server repeats in the response that refuses it.
package redact

import (
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// secret matches the parts of a URL that may be secret.
var secret = regexp.MustCompile(`(?s)(//)[^?#]*@|[?#].*`)

// URL returns the URL s without the parts that may be secret. s may be malformed.
func URL(s string) string { return secret.ReplaceAllString(s, "$1") }

// ParseURL parses the URL of a server. It must have the scheme http or https, a host, and no user information, which
// belongs in the options of the client. The error contains no secrets.
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

// cited matches a quoted string; the closing quote may be missing.
var cited = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

// Error returns a version of err, an error of an HTTP client or transport, that is safe to log. Its text is the first
// line of the original without quoted strings, because these come from the server and may repeat the request. URLs that
// net/http adds to its errors stay, without their secrets. The result wraps err.
func Error(err error) error {
	if err == nil {
		return nil
	}
	shown := map[string]string{}
	for u, rest := (*url.Error)(nil), err; errors.As(rest, &u); rest = u.Err {
		shown[strconv.Quote(u.URL)] = strconv.Quote(URL(u.URL))
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // oauth2 puts the response on the second line
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

// Line returns the first 300 bytes of text on one line, with unprintable characters escaped.
func Line(text string) string {
	const most = 300
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ") {
		if b.Len() >= most {
			b.WriteString("…")
			break
		}
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			escaped := strconv.QuoteRune(r)
			b.WriteString(escaped[1 : len(escaped)-1])
		}
	}
	return b.String()
}

// Excerpt returns the beginning of a response's text as a [Line], without the secrets of the request: the values of
// headers that an operator or a client's transport added, and the user information and query of the URL given, which
// the operator configured. Servers cut and quote the text that they repeat, so Excerpt hides every run of eight bytes
// that occurs in a secret. Values shorter than three bytes are not treated as secrets.
func Excerpt(text string, resp *http.Response, given string) string {
	secrets := map[string]bool{}
	if resp.Request != nil { // the request of the innermost transport, which has the headers that outer ones added
		for name, values := range resp.Request.Header {
			if !harmless[name] {
				for _, v := range values {
					addValue(secrets, v)
				}
			}
		}
	}
	if u, err := url.Parse(given); err == nil {
		addURL(secrets, u)
	}
	return Line(without(text, secrets))
}

// harmless lists the headers that net/http and the clients of this module set.
var harmless = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Content-Encoding": true, "Content-Length": true, "Content-Type": true,
	"User-Agent": true, "X-Prometheus-Remote-Write-Version": true,
}

// addValue adds the value of a header and its parts: a token without its scheme, a cookie without its name, the user
// and the password of basic authentication.
func addValue(secrets map[string]bool, value string) {
	add(secrets, value)
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ,;=\"", r) }) {
		add(secrets, word)
		if plain, err := base64.RawStdEncoding.DecodeString(word); err == nil {
			if user, password, ok := strings.Cut(string(plain), ":"); ok {
				add(secrets, user)
				add(secrets, password)
			}
		}
	}
}

func addURL(secrets map[string]bool, u *url.URL) {
	if password, ok := u.User.Password(); ok {
		add(secrets, password)
	}
	add(secrets, u.User.Username())
	for name, values := range u.Query() {
		for _, v := range values {
			if v == "" { // ?token
				v = name
			}
			add(secrets, v)
		}
	}
}

// add adds a secret, both plain and in the escaped forms that servers use in their responses.
func add(secrets map[string]bool, s string) {
	if len(s) < 3 {
		return
	}
	quoted := strconv.Quote(s)
	escaped := []string{s, html.EscapeString(s), url.QueryEscape(s), url.PathEscape(s), quoted[1 : len(quoted)-1]}
	for _, written := range escaped {
		secrets[written] = true
	}
}

// without returns text with its secrets replaced by an ellipsis: a short secret as a whole, and eight or more
// consecutive bytes of a longer one.
func without(text string, secrets map[string]bool) string {
	hidden := make([]bool, len(text))
	for s := range secrets {
		n := min(len(s), 8)
		for i := 0; i+n <= len(text); i++ {
			if strings.Contains(s, text[i:i+n]) {
				for k := range n {
					hidden[i+k] = true
				}
			}
		}
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString("…")
		}
	}
	return b.String()
}
