package accesslog

import (
	"fmt"
	"strings"
	"testing"
)

func TestVocabularyOfJSON(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{
			"Envoy Gateway",
			`{":authority":"a.example","bytes_sent":17,"connection_termination_details":null,` +
				`"downstream_local_address":"10.0.0.1:10080","downstream_remote_address":"[2001:db8::7]:43000",` +
				`"duration":7,"method":"GET","protocol":"HTTP/1.1","response_code":200,` +
				`"response_code_details":"via_upstream","response_flags":"-","start_time":"2026-11-22T10:00:01.100Z",` +
				`"upstream_host":"10.0.0.9:80","user-agent":"curl","x-envoy-origin-path":"/a",` +
				`"x-forwarded-for":"192.0.2.9"}`,
			`2026-11-22T10:00:01.1Z start 7ms 200 "GET" "/a" "a.example" "2001:db8::7"`,
		},
		{
			"Istio",
			`{"start_time":"2026-11-22T10:00:01.100Z","method":"GET","path":"/a","response_code":503,"duration":1500,` +
				`"authority":"a.example","downstream_remote_address":"192.0.2.7:43000"}`,
			`2026-11-22T10:00:01.1Z start 1.5s 503 "GET" "/a" "a.example" "192.0.2.7"`,
		},
		{
			"Envoy, a client that left", `{"start_time":"2026-11-22T10:00:01.100Z",":method":"GET",":path":"/a",` +
				`"response_code":0,"duration":7,"downstream_remote_address":null}`,
			`2026-11-22T10:00:01.1Z start 7ms 0 "GET" "/a" "" ""`,
		},
		{
			"response_code of another program",
			`{"time":"2026-11-22T10:00:01Z","response_code":200,"duration":0.007,"remote_addr":"192.0.2.7:1"}`,
			`2026-11-22T10:00:01Z end 7ms 200 "" "" "" "192.0.2.7"`,
		},
		{
			"Caddy before 2.5", `{"ts":1795341601.1,"request":{"remote_addr":"[2001:db8::7]:40512","method":"GET",` +
				`"host":"a.example","uri":"/a"},"duration":0.007,"status":200}`,
			`2026-11-22T10:00:01.1Z end 7ms 200 "GET" "/a" "a.example" "2001:db8::7"`,
		},
		{
			"Caddy's console",
			"2026/11/22 10:00:01.123\tINFO\thttp.log.access.log0\thandled request\t" +
				`{"request": {"remote_ip": "192.0.2.7", "remote_port": "1", "client_ip": "192.0.2.7", ` +
				`"method": "GET", "host": "a.example", "uri": "/a"}, "bytes_read": 0, "duration": 0.007, "size": 17, ` +
				`"status": 200}`,
			`2026-11-22T10:00:01.123Z end 7ms 200 "GET" "/a" "a.example" "192.0.2.7"`,
		},
		{
			"Caddy's console in colors",
			"2026/11/22 10:00:01.123\t\x1b[34mINFO\x1b[0m\thttp.log.access\thandled request\t" +
				`{"request": {"method": "GET", "uri": "/a"}, "duration": 0.007, "status": 200}`,
			`2026-11-22T10:00:01.123Z end 7ms 200 "GET" "/a" "" ""`,
		},
		{
			"Caddy's console, an error", "1795341601.1\tERROR\thttp.log.access\thandled request\t" +
				`{"request": {"method": "GET", "uri": "/a"}, "duration": 0.007, "status": 502}`,
			`2026-11-22T10:00:01.1Z end 7ms 502 "GET" "/a" "" ""`,
		},
	} {
		f, err := Detect([][]byte{[]byte(c.line)})
		if err != nil || f.String() != "json" {
			t.Errorf("%s: %v, %v", c.name, f, err)
			continue
		}
		var r Record
		if err := f.NewParser(nil).Parse([]byte(c.line), &r); err != nil || show(&r) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, show(&r), c.want)
		}
		if known := c.name != "response_code of another program"; f.UnitUnknown([]byte(c.line)) == known {
			t.Errorf("%s: the unit is known: %v", c.name, !known)
		}
	}
	// A unit that the user gives counts.
	var r Record
	line := `{"start_time":"2026-11-22T10:00:01.100Z","response_code":200,"duration":7000}`
	if err := parser(t, "json-us").Parse([]byte(line), &r); err != nil || r.Duration.Milliseconds() != 7 {
		t.Errorf("%v, %s", err, show(&r))
	}
}

