package accesslog

import (
	"strings"
	"testing"
)

const commonStart = `192.0.2.1 [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1" `

func TestListsOfNginx(t *testing.T) {
	lists := map[string][]string{
		"$upstream_status": {
			"-", "200", "502, 200", "502, 502, 502", "502 : 200",
			"502, - : 200, 404", "502 : ", "-, -",
		},
		"$upstream_response_time":   {"-", "0.004", "0.004, 0.012", "0.004 : 0.012", "0.001, 0.002 : 0.003, -"},
		"$upstream_connect_time":    {"0.004, 0.012", "- : 0.000"},
		"$upstream_header_time":     {"0.004, 0.012"},
		"$upstream_response_length": {"0, 17", "0 : 17"},
		"$upstream_bytes_received":  {"0, 17"},
		"$upstream_bytes_sent":      {"0, 17"},
		"$upstream_addr": {
			"10.0.0.1:80", "10.0.0.1:80, 10.0.0.2:80", "unix:/run/a.sock", "unix:/run/a.sock : 10.0.0.1:80",
			"[2001:db8::1]:80, [2001:db8::2]:80", "backend", "10.0.0.1:80, unix:/tmp/b.sock, shop : [::1]:80",
		},
		"$http_x_forwarded_for":       {"-", "192.0.2.9", "192.0.2.9, 10.0.0.1, 2001:db8::1"},
		"$proxy_add_x_forwarded_for":  {"192.0.2.9, 10.0.0.1"},
		"$upstream_cache_status":      {"MISS", "-"},
		"$upstream_http_content_type": {"text/html", "-"},
	}
	for variable, values := range lists {
		for _, value := range values {
			for _, frame := range []struct{ before, behind string }{
				{"", " "},
				{"", "\t"},
				{"", "|"},
				{"", ","},
				{`"`, `" `},
				{"[", "] "},
				{"", " - "},
				{"x=", " y="},
				{"", ";"},
			} {
				field := frame.before + variable + frame.behind
				text := frame.before + value + frame.behind
				for _, c := range []struct{ format, line string }{
					{`$remote_addr [$time_local] "$request" ` + field + `$status $request_time`, commonStart + text +
						`404 0.016`},
					{`$remote_addr [$time_local] "$request" $status ` + field + `$request_time`, commonStart + "404 " +
						text + `0.016`},
					{
						`$remote_addr [$time_local] "$request" $status ` + field + `$body_bytes_sent $request_time x`,
						commonStart + "404 " + text + `17 0.016 x`,
					},
				} {
					f, err := Nginx(c.format)
					if err != nil {
						t.Errorf("%s: %v", c.format, err)
						continue
					}
					var r Record
					err = f.NewParser(nil).Parse([]byte(c.line), &r)
					const want = `2026-11-22T10:00:01Z end 16ms 404 "GET" "/a" "" "192.0.2.1"`
					if got := show(&r); err != nil || got != want {
						t.Errorf("%s: %s: %v\n got %s\nwant %s", c.format, c.line, err, got, want)
					}
				}
			}
		}
	}
}

