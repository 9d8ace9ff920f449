package accesslog

import (
	"bytes"
	"fmt"
	"testing"
)

// benchLines returns n lines like those of real servers, each with the special fields of its format.
var benchLines = map[string]string{
	"common": `83.149.9.216 - - [17/May/2015:10:05:%02d +0000] "GET /presentations/images/kibana-search.png ` +
		`HTTP/1.1" 200 203023`,
	"combined": `83.149.9.216 - - [17/May/2015:10:05:%02d +0000] "GET /presentations/images/kibana-search.png ` +
		`HTTP/1.1" 200 203023 "http://semicomplete.com/presentations/logstash-monitorama-2013/" ` +
		`"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 ` +
		`Safari/537.36"`,
	"combined-time": `83.149.9.216 - - [17/May/2015:10:05:%02d +0000] "GET /presentations/images/kibana-search.png ` +
		`HTTP/1.1" 200 203023 "http://semicomplete.com/presentations/logstash-monitorama-2013/" ` +
		`"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 ` +
		`Safari/537.36" 0.023`,
	"traefik": `83.149.9.216 - - [17/May/2015:10:05:%02d +0000] "GET /presentations/images/kibana-search.png ` +
		`HTTP/1.1" 200 203023 "http://semicomplete.com/presentations/logstash-monitorama-2013/" ` +
		`"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 ` +
		`Safari/537.36" 1271 "web@docker" "http://10.0.1.7:80" 23ms`,
	"json-nginx": `{"time_iso8601":"2015-05-17T10:05:%02d+00:00","msec":"1431857103.123",` +
		`"remote_addr":"83.149.9.216","remote_user":"","request":"GET /presentations/images/kibana-search.png ` +
		`HTTP/1.1","status": "200","body_bytes_sent":"203023","request_time":"0.023",` +
		`"http_referer":"http://semicomplete.com/presentations/","http_user_agent":"Mozilla/5.0 (Macintosh; Intel ` +
		`Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 Safari/537.36"}`,
	"json-caddy": `{"level":"info","ts":1646861401.%02d24102,"logger":"http.log.access","msg":"handled request",` +
		`"request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0",` +
		`"method":"GET","host":"localhost","uri":"/presentations/images/kibana-search.png",` +
		`"headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"],"Accept-Encoding":["gzip, deflate, br"]},` +
		`"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},` +
		`"bytes_read": 0,"user_id":"","duration":0.000929675,"size":10900,"status":200,` +
		`"resp_headers":{"Server":["Caddy"],"Content-Encoding":["gzip"],"Content-Type":["text/html; charset=utf-8"],` +
		`"Vary":["Accept-Encoding"]}}`,
}

func BenchmarkParse(b *testing.B) {
	for _, name := range []string{"common", "combined", "combined-time", "traefik", "json-nginx", "json-caddy"} {
		b.Run(name, func(b *testing.B) {
			var lines [][]byte
			for i := range 60 {
				lines = append(lines, fmt.Appendf(nil, benchLines[name], i))
			}
			format := name
			if name[:4] == "json" {
				format = "json"
			}
			f, err := Named(format)
			if err != nil {
				b.Fatal(err)
			}
			measure(b, f, lines)
		})
	}
	f, err := Apache(`%h %l %u [%{%Y-%m-%d %H:%M:%S}t.%{msec_frac}t %{%z}t] "%r" %>s %b %D`)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("strftime", func(b *testing.B) {
		measure(b, f,
			[][]byte{[]byte(`83.149.9.216 - - [2015-05-17 10:05:03.123 +0000] ` +
				`"GET /presentations/images/kibana-search.png HTTP/1.1" 200 203023 23456`)})
	})
}

// BenchmarkLog reads generated lines, or, with -log, the log of a real server.
func BenchmarkLog(b *testing.B) {
	f, err := Named("combined")
	if err != nil {
		b.Fatal(err)
	}
	lines := generate(10_000)
	if *logFile != "" {
		lines = load(b, *logFile)
	}
	measure(b, f, lines)
}

// BenchmarkBadLines reads lines that are not in the format.
func BenchmarkBadLines(b *testing.B) {
	f, err := Named("combined")
	if err != nil {
		b.Fatal(err)
	}
	p := f.NewParser(nil)
	line := bytes.Repeat([]byte("\x16\x03\x01 \" [ rubbish "), 12)
	var r Record
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if p.Parse(line, &r) == nil {
			b.Fatal("rubbish was read")
		}
	}
}

func measure(b *testing.B, f *Format, lines [][]byte) {
	b.Helper()
	p := f.NewParser(nil)
	size := 0
	for _, l := range lines {
		size += len(l)
	}
	b.SetBytes(int64(size / len(lines)))
	b.ReportAllocs()
	var r Record
	i := 0
	for b.Loop() {
		if err := p.Parse(lines[i], &r); err != nil {
			b.Fatalf("%s: %v", lines[i], err)
		}
		if i++; i == len(lines) {
			i = 0
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
