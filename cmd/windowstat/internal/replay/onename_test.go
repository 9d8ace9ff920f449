package replay

import (
	"path/filepath"
	"testing"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// Servers escape non-ASCII paths differently. Such a path used to have two names; now it has one, percent-encoded or
// not.
func TestOneNameFromAllServers(t *testing.T) {
	const at = "[02/Jan/2020:03:04:05 +0000]"
	for name, c := range map[string]struct{ line, format string }{
		"nginx":           {`::1 - - ` + at + ` "GET /\xD0\xBA\xD0\xBB HTTP/1.1" 200 1`, "common"},
		"httpd":           {`::1 - - ` + at + ` "GET /\xd0\xba\xd0\xbb HTTP/1.1" 200 1`, "common"},
		"raw":             {`::1 - - ` + at + ` "GET /кл HTTP/1.1" 200 1`, "common"},
		"percent-encoded": {`::1 - - ` + at + ` "GET /%d0%BA%D0%bb HTTP/1.1" 200 1`, "common"},
		"JSON":            {`{"ts":1577934245,"request":{"method":"GET","uri":"/кл"},"status":200}`, "json"},
		"escaped JSON":    {`{"ts":1577934245,"request":{"method":"GET","uri":"/\u043a\u043b"},"status":200}`, "json"},
		"nginx's JSON": {
			`{"msec":"1577934245.000","request":"GET /\xD0\xBA\xD0\xBB HTTP/1.1","status":"200"}`,
			"json",
		},
		"JSON with a code": {`{"ts":1577934245,"request":{"method":"GET","uri":"/%D0%BA%D0%BB"},"status":200}`, "json"},
		"docker": {`{"log":"::1 - - ` + at +
			` \"GET /\\xD0\\xBA\\xD0\\xBB HTTP/1.1\" 200 1\n","stream":"stdout"}`, "common"},
	} {
		f, err := accesslog.Named(c.format)
		if err != nil {
			t.Fatal(err)
		}
		path := write(t, filepath.Join(t.TempDir(), "access.log"), []byte(c.line+"\n"))
		s, _ := replay(t, "", func(o *Options) { o.Files, o.Format = []string{path}, f })
		t.Run(name, func(t *testing.T) { equal(t, "pass", s.pass, map[string]int64{"GET /кл": 1}) })
	}
}
