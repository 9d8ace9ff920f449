package top

import (
	"fmt"
	"strings"
	"testing"
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
		_, err := NewEndpoint(raw, nil)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) ||
			strings.Contains(got, "secret") ||
			strings.Contains(got, "\x1b") {
			t.Errorf("%q: %v", raw, err)
		}
	}
}
