package redact

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// The excerpt contains no secret of the request, in any encoding that a server may use, and keeps the rest.
func TestExcerpt(t *testing.T) {
	const token, tenant, query = `hush-0123/456+789="<x>`, "whisper", "token of the query"
	r := httptest.NewRequest(http.MethodPost, "http://a/write", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Scope-Orgid", tenant)
	r.Header.Set("Cookie", "sid=abc; other=def")
	r.Header.Set("User-Agent", "windowstat/1")
	r.Header.Set("X-Shard", "7")
	inJSON, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	given := "http://reader:pass%20word@a/write?key=" + url.QueryEscape(query) + "&bare"
	for text, want := range map[string]string{
		"out of order sample\n":                     "out of order sample",
		"no " + token + " here":                     "no… here",
		"no " + html.EscapeString(token) + " here":  "no… here",
		"no " + url.QueryEscape(token) + " here":    "no… here",
		"no " + string(inJSON[:9]) + " here":        `no "… here`,
		"cut: " + token[:15]:                        "cut:…",
		"user=" + tenant + ": limit 7":              "user=…: limit 7",
		"sid abc, def":                              "… …, …",
		"?key=" + url.QueryEscape(query) + ", bare": "?key=…, …",
		"reader:pass word":                          "…:…",
		"windowstat/1 sent 7\x1b[2J\n\tbytes\u202e": `windowstat/1 sent 7\x1b[2J bytes\u202e`,
		strings.Repeat("x", 1000):                   strings.Repeat("x", 300) + "…",
		"not \xff UTF-8":                            "not ? UTF-8",
		"":                                          "",
	} {
		if got := Excerpt(text, &http.Response{Request: r}, given); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	r.Header = http.Header{}
	r.SetBasicAuth("reader", "pass word")
	text := fmt.Sprint(r.Header, " reader pass word")
	if got := Excerpt(text, &http.Response{Request: r}, "://"); strings.Contains(got, "reader") ||
		strings.Contains(got, "pass") || strings.Contains(got, "cmVhZGVy") {
		t.Error(got)
	}
	if got := Excerpt("no request", &http.Response{}, ""); got != "no request" {
		t.Error(got)
	}
}
