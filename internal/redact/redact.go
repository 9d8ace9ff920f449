// Package redact removes from messages what may be secret: user information, query and fragment of a URL, and what a server
// repeats of the request that it refuses.
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

// Line returns the beginning of a text on one line of printable characters.
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

// Excerpt returns the beginning of a text of a response as a [Line], without what its request carried as a secret: the values of
// headers that an operator or a client's transport added, and the user information and the query of the URL that the operator
// gave. What is as long as part of a secret is left out where eight bytes in a row agree, because servers cut and quote what
// they repeat; a secret of one or two bytes is none.
func Excerpt(text string, resp *http.Response, given string) string {
	secrets := map[string]bool{}
	if resp.Request != nil { // that of the innermost transport, with what those around it have added
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

// harmless are headers that clients of this module and net/http set.
var harmless = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Content-Encoding": true, "Content-Length": true, "Content-Type": true,
	"User-Agent": true, "X-Prometheus-Remote-Write-Version": true,
}

// addValue adds the value of a header and its words: a token without its scheme, a cookie without its name, the user and the password
// of basic authentication.
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

// add adds a secret, as it is and as servers write it in their responses.
func add(secrets map[string]bool, s string) {
	if len(s) < 3 {
		return
	}
	quoted := strconv.Quote(s)
	for _, written := range []string{s, html.EscapeString(s), url.QueryEscape(s), url.PathEscape(s), quoted[1 : len(quoted)-1]} {
		secrets[written] = true
	}
}

// without returns a text with … in the place of what it has of secrets: all of a short one, eight bytes or more of a longer one.
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
