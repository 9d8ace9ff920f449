package top

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/config"
)

func TestURLs(t *testing.T) {
	for raw, want := range map[string]string{
		"http://127.0.0.1:9719":     "",
		"https://[::1]:1/a/b":       "",
		"http://host":               "",
		"127.0.0.1:9719":            "is not http://host:port",
		"localhost:9719":            "is not http://host:port",
		"ftp://x":                   "is not http://host:port",
		"http://":                   "is not http://host:port",
		"http://:9719":              "is not http://host:port",
		"http://x?":                 "is not http://host:port",
		"http://x/?cursor=a":        "is not http://host:port",
		"http://x#a":                "is not http://host:port",
		"http://x:99999":            `port "99999"`,
		"http://user:secret@x:9719": "put it into the file of --http.config.file",
		"http://%zz":                "invalid URL escape",
		"http://a b":                "invalid character",
		"http://x/\x1b[2J":          "invalid control character",
	} {
		_, err := NewEndpoint(raw, config.DefaultHTTPClientConfig)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) || strings.Contains(got, "secret") || strings.Contains(got, "\x1b") {
			t.Errorf("%q: %v", raw, err)
		}
	}
	// Both at once.
	_, err := NewEndpoint("x", config.HTTPClientConfig{TLSConfig: config.TLSConfig{CAFile: "/nowhere/ca.pem"}})
	if got := fmt.Sprint(err); !strings.Contains(got, "is not http://host:port") || !strings.Contains(got, "ca.pem") {
		t.Error(got)
	}
}
