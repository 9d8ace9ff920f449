package accesslog

import (
	"strings"
	"testing"
	"time"
)

// The lines and format strings are from the documentation and the packages of the servers.
const (
	nginxCombined = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" ` +
		`"$http_user_agent"`
	nginxMain    = nginxCombined + ` "$http_x_forwarded_for"`
	apacheCommon = `%h %l %u %t \"%r\" %>s %b`
	apacheVhost  = `%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"`
	apacheIO     = `%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %I %O`
)

func TestLinesOfFormats(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ kind, format, line, want string }{
		// by name
		{
			"named", "common", `127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326`,
			`2000-10-10T20:55:36Z start - 200 "GET" "/apache_pb.gif" "" "127.0.0.1"`,
		},
		{
			"named", "common",
			`127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 ` +
				`"http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"`,
			`2000-10-10T20:55:36Z start - 200 "GET" "/apache_pb.gif" "" "127.0.0.1"`,
		},
		{"named", "combined", "::1 - - [10/Oct/2000:13:55:36 +0530] \"OPTIONS * HTTP/1.0\" 200 126 \"-\" \"Apache " +
			"(internal dummy connection)\"\r\n", `2000-10-10T08:25:36Z start - 200 "OPTIONS" "*" "" "::1"`},
		{
			"named", "combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "-" 408 - "-" "-"`,
			`2015-05-17T10:05:03Z start - 408 "" "" "" "1.2.3.4"`,
		},
		{
			"named", "combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "" 400 0 "-" "-"`,
			`2015-05-17T10:05:03Z start - 400 "" "" "" "1.2.3.4"`,
		},
		{
			"named", "combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "\x16\x03\x01\x02\x00\x01" 400 226 "-" "-"`,
			`2015-05-17T10:05:03Z start - 400 "" "" "" "1.2.3.4"`,
		},
		{
			"named", "combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "\x16{ / HTTP/1.1" 400 226 "-" "-"`,
			`2015-05-17T10:05:03Z start - 400 "" "" "" "1.2.3.4"`,
		},
		{
			"named", "combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /?a="b" c HTTP/1.1" 200 226 "-" "-"`,
			`2015-05-17T10:05:03Z start - 200 "GET" "/?a=\"b\" c" "" "1.2.3.4"`,
		},
		{
			"named", "combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /\" 200 1 HTTP/1.1" 404 226 "-" "-"`,
			`2015-05-17T10:05:03Z start - 404 "GET" "/\" 200 1" "" "1.2.3.4"`,
		},
		{
			"named", "combined", `1.2.3.4 - ann lee [17/May/2015:10:05:03 +0000] "GET /\\" 200`,
			`2015-05-17T10:05:03Z start - 200 "" "" "" "1.2.3.4"`,
		},
		{
			"named", "vhost-combined",
			`shop.example:443 1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "-"`,
			`2015-05-17T10:05:03Z start - 200 "GET" "/" "shop.example" "1.2.3.4"`,
		},
		{
			"named", "combined-time",
			`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "a \"b\" 9" 0.123`,
			`2015-05-17T10:05:03Z end 123ms 200 "GET" "/" "" "1.2.3.4"`,
		},
		{
			"named", "combined-time", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "-" -`,
			`2015-05-17T10:05:03Z end - 200 "GET" "/" "" "1.2.3.4"`,
		},
		{
			"named", "combined-time", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "Mozi`,
			`2015-05-17T10:05:03Z end - 200 "GET" "/" "" "1.2.3.4"`,
		},
		{
			"named", "combined-usec",
			`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "-" 1234567`,
			`2015-05-17T10:05:03Z start 1.234567s 200 "GET" "/" "" "1.2.3.4"`,
		},
		{
			"named", "combined-usec", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "-" -5`,
			`2015-05-17T10:05:03Z start 0s 200 "GET" "/" "" "1.2.3.4"`,
		},
		{"named", "traefik", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/2.0" 200 19 "-" "curl/8" 12 ` +
			`"web@docker" "http://10.0.0.1:80" 35ms`, `2015-05-17T10:05:03Z start 35ms 200 "GET" "/a" "" "1.2.3.4"`},

		// nginx
		{
			"nginx", nginxMain, `2001:db8::7 - - [28/Feb/2024:23:00:00 -0100] "GET /\x22 HTTP/1.1" 499 0 "-" "a" "-"`,
			`2024-02-29T00:00:00Z end - 499 "GET" "/\"" "" "2001:db8::7"`,
		},
		{
			"nginx", nginxCombined + " $request_time $upstream_response_time",
			`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "-" 1.500 0.2, 0.3`,
			`2015-05-17T10:05:03Z end 1.5s 200 "GET" "/" "" "1.2.3.4"`,
		},
		{"nginx", `$msec $request_method $host$request_uri $status`, ``, ``},
		{
			"nginx", `$msec|$request_method|${host}|$request_uri|$status|${request_time}s`,
			`1431857103.042|GET|a.example|/x y|200|0.007s`,
			`2015-05-17T10:05:03.042Z end 7ms 200 "GET" "/x y" "a.example" ""`,
		},
		{
			"nginx", `$time_iso8601 $status "$request"`, `2015-05-17T12:05:03+02:00 000 "GET / HTTP/1.1"`,
			`2015-05-17T10:05:03Z end - 0 "GET" "/" "" ""`,
		},
		{
			"nginx", `$status $request_method $uri$is_args$args $http_host $msec`,
			`201 PUT /a?b=c x.example 1431857103.5`,
			`2015-05-17T10:05:03.5Z end - 201 "PUT" "/a?b=c" "x.example" ""`,
		},
		{
			"nginx", `$time_local $msec $status`, `rubbish 1431857103.042 200`,
			`2015-05-17T10:05:03.042Z end - 200 "" "" "" ""`,
		},
		{
			"nginx", "log_format  timed escape=json\n  '{\"t\":\"$time_iso8601\",'\n  '\"r\":\"$request\",'\n" +
				"  '\"s\":$status,\"d\":\"$request_time\"}';",
			`{"t":"2015-05-17T10:05:03Z","r":"GET /\" HTTP/1.1","s":404,"d":""}`,
			`2015-05-17T10:05:03Z end - 404 "GET" "/\"" "" ""`,
		},
		{
			"nginx", `escape=none "$request" $status $msec`, `"GET /\" 200 1431857103.000`,
			`2015-05-17T10:05:03Z end - 200 "" "" "" ""`,
		},

		// httpd
		{
			"apache", apacheCommon,
			`127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 304 -`,
			`2000-10-10T20:55:36Z start - 304 "GET" "/apache_pb.gif" "" "127.0.0.1"`,
		},
		{
			"apache", `LogFormat "` + apacheVhost + `" vhost_combined`,
			`shop.example:443 1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "-"`,
			`2015-05-17T10:05:03Z start - 200 "GET" "/" "shop.example" "1.2.3.4"`,
		},
		{
			"apache", apacheIO, `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "-" 100 200`,
			`2015-05-17T10:05:03Z start - 200 "GET" "/" "" "1.2.3.4"`,
		},
		{
			"apache", `"%r" %t %s %T/%D`, `"GET / HTTP/1.1" [17/May/2015:10:05:03 +0000] 200 1/1234567`,
			`2015-05-17T10:05:03Z start 1.234567s 200 "GET" "/" "" ""`,
		},
		{
			"apache", `%t %s %>s %{ms}T %T %{Host}i %v`,
			`[17/May/2015:10:05:03 +0000] 200 404 25 0 a.example b.example`,
			`2015-05-17T10:05:03Z start 25ms 404 "" "" "a.example" ""`,
		},
		{
			"apache", `%{usec}t %m %U%q %H %>s 100%% %{us}T`, `1431857103000123 GET /a?b HTTP/1.1 200 100% 5`,
			`2015-05-17T10:05:03.000123Z start 5µs 200 "GET" "/a?b" "" ""`,
		},
		{
			"apache", `%{sec}t.%{msec_frac}t %>s`, `1431857103.042 200`,
			`2015-05-17T10:05:03.042Z start - 200 "" "" "" ""`,
		},
		{"apache", `%{end:msec}t %>s %D`, `1431857103042 200 1000`, `2015-05-17T10:05:03.042Z end 1ms 200 "" "" "" ""`},
		{
			"apache", `%{begin:%Y-%m-%dT%H:%M:%S}t.%{usec_frac}t%{%z}t %>s`, `2015-05-17T12:05:03.000042+0200 200`,
			`2015-05-17T10:05:03.000042Z start - 200 "" "" "" ""`,
		},
		// In Berlin.
		{
			"apache", `%{%d/%b/%Y %T}t.%{msec_frac}t %>s`, `17/May/2015 12:05:03.250 200`,
			`2015-05-17T10:05:03.25Z start - 200 "" "" "" ""`,
		},
		// In Berlin.
		{
			"apache", `%{%Y%m%d-%H%M%S %b}t %>s`, `20150107-000503 Jan 200`,
			`2015-01-06T23:05:03Z start - 200 "" "" "" ""`,
		},
		{
			"apache", `%{%F %T %z}t %{SSL_PROTOCOL}x%{X-Id}o %!200,304{Referer}i %>s %^FB`,
			`2015-05-17 10:05:03 +0000 TLSv1.3abc x 200 17`, `2015-05-17T10:05:03Z start - 200 "" "" "" ""`,
		},
		{
			"apache", `%{end:%s}t %t %>s`, `1431857999 [17/May/2015:10:05:03 +0000] 200`,
			`2015-05-17T10:05:03Z start - 200 "" "" "" ""`,
		},
	} {
		f, err := compiled(c.kind, c.format)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s %q: accepted", c.kind, c.format)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q: %v", c.kind, c.format, err)
			continue
		}
		var r Record
		if err := f.NewParser(berlin).Parse([]byte(c.line), &r); err != nil {
			t.Errorf("%s %q: %q: %v", c.kind, c.format, c.line, err)
		} else if got := show(&r); got != c.want {
			t.Errorf("%s %q: %q:\n got %s\nwant %s", c.kind, c.format, c.line, got, c.want)
		}
	}
}