// Many administrators write an nginx format that looks like JSON and has lists without quotes, which JSON does not
// allow.
func TestListsInJSON(t *testing.T) {
	for _, list := range []string{
		"-", "502", "502, 200", "0.004 : 0.012", "-, 0.012 : 0.004, -", "10.0.0.1:80, 10.0.0.2:80",
		"unix:/run/a.sock : 10.0.0.1:80", "[::1]:80, [2001:db8::1]:80", "backend, shop",
	} {
		for _, line := range []string{
			`{"time_iso8601":"2026-11-22T10:00:01+00:00","upstream":` + list +
				`,"request":"GET /a HTTP/1.1","status":404,"request_time":0.016,"remote_addr":"192.0.2.1"}`,
			`{"time_iso8601":"2026-11-22T10:00:01+00:00","request":"GET /a HTTP/1.1","status":404,` +
				`"request_time":0.016,"remote_addr":"192.0.2.1","upstream": ` + list + ` }`,
			`{"time_iso8601":"2026-11-22T10:00:01+00:00","request":"GET /a HTTP/1.1", "upstream":` + list +
				`, "status":404, "a":` + list + `, "request_time":0.016, "remote_addr":"192.0.2.1" }`,
		} {
			f, err := Detect([][]byte{[]byte(line)})
			if err != nil || f.String() != "json" {
				t.Errorf("%s: %v, %v", line, f, err)
				continue
			}
			var r Record
			err = f.NewParser(nil).Parse([]byte(line), &r)
			if got, want := show(&r), `2026-11-22T10:00:01Z end 16ms 404 "GET" "/a" "" "192.0.2.1"`; err != nil ||
				got != want {
				t.Errorf("%s: %v\n got %s\nwant %s", line, err, got, want)
			}
		}
	}
	for _, line := range []string{
		`{"ts":1,"status":200,}`, `{"ts":1,"status":200 :}`, `{"ts":1,"status":200, }`,
		`{"ts":1,"status":200,`, `{"ts":1,"status":200,,}`,
	} {
		if err := parser(t, "json").Parse([]byte(line), new(Record)); err != errObject {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A list cannot end with the text that separates its elements.
func TestListsWithoutAnEndAreRefused(t *testing.T) {
	for _, separator := range []string{", ", " : "} {
		_, err := Nginx(`[$time_local] $upstream_status` + separator + `$status`)
		if err == nil ||
			!strings.Contains(err.Error(), "$upstream_status and $status have no text between them") {
			t.Errorf("%q: %v", separator, err)
		}
		if _, err = Nginx(`[$time_local] "$upstream_status"` + separator + `$status`); err != nil {
			t.Errorf("in quotes, %q: %v", separator, err)
		}
	}
	f, err := Nginx(`[$time_local] up=$upstream_status, status=$status, rt=$request_time`)
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	if err := f.NewParser(nil).Parse([]byte(`[22/Nov/2026:10:00:01 +0000] up=502, 502 : 200, status=200, rt=0.016`),
		&r); err != nil || r.Status != 200 || r.Duration.Milliseconds() != 16 {
		t.Errorf("%v, %s", err, show(&r))
	}
}

// After a combined line, an element of a list is not mistaken for the duration of the request.
func TestListsBehindCombined(t *testing.T) {
	for tail, want := range map[string]string{
		` 0.016 0.004, 0.012`:                          "16ms",
		` 10.0.0.1:80, 10.0.0.2:80 0.016 0.004, 0.012`: "16ms",
		` [2001:db8::1]:80 : unix:/a 0.016`:            "16ms",
		` rt=0.016 uct=0.001, 0.002 urt=0.004, 0.012`:  "16ms",
		` urt=0.004, 0.012 rt=0.016`:                   "16ms",
		` urt=0.004, rt=0.016, x=y`:                    "16ms",
		` rt : 0.016`:                                  "16ms",
		` 0.004, 0.012`:                                "",
		` 0.004 : 0.012`:                               "",
		` "0.004, 0.012"`:                              "",
		` 0.004, 0.012 0.016 10.0.0.1:80, 10.0.0.2:80`: "16ms",
		` 502, 200 0.016`:                              "16ms",
	} {
		line := []byte(combinedSample + tail)
		f, err := Detect([][]byte{line})
		if err != nil {
			t.Errorf("%s: %v", tail, err)
			continue
		}
		var r Record
		if err := f.NewParser(nil).Parse(line, &r); err != nil || r.HasDuration != (want != "") ||
			want != "" && r.Duration.String() != want {
			t.Errorf("%s: %v %v %v as %s", tail, r.Duration, r.HasDuration, err, f)
		}
	}
}

// FuzzList reads the status and the duration after any list.
func FuzzList(f *testing.F) {
	f.Add("502, - : 200", byte(' '))
	f.Add("unix:/a, [::1]:80 : b", byte('\t'))
	f.Fuzz(func(t *testing.T, elements string, separator byte) {
		// Any text becomes a list: each byte chooses an element or a separator.
		values := []string{"-", "502", "0.004", "10.0.0.1:80", "unix:/run/a.sock", "[2001:db8::1]:80", "backend"}
		list := "-"
		for i := range min(len(elements), 20) {
			list += []string{", ", " : "}[elements[i]%2] + values[int(elements[i]/2)%len(values)]
		}
		s := string([]byte(" \t|;")[separator%4])
		format, err := Nginx("[$time_local]" + s + "$upstream_addr" + s + "$status" + s + "$upstream_response_time" +
			s + "$request_time")
		if err != nil {
			t.Fatal(err)
		}
		line := "[22/Nov/2026:10:00:01 +0000]" + s + list + s + "404" + s + list + s + "0.016"
		var r Record
		if err := format.NewParser(nil).Parse([]byte(line), &r); err != nil || r.Status != 404 ||
			r.Duration.Milliseconds() != 16 {
			t.Fatalf("%q: %v, %s", line, err, show(&r))
		}
	})
}
