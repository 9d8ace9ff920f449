package redact

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// What may be secret in a URL is left out, and the rest of the message stays.
func TestURLs(t *testing.T) {
	for given, want := range map[string]string{
		"http://a:9090/api/v1/write":        "http://a:9090/api/v1/write",
		"http://a/write?token=hush":         "http://a/write",
		"http://hush:hush@a/write#hush":     "http://a/write",
		"http://hu@sh@a/write":              "http://a/write",
		"://hush@a?hush":                    "://a",
		"http://hu sh:x%zz@a:b/?x=hush\nhu": "http://a:b/",
		"":                                  "",
	} {
		if got := URL(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
	inner := errors.New("connection refused")
	token := &url.Error{Op: "Post", URL: "http://auth/token?secret=hush", Err: inner}
	err := Error(fmt.Errorf("again: %w", &url.Error{Op: "Post", URL: "http://a/write?token=hush&x=\"y\"", Err: fmt.Errorf("oauth2: %w", token)}))
	if s := err.Error(); strings.Contains(s, "hush") || s != `again: Post "http://a/write": oauth2: Post "http://auth/token": connection refused` {
		t.Error(s)
	}
	if !errors.Is(err, inner) {
		t.Error("the cause is lost")
	}
	if plain := Error(inner); plain != inner || Error(nil) != nil { //nolint:errorlint // the very same
		t.Error(plain)
	}
}
