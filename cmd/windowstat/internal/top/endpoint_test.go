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
		"127.0.0.1:9719":            "",
		"localhost:9719/a/b":        "",
		"[::1]:9719":                "",
		":9719":                     "",
		":9719/stats":               "",
		"x":                         "is not host:port, http://host:port",
		"localhost/metrics":         "is not host:port, http://host:port",
		"":                          "is not host:port, http://host:port",
		":":                         "is not host:port, http://host:port",
		":port":                     "invalid port",
		"ftp://x":                   "is not host:port, http://host:port",
		"http://":                   "is not host:port, http://host:port",
		"http://:9719":              "is not host:port, http://host:port",
		"x:1?":                      "is not host:port, http://host:port",
		"http://x?":                 "is not host:port, http://host:port",
		"http://x/?cursor=a":        "is not host:port, http://host:port",
		"http://x#a":                "is not host:port, http://host:port",
		"user:secret@x:9719":        "put it into the file of --http.config.file",
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
	if got := fmt.Sprint(err); !strings.Contains(got, "is not host:port") || !strings.Contains(got, "ca.pem") {
		t.Error(got)
	}
}
