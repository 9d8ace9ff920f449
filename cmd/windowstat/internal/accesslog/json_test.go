package accesslog

import "testing"

func TestLinesOfJSON(t *testing.T) {
	p := parser(t, "json")
	for _, c := range []struct{ name, line, want string }{
		{
			"Caddy",
			`{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request",` +
				`"request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"10.0.0.9","proto":"HTTP/2.0",` +
				`"method":"GET","host":"localhost","uri":"/a?b","headers":{"User-Agent":["curl/7.82.0"],` +
				`"X":["{\"status\":1}","]"]},"tls":{"version":772,"server_name":"example.com"}},"bytes_read": 0,` +
				`"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}`,
			`2022-03-09T21:30:01.5241024Z end 929.675µs 200 "GET" "/a?b" "localhost" "10.0.0.9"`,
		},
		{
			"Caddy, other times",
			`{"ts":"2022/03/09 21:30:01.524","duration":"1m2.5s","status":0,"request":{"method":"GET","uri":"/"}}`,
			`2022-03-09T21:30:01.524Z end 1m2.5s 0 "GET" "/" "" ""`,
		},
		{
			"Caddy, unix_milli_float", `{"ts":1646861401524.1,"status":200}`,
			`2022-03-09T21:30:01.5241Z end - 200 "" "" "" ""`,
		},
		{
			"Caddy, unix_nano", `{"ts":1646861401524102400,"status":200}`,
			`2022-03-09T21:30:01.5241024Z end - 200 "" "" "" ""`,
		},
		{
			"Caddy, common_log", `{"ts":"09/Mar/2022:16:30:01 -0500","status":200}`,
			`2022-03-09T21:30:01Z end - 200 "" "" "" ""`,
		},
		{
			"Traefik",
			`{"ClientAddr":"172.18.0.1:53932","ClientHost":"172.18.0.1","DownstreamStatus":204,"Duration":37028300,` +
				`"OriginStatus":200,"RequestAddr":"a.example:80","RequestHost":"a.example","RequestMethod":"POST",` +
				`"RequestPath":"/x","StartLocal":"2022-03-09T22:30:01.100000001+01:00",` +
				`"StartUTC":"2022-03-09T21:30:01.100000001Z","level":"info","msg":"","time":"2022-03-09T21:30:02Z"}`,
			`2022-03-09T21:30:01.100000001Z start 37.0283ms 204 "POST" "/x" "a.example" "172.18.0.1"`,
		},
		{
			"Traefik without its start", `{"DownstreamStatus":200,"Duration":5,"time":"2022-03-09T22:30:02+01:00"}`,
			`2022-03-09T21:30:02Z end 5ns 200 "" "" "" ""`,
		},
		{
			"nginx", `{"time_local":"09/Mar/2022:21:30:01 +0000","request":"GET /a HTTP/1.1","status": "404",` +
				`"request_time":"0.005","remote_addr":"1.2.3.4","server_name":"_","http_host":"h.example"}`,
			`2022-03-09T21:30:01Z end 5ms 404 "GET" "/a" "h.example" "1.2.3.4"`,
		},
		{
			"nginx, the finer time",
			`{"@timestamp":"2022-03-09T21:30:01+00:00","msec":1646861401.524,"request_method":"PUT","uri":"/u",` +
				`"request_uri":"/r","status":200,"request_time":0.1,"host":"a"}`,
			`2022-03-09T21:30:01.524Z end 100ms 200 "PUT" "/r" "a" ""`,
		},
		{
			"nginx, a path as request",
			`{"timestamp":"2022-03-09T21:30:01Z","method":"GET","request":"/p","status":200}`,
			`2022-03-09T21:30:01Z end - 200 "GET" "/p" "" ""`,
		},
		{
			"nginx, rubbish as request",
			`{"timestamp":"2022-03-09T21:30:01Z","request":"\u0016\u0003","status":"400",` +
				`"host":"","http_host":"-","server_name":null,"request_time":"-"}`,
			`2022-03-09T21:30:01Z end - 400 "" "" "" ""`,
		},
		{
			"escapes", `{"time":"2022-03-09T21:30:01Z","method":"GET","uri":"\/a\"\\\u00e4\ud83d\ude00\ud83dx\x22\q",` +
				`"host":"\b\f\n\r\t","status":200}`,
			`2022-03-09T21:30:01Z end - 200 "GET" "/a\"\\ä😀�x\"\\q" "\b\f\n\r\t" ""`,
		},
		{
			"white space", " {\t\"time\" : \"2022-03-09T21:30:01Z\" ,\n \"status\" : 200 }\r\n",
			`2022-03-09T21:30:01Z end - 200 "" "" "" ""`,
		},
		{"no zone", `{"time":"2022-03-09 21:30:01,5","status":200}`, `2022-03-09T21:30:01.5Z end - 200 "" "" "" ""`},
		{
			"depth", `{"a":[[{"b":"]"}]],"time":"2022-03-09T21:30:01Z","status":200,"c":true}`,
			`2022-03-09T21:30:01Z end - 200 "" "" "" ""`,
		},
	} {
		var r Record
		if err := p.Parse([]byte(c.line), &r); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := show(&r); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
