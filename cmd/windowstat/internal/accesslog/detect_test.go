package accesslog

import (
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	const common = `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226`
	for _, c := range []struct{ sample, want string }{
		{common, "common"},
		{common + ` "-" "a"`, "combined"},
		{common + ` "-" "a" "10.0.0.1"`, "combined"},
		{common + ` "-" "a" 0.012`, "combined-time"},
		{common + ` "-" "a" 512 1024`, "combined"},
		{"shop.example:443 " + common + ` "-" "a"`, "vhost-combined"},
		{common + ` "-" "a" 12 "web@docker" "http://10.0.0.1:80" 35ms`, "traefik"},
		{common + ` "-" "a "quoted"" 12 "web@docker" "http://10.0.0.1:80" 35ms`, "traefik"},
		{`{"ts":1646861401.5241024,"status":200}`, "json"},
		{"\n\r\nrubbish\n" + common + ` "-" "a"` + "\n" + common + ` "-" "a"` + "\n", "combined"},

		{common + ` "-" "a" 512`, "error: the lines end in a whole number, and may be combined-usec (microseconds, " +
			"%D), or of a format with seconds (%T) or bytes there; give the format: ingress-nginx, "},
		{"", "error: no lines to detect the log format from; give the format: "},
		{"hello\nworld", `error: cannot detect the log format from the lines, such as "hello"; give the format: `},
		{"{}\n" + common, `error: cannot detect the log format from the lines, such as "{}"; `},
		{strings.Repeat("\x00", 1000), `error: cannot detect the log format from the lines, such as "\x00\x00`},
		{common + "\n" + common + ` "-" "a"`, "error: the lines are of several log formats; give the format: "},
	} {
		var sample [][]byte
		for line := range strings.SplitSeq(c.sample, "\n") {
			sample = append(sample, []byte(line))
		}
		got := ""
		if f, err := Detect(sample); err != nil {
			got = "error: " + err.Error()
		} else {
			got = f.String()
		}
		if got != c.want && (!strings.HasPrefix(c.want, "error") || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%.200q:\n got %s\nwant %s", c.sample, got, c.want)
		}
		if len(got) > 1500 {
			t.Errorf("%.200q: an error of %d bytes", c.sample, len(got))
		}
	}
}
