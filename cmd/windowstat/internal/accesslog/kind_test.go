package accesslog

import (
	"strings"
	"testing"
)

// others has lines of servers, scripts and runtimes that are not calls.
var others = map[Kind][]string{
	Empty: {"", " ", "\t \r", "\x00\x00\x00", "\uFEFF"},
	Directive: {
		"#Software: Microsoft Internet Information Services 10.0", "#Version: 1.0",
		"#Date: 2026-11-22 10:00:00", "#Remark: x", "#",
	},
	Message: {
		// nginx
		`2026/11/22 10:00:00 [notice] 1#1: using the "epoll" event method`,
		`2026/11/22 10:00:00 [error] 31#31: *1 open() "/usr/share/nginx/html/favicon.ico" failed (2: No such file or ` +
			`directory), client: 172.17.0.1, server: localhost, request: "GET /favicon.ico HTTP/1.1", host: ` +
			`"localhost"`,
		`2026/11/22 10:00:00 [error] 31#31: *200 connect() failed (111: Connection refused) while connecting to ` +
			`upstream, client: 172.17.0.1, server: , request: "GET / HTTP/1.1", upstream: "http://127.0.0.1:8080/"`,
		`nginx: [warn] conflicting server name "a.example" on 0.0.0.0:80, ignored`,
		`/docker-entrypoint.sh: /docker-entrypoint.d/ is not empty, will attempt to perform configuration`,
		`10-listen-on-ipv6-by-default.sh: info: Getting the checksum of /etc/nginx/conf.d/default.conf`,
		// httpd
		`[Sun Nov 22 10:00:00.000001 2026] [mpm_event:notice] [pid 1:tid 1] AH00489: Apache/2.4.62 (Unix) configured ` +
			`-- resuming normal operations`,
		`[Sun Nov 22 10:00:00.000001 2026] [core:error] [pid 7:tid 2] [client 192.0.2.1:40512] AH00126: Invalid URI ` +
			`in request GET /../ HTTP/1.1`,
		`AH00558: httpd: Could not reliably determine the server's fully qualified domain name, using 172.17.0.2. ` +
			`Set the 'ServerName' directive globally to suppress this message`,
		// Caddy
		`{"level":"info","ts":1795341600.1,"logger":"tls","msg":"cleaning storage unit"}`,
		`{"level":"warn","ts":1795341600.1,"msg":"Caddyfile input is not formatted","file":"Caddyfile","line":2}`,
		"2026/11/22 10:00:01.123\tINFO\ttls.cache.maintenance\tstarted background certificate " +
			"maintenance\t{\"cache\": \"0xc0\"}",
		`{"level":"error","ts":1795341601.1,"logger":"http.log.error","msg":"dial tcp: connection refused",` +
			`"request":{"method":"GET","uri":"/a"},"duration":0.007,"status":502,"err_id":"x"}`,
		`{"level":"debug","ts":1795341601.1,"logger":"http.handlers.reverse_proxy","msg":"upstream roundtrip",` +
			`"duration":0.007,"request":{"method":"GET","uri":"/a"},"status":200}`,
		"2026/11/22 10:00:01.123\tERROR\thttp.log.error.log0\tdial tcp\t{\"request\": {\"method\": \"GET\", \"uri\": " +
			"\"/a\"}, \"duration\": 0.007, \"status\": 502}",
		"2026/11/22 10:00:01.123\tINFO\tserving initial configuration",
		"2026/11/22 10:00:01.123\t\x1b[34mINFO\x1b[0m\tadmin\tadmin endpoint started\t{\"address\": " +
			"\"localhost:2019\"}",
		// Traefik
		`time="2026-11-22T10:00:01Z" level=info msg="Configuration loaded from flags."`,
		`2026-11-22T10:00:01Z INF Starting provider *docker.Provider log`,
		`{"level":"error","error":"x","time":"2026-11-22T10:00:01Z","message":"service not found"}`,
		// Envoy, Istio
		`[2026-11-22 10:00:00.123][1][info][main] [source/server/server.cc:430] initializing epoch 0`,
		"2026-11-22T10:00:01.123456Z\tinfo\txdsproxy\tconnected to upstream XDS server",
		// HAProxy
		`Proxy web started.`,
		`Server app/s1 is DOWN, reason: Layer4 connection problem, info: "Connection refused", check duration: 0ms.`,
		`10.0.0.7:40512 [22/Nov/2026:10:00:01.100] web/1: SSL handshake failure`,
		`Connect from 10.0.0.7:40512 to 10.0.0.1:80 (web/HTTP)`,
		`[NOTICE]   (1) : New worker (8) forked`,
		// ingress-nginx
		`I1122 10:00:01.000000       7 main.go:100] "successfully validated configuration, accepting"`,
		`W1122 10:00:01.000000       7 controller.go:1112] Error obtaining Endpoints`,
		// others
		`[2026-11-22 10:00:00 +0000] [1] [INFO] Starting gunicorn 22.0.0`,
		`22-Nov-2026 10:00:01.123 INFO [main] org.apache.catalina.startup.Catalina.start Server startup in ` +
			`[1234] milliseconds`,
		`2026-11-22 10:00:01,123 WARNING django.request: Not Found`,
		`info: Microsoft.Hosting.Lifetime[14]`,
		`      Now listening on: http://[::]:80`,
		"\tat org.apache.catalina.core.StandardWrapperValve.invoke(StandardWrapperValve.java:197)",
		`Traceback (most recent call last):`, `ValueError: invalid literal for int() with base 10: 'x'`,
		`Caused by: java.net.ConnectException`,
		`panic: runtime error: index out of range [3]`, `goroutine 1 [running]:`, `main.main()`,
		`net/http.(*conn).serve(0xc000,0x1)`, `exit status 2`,
		`Listening on :8080`, `listening on port 8080`,
		`*** Starting uWSGI 2.0.27 (64bit) on [Sun Nov 22 10:00:00 2026] ***`, `==========`, `---`,
		`-- Logs begin at Sun 2026-11-22 10:00:00 UTC, end at Sun 2026-11-22 11:00:00 UTC. --`,
		`-- Boot 3f5c9a7b1d2e4f60 --`, `-- No entries --`,
		`last message repeated 3 times`, `nginx.service: Deactivated successfully.`,
		`Started nginx.service - A high performance web server.`,
	},
	// A line that could be a call is not a message: a wrong format must not hide calls.
	Call: {
		`rubbish`, `{}`, `{"ts":1795341600.1}`,
		`{"level":"info","msg":"request","method":"GET","path":"/a","code":200}`,
		`{"level":"info","msg":"x","status":"none"}`, `{"level":"info","msg":"x"`,
		`192.0.2.1 - - [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1`,
		`192.0.2.1 - - [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200 17`,
		`192.0.2.1 - ann lee [22/Nov`,
		`unix: - - [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1`,
		`2001:db8:: - - [22/Nov`,
		`2026-11-22 10:00:01 10.0.0.1 GET /a - 80 - 192.0.2.1 Mozilla/5.0 - 200 0 0 7`,
		`ts=2026-11-22T10:00:01Z level=info method=GET path=/a status=200`,
		`level=info msg="some request that was served" status_code=404`,
		`one two three 200`, "\x16\x03\x01 some words of a handshake",
		`X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36"`,
	},
}

