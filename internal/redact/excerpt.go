package redact

import (
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

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