func TestKeysOfTheUser(t *testing.T) {
	ecs := map[string]string{
		"time": "@timestamp", "status": "http.response.status_code",
		"method": "http.request.method", "target": "url.path",
		"host": "url.domain", "client": "source.ip", "duration": "event.duration",
	}
	const want = `2026-11-22T10:00:01.1Z end 7ms 200 "GET" "/a" "a.example" "2001:db8::7"`
	for _, c := range []struct {
		format string
		keys   map[string]string
		line   string
		want   string
	}{
		{"json-ns", ecs, `{"@timestamp":"2026-11-22T10:00:01.1Z","http":{"request":{"method":"GET"},` +
			`"response":{"status_code":200}},"url":{"path":"/a","domain":"a.example"},"source":{"ip":"2001:db8::7"},` +
			`"event":{"duration":7000000}}`, want},
		{
			"json-ns", ecs,
			`{"@timestamp":"2026-11-22T10:00:01.1Z","http.request.method":"GET","http.response.status_code":200,` +
				`"url.path":"/a","url.domain":"a.example","source.ip":"2001:db8::7","event.duration":7000000}`, want,
		},
		{"json-ns", ecs, `{"@timestamp":"2026-11-22T10:00:01.1Z","http.request":{"method":"GET"},` +
			`"http":{"response.status_code":200},"url":{"path":"/a","domain":"a.example"},` +
			`"source":{"ip":"[2001:db8::7]:1"},"event":{"duration":7000000}}`, want},
		{
			"json-ms",
			map[string]string{"start": "at", "status": "code", "duration": "took"},
			`{"at":1795341601.1,"code":"404","took":7,"status":500,"duration":9,"ts":1}`,
			`2026-11-22T10:00:01.1Z start 7ms 404 "" "" "" ""`,
		},
		{
			"json",
			map[string]string{"status": "request.code"},
			`{"ts":1795341601.1,"duration":"7ms","request":{"code":200,"method":"GET","uri":"/a","host":"a.example",` +
				`"client_ip":"2001:db8::7"}}`, want,
		},
		{
			"json",
			map[string]string{"request": "req.line", "client": "peer"},
			`{"ts":1795341601.1,"status":200,"request_time":0.007,"host":"a.example",` +
				`"req":{"line":"GET /a HTTP/1.1"},"peer":"[2001:db8::7]:40512","client_ip":"x"}`, want,
		},
		{
			"json",
			map[string]string{"method": "a.b.c.d"},
			`{"ts":1795341601.1,"status":200,"a":{"b":{"c":{"d":"PUT"}},"b.c":1},"a.b":[{"c":{"d":"x"}}]}`,
			`2026-11-22T10:00:01.1Z end - 200 "PUT" "" "" ""`,
		},
	} {
		f, err := Named(c.format)
		if err == nil {
			f, err = f.WithKeys(c.keys)
		}
		if err != nil {
			t.Errorf("%v: %v", c.keys, err)
			continue
		}
		var r Record
		if err := f.NewParser(nil).Parse([]byte(c.line), &r); err != nil || show(&r) != c.want {
			t.Errorf("%v: %s: %v\n got %s\nwant %s", c.keys, c.line, err, show(&r), c.want)
		}
	}
	// WithKeys does not change the keys of other formats.
	if err := parser(t, "json").Parse([]byte(`{"ts":1795341601.1,"code":200}`), new(Record)); err != errNoStatus {
		t.Errorf("%v", err)
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	json, err := Named("json")
	if err != nil {
		t.Fatal(err)
	}
	_, err = json.WithKeys(map[string]string{"code": "x", "status": "", "host": "a..b", "client": "." +
		strings.Repeat("x.", 20)})
	for _, want := range []string{
		`no field "code"; there are client, duration, grpc, host, method, request, start, status, target, time`,
		`status: ""`, `host: "a..b"`, "client: ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want … %s", err, want)
		}
	}
	text, err := Named("combined")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := text.WithKeys(map[string]string{"status": "x"}); err == nil ||
		!strings.Contains(err.Error(), "combined is not a JSON format") {
		t.Errorf("%v", err)
	}
}

// FuzzKeys finds the value under any path, for every division of its dots among nested objects.
func FuzzKeys(f *testing.F) {
	f.Add("http.response.code", uint8(1), []byte(`{"ts":1,"http":{"response":{"code":200}}}`))
	f.Add("a.b", uint8(0), []byte(`{"a.b":{"c":1}}`))
	json, err := Named("json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string, division uint8, line []byte) {
		format, err := json.WithKeys(map[string]string{"status": path})
		if err != nil {
			return
		}
		p := format.NewParser(nil)
		var r Record
		if p.Parse(line, &r) == nil {
			sane(t, p, line, &r)
		}
		if strings.ContainsAny(path, "\"\\") {
			return
		}
		object, depth := `{"ts":1795341601,"`, 1
		for i, key := range strings.Split(path, ".") {
			switch {
			case i == 0:
			case division>>(i-1)&1 == 1:
				object += `":{"`
				depth++
			default:
				object += "."
			}
			object += key
		}
		object += `":404` + strings.Repeat("}", depth)
		if err := p.Parse(fmt.Append(nil, object), &r); err != nil || r.Status != 404 {
			t.Fatalf("%s: %s: %v, %d", path, object, err, r.Status)
		}
	})
}