func compiled(kind, format string) (*Format, error) {
	switch kind {
	case "nginx":
		return Nginx(format)
	case "apache":
		return Apache(format)
	}
	return Named(format)
}

func TestBadLinesSayWhatIsWrong(t *testing.T) {
	const (
		badTime     = `the time (%t) is not a time like`
		noStatus    = `no "\" " and a status after the request (%r)`
		badDuration = `the duration (%{s}T) is not a duration`
		timed       = `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 226 "-" "-" `
	)
	for _, c := range []struct{ format, line, want string }{
		{"combined", ``, `an empty line`},
		{"combined", "\r\n", `an empty line`},
		{"combined", `rubbish`, `no " " after the client (%h)`},
		{"combined", "\x00\x01\x02 \xff \xfe [", badTime},
		{"combined", `1.2.3.4 - - [31/Feb/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, badTime},
		{"combined", `1.2.3.4 - - [17/Mai/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, badTime},
		{"combined", `1.2.3.4 - - [17/May/2015:24:05:03 +0000] "GET / HTTP/1.1" 200 1`, badTime},
		{"combined", `1.2.3.4 - - [30/Jun/2015:23:59:60 +0000] "GET / HTTP/1.1" 200 1`, badTime},
		{"combined", `1.2.3.4 - - [17/May/2015:10:05:61 +0000] "GET / HTTP/1.1" 200 1`, badTime},
		{"combined", `1.2.3.4 - - [17/May/2015:10:05:03 0000] "GET / HTTP/1.1" 200 1`, badTime},
		{"combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000]`, `no "] \"" after the time (%t)`},
		{"combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 20`, noStatus},
		{"combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 2000 1`, noStatus},
		{"combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1`, noStatus},
		{
			"combined", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200x`,
			`no " " after the status (%>s)`,
		},
		{"combined-time", timed + `soon`, badDuration},
		{"combined-time", timed + `1 2`, badDuration},
		{"combined-time", timed + `99999999999`, badDuration},
		{"$msec $status", `1431857103.5 200 x`, `the line has text after the status ($status), where it should end`},
		{"$status $msec", `200 1431857103.5 x`, `the time ($msec) is not a number of seconds`},
		{"$status $time_iso8601", `200 2015-05-17T10:05:03+026`, `the time ($time_iso8601) is not a time like`},
		{"$status $msec", `200 -1`, `the time ($msec) is not a number of seconds`},
		{"$msec\t$status\t$host", "1431857103.5\t-x\ta", `the status ($status) is not a status of three digits`},
		{"json", `{"status":200}`, `no time (`},
		{"json", `{"ts":1431857103.5}`, `no status (`},
		{"json", `{"ts":1431857103.5,"status":200`, `not a whole JSON object`},
		{"json", `{"ts":1431857103.5,"status":200} x`, `not a whole JSON object`},
		{"json", `{"ts":1431857103.5,"status":200,"request":{"method":"GET"}`, `not a whole JSON object`},
		{"json", `[1]`, `not a whole JSON object`},
		{"json", `{"ts":"yesterday","status":200}`, `the time is not`},
		{"json", `{"ts":"2015-02-29T00:00:00Z","status":200}`, `the time is not`},
		{"json", `{"ts":1431857103.5,"status":2000}`, `the status is not`},
		{"json", `{"ts":1431857103.5,"status":{}}`, `no status (`},
		{"json", `{"ts":1431857103.5,"status":200,"duration":"long"}`, `the duration is not`},
	} {
		kind := "named"
		if strings.Contains(c.format, "$") {
			kind = "nginx"
		}
		f, err := compiled(kind, c.format)
		if err != nil {
			t.Fatal(err)
		}
		var r Record
		err = f.NewParser(nil).Parse([]byte(c.line), &r)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %q: %v, want %s…", c.format, c.line, err, c.want)
		}
	}
}

func TestFormatsThatCannotBeReadSayWhy(t *testing.T) {
	for _, c := range []struct{ kind, format, want string }{
		{"named", "clf", `there is no log format named "clf"; there are ingress-nginx, haproxy, istio, envoy, alb, ` +
			`elb, npm-proxy, npm-standard, traefik, vhost-combined, combined-usec, combined-time, combined, common, ` +
			`w3c, json`},
		{"nginx", ``, `it has no time ($time_local, $time_iso8601, $msec; %t)`},
		{"nginx", ``, `it has no status ($status; %>s)`},
		{"nginx", `$msec $stat`, `it has no status`},
		{
			"nginx", `$remote_addr$host $msec $status`,
			`$remote_addr and $host have no text between them, at column 13`,
		},
		{"nginx", `$ $msec $status ${host`, `a $ without the name of a variable, at column 1` + "\n" +
			`a $ without the name of a variable, at column 17`},
		{"nginx", `escape=xml $msec $status`, `escape=xml; nginx has default, json and none`},
		{"nginx", `log_format x '$msec $status`, `a quote that is not closed`},
		{"nginx", `log_format x '$msec' $status;`, `text outside of its quotes, at "$status"`},
		{"apache", `%{User-agent}i`, `it has no time`},
		{"apache", `%{Referer}i -> %U`, `it has no status`},
		{"apache", `%{%H:%M:%S}t %s`, `its time has no date`},
		{"apache", `%{%Y-%m-%d %H:%M}t %s`, `its time has no time of day to the second`},
		{
			"apache", `%{%Y-%j}t %s`,
			`has a conversion that cannot be read, "%j"; allowed are %Y %m %b %d %H %M %S %z %s %F %T %%`,
		},
		{"apache", `%{%Y-%m-%d %I:%M:%S %p}t %s`, `has a conversion that cannot be read, "%I"`},
		{"apache", `%{%}t %s`, `has a conversion that cannot be read, "%"`},
		{"apache", `%t %s %{min}T`, `%{min}T, at column 7: there is no unit "min"; allowed are s, ms and us`},
		{"apache", `%t %s %{x`, `the directive "%{x", at column 7, has no end`},
		{"apache", `%t %s %`, `the directive "%", at column 7, has no end`},
		{"apache", `%h%D %t %s`, `%h and %D have no text between them, at column 3`},
	} {
		_, err := compiled(c.kind, c.format)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want … %s", c.kind, c.format, err, c.want)
		}
	}
}