func TestKinds(t *testing.T) {
	for want, lines := range others {
		for _, line := range lines {
			for _, format := range []string{"json", "haproxy", "elb", "w3c", "npm-proxy", "vhost-combined"} {
				p := parser(t, format)
				var r Record
				if p.Parse([]byte(line), &r) == nil {
					if want != Call {
						t.Errorf("%s is a call of %s: %q", want, format, line)
					}
					continue
				}
				if got := p.Kind(); got != want {
					t.Errorf("%s: %q: %v, want %v", format, line, got, want)
				}
			}
		}
	}
}

// A wrapping does not change the kind of a message.
func TestKindsInWrappings(t *testing.T) {
	for _, want := range []Kind{Directive, Message} {
		for _, line := range others[want] {
			for name, wrap := range wrappings {
				if line[0] == ' ' || line[0] == '\t' || strings.HasPrefix(name, "syslog, no tag") ||
					strings.HasPrefix(name, "docker logs") {
					continue // the first word may be the host
				}
				p := parser(t, "combined-time")
				if err := p.Parse([]byte(wrap(line)), new(Record)); err == nil || p.Kind() != want {
					t.Errorf("%s: %q: %v, want %v", name, line, p.Kind(), want)
				}
			}
		}
	}
}

// The lines that could be calls determine the format, even if they are few.
func TestDetectionAmongOtherLines(t *testing.T) {
	for name, c := range plain {
		var sample [][]byte
		for _, kind := range []Kind{Empty, Directive, Message} {
			for _, line := range others[kind] {
				sample = append(sample, []byte(line))
			}
		}
		sample = append(sample, []byte(c.line))
		if f, err := Detect(sample); err != nil || f.String() != name {
			t.Errorf("%s: %v, %v", name, f, err)
		}
		// Only lines that could be calls count.
		for range 2 {
			sample = append(sample, []byte(`2026-11-22 10:00:01 10.0.0.1 GET /a 200`))
		}
		if f, err := Detect(sample); err == nil {
			t.Errorf("%s, among calls of another format: %v", name, f)
		}
	}
	if _, err := Detect([][]byte{[]byte(others[Message][0])}); err == nil ||
		!strings.Contains(err.Error(), "such as \"2026/11/22") {
		t.Errorf("messages alone: %v", err)
	}
}

// FuzzKind classifies any line. The kind must depend neither on the format nor on earlier lines.
func FuzzKind(f *testing.F) {
	for _, lines := range others {
		for _, line := range lines {
			f.Add([]byte(line))
		}
	}
	a, b := parser(f, "combined"), parser(f, "json")
	f.Fuzz(func(t *testing.T, line []byte) {
		if kind := kindOf(line, nil); kind >= Kinds {
			t.Fatalf("%q: kind %d", line, kind)
		}
		if strings.Contains(string(line), "{") {
			return // a JSON format reads the text in an envelope only if it is a call
		}
		var r Record
		if a.Parse(line, &r) == nil || b.Parse(line, &r) == nil || a.Partial() || b.Partial() {
			return
		}
		if a.Kind() != b.Kind() {
			t.Fatalf("%q: %v and %v", line, a.Kind(), b.Kind())
		}
	})
}
