package redact

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
)

// URL removes possible secrets and keeps the rest.
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
}

// Error keeps the cause and the requested URL, and removes all text from the server.
func TestErrors(t *testing.T) {
	inner := errors.New("connection refused")
	token := &url.Error{Op: "Post", URL: "http://auth/token?secret=hush", Err: inner}
	requested := func(err error) error {
		return &url.Error{Op: "Post", URL: "http://a/write?token=hush&x=\"y\"", Err: err}
	}
	for _, tc := range []struct {
		err  error
		want string
	}{
		{
			fmt.Errorf("again: %w", requested(fmt.Errorf("oauth2: %w", token))),
			`again: Post "http://a/write": oauth2: Post "http://auth/token": connection refused`,
		},
		{
			requested(fmt.Errorf("malformed HTTP response %q", `Bearer hush "hush`)),
			`Post "http://a/write": malformed HTTP response "…"`,
		},
		{
			requested(errors.New(`net/http: HTTP/1.x transport connection broken: "hush`)),
			`Post "http://a/write": net/http: HTTP/1.x transport connection broken: "…"`,
		},
		{
			requested(errors.New("oauth2: cannot fetch token: 400 Bad Request\nResponse: hush")),
			`Post "http://a/write": oauth2: cannot fetch token: 400 Bad Request`,
		},
		{
			requested(errors.New("certificate of \x1b[2J")),
			`Post "http://a/write": certificate of \x1b[2J`,
		},
	} {
		got := Error(tc.err)
		if got.Error() != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
		if errors.Is(tc.err, inner) != errors.Is(got, inner) {
			t.Errorf("%s: errors.Is does not find the cause", tc.want)
		}
	}
	if plain := Error(inner); plain != inner || Error(nil) != nil { //nolint:errorlint // must be the same error
		t.Error(plain)
	}
}
