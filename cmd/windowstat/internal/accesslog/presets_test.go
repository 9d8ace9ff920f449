package accesslog

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// samples has lines of real servers, and the records that they contain.
var samples = []struct {
	name, line, want string
}{
	{
		"ingress-nginx", `10.0.0.7 - - [22/Nov/2026:10:00:01 +0000] "GET /cart/7?x=1 HTTP/1.1" 200 612 "-" ` +
			`"curl/8.5.0" 407 0.123 [shop-web-80] [] 10.1.0.4:8080 612 0.120 200 5f0c`,
		"10:00:01 end GET /cart/7?x=1 200 123ms client 10.0.0.7",
	},
	{
		"ingress-nginx", `10.0.0.7 - jane [22/Nov/2026:10:00:01 +0000] "GET / HTTP/2.0" 499 0 "http://a/?b=c d" ` +
			`"a \x22b\x22" 38 1.5 [shop-web-80] [alt] 10.1.0.4:8080, 10.1.0.5:8080 0, 0 0.100, 1.400 -, - 5f0c`,
		"10:00:01 end GET / 499 1.5s client 10.0.0.7",
	},
	{
		"haproxy", `10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- ` +
			`1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"`,
		"12:14:14.655 start GET /index.html 200 109ms client 10.0.1.2",
	},
	{
		"haproxy", `Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 ` +
			`[06/Feb/2009:12:14:14.655] http-in~ static/<NOSRV> 10/-1/-1/-1/+50009 408 212 - - cR-- 1/1/1/1/0 0/0 ` +
			`"<BADREQ>"`,
		"12:14:14.655 start   408 50.009s client 10.0.1.2",
	},
	{
		"haproxy", `<134>1 2009-02-06T12:14:14+00:00 lb haproxy[7]: 10.0.1.2:1 ` +
			`[06/Feb/2009:12:14:14.655] in b/s 0/0/0/-1/3 -1 0 - - CH-- 1/1/1/1/0 0/0 "POST /pay HTTP/1.1"`,
		"12:14:14.655 start POST /pay 0 3ms client 10.0.1.2",
	},
	// HAProxy 2.6 wrote these lines.
	{
		"haproxy", `127.0.0.1:54460 [22/Nov/2026:19:59:33.661] in b/s 0/0/-1/-1/3004 503 217 - - SC-- 1/1/0/0/3 0/0 ` +
			`"GET /down HTTP/1.1"`,
		"19:59:33.661 start GET /down 503 3.004s client 127.0.0.1",
	},
	{
		"haproxy", `127.0.0.1:34582 [22/Nov/2026:19:59:40.530] in in/<NOSRV> -1/-1/-1/-1/0 400 0 - - PR-- 1/1/0/0/0 ` +
			`0/0 "<BADREQ>"`,
		"19:59:40.53 start   400 0s client 127.0.0.1",
	},
	{
		"envoy", `[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" ` +
			`"nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80"`,
		"20:17:00.31 start POST /api/v1/locations 204 226ms host locations",
	},
	{
		"envoy", `[2016-04-15T20:17:00.310Z] "GET / HTTP/1.1" 0 DC 0 0 5 - "-" "a" "b" "shop:8080" "-"`,
		"20:17:00.31 start GET / 0 5ms host shop:8080",
	},
	{
		"istio", `[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 4 3 "-" ` +
			`"curl/7.73.0-DEV" "84961386" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.1:41854 10.44.1.27:80 ` +
			`- default`,
		"21:26:18.409 start GET /status/418 418 4ms host httpbin:8000",
	},
	{
		"alb", `https 2018-07-02T22:23:00.186641Z app/my-lb/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 ` +
			`0.048 0.037 200 200 0 57 "GET https://www.example.com:443/a/b?c HTTP/1.1" ` +
			`"curl/7.46.0" ECDHE-RSA TLSv1.2 arn:x "Root=1-58337281" "www.example.com" ` +
			`"arn:y" 1 2018-07-02T22:22:48.364000Z "forward" "-" "-"`,
		"22:23:00.186641 end GET https://www.example.com:443/a/b?c 200 171ms client 192.168.131.39",
	},
	{
		"alb", `http 2018-11-30T22:23:00.186641Z app/my-lb/50d 192.168.131.39:2817 - -1 -1 -1 460 - 0 0 ` +
			`"- http://www.example.com:80- -" "-" - -`,
		"22:23:00.186641 end   460 0s client 192.168.131.39",
	},
	{
		"elb", `2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.001069 0.000028 ` +
			`0.000041 - - 82 305 "- - - " "-" - -`,
		"23:39:43.945958 start   0 1.138ms client 192.168.131.39",
	},
	{
		"elb", `2015-05-13T23:39:43.945958Z my-loadbalancer [2001:db8::7]:2817 - -1 -1 -1 503 0 0 0 ` +
			`"GET https://www.example.com:443/a HTTP/1.1" "curl/7.38.0" ECDHE-RSA TLSv1.2`,
		"23:39:43.945958 start GET https://www.example.com:443/a 503 0s client 2001:db8::7",
	},
	{
		"npm-proxy", `[22/Nov/2026:10:00:01 +0000] HIT - 304 - GET http shop.example "/a?b=c d" [Client 2001:db8::7] ` +
			`[Length 0] [Gzip 2.15] [Sent-to web] "ua" "https://a/"`,
		"10:00:01 end GET /a?b=c d 304 ? client 2001:db8::7 host shop.example",
	},
	{
		"npm-standard", `[22/Nov/2026:10:00:01 +0000] 400 - - http localhost-nginx-proxy-manager "-" ` +
			`[Client 192.0.2.7] [Length 154] [Gzip -] "-" "-"`,
		"10:00:01 end   400 ? client 192.0.2.7 host localhost-nginx-proxy-manager",
	},
}

// said returns the text of a record in the form that samples has.
func said(r *Record) string {
	d := "?"
	if r.HasDuration {
		d = r.Duration.String()
	}
	s := fmt.Sprintf("%s %v %s %s %d %s", r.Time.Format("15:04:05.999999999"), r.Stamp, r.Method, r.Target, r.Status, d)
	if len(r.Client) > 0 {
		s += " client " + string(r.Client)
	}
	if len(r.Host) > 0 {
		s += " host " + string(r.Host)
	}
	return s
}

// Each line alone is enough to detect its format. It is read with and without the wrappings of container runtimes.
func TestPresets(t *testing.T) {
	for _, c := range samples {
		docker, err := json.Marshal(map[string]string{
			"log": c.line + "\n", "stream": "stdout",
			"time": "2026-11-22T10:00:02.5Z",
		})
		if err != nil {
			t.Fatal(err)
		}
		for wrap, line := range map[string]string{
			"": c.line, "docker": string(docker), "CRI": "2026-11-22T10:00:02.123456789Z stdout F " + c.line,
			"CRI with a zone": "2026-11-22T10:00:02.123456789+01:00 stderr F " + c.line,
		} {
			f, err := Detect([][]byte{[]byte(line)})
			if err != nil || f.String() != c.name {
				t.Errorf("%s %s: %v, %v", c.name, wrap, f, err)
				continue
			}
			var r Record
			if err := f.NewParser(time.UTC).Parse([]byte(line+"\n"), &r); err != nil || said(&r) != c.want {
				t.Errorf("%s %s: %v, %s\n\tgot  %s\n\twant %s", c.name, wrap, err, line, said(&r), c.want)
			}
		}
	}
}

const combinedSample = `1.2.3.4 - - [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200 612 "-" "a \"b"`

// Detect finds durations after combined lines. It once ignored them, and the command reported that the log had none.
func TestTailsOfCombined(t *testing.T) {
	for tail, want := range map[string]string{
		` rt=0.123`:                         "123ms",
		` rt=0.123 uct="0.001" urt="0.100"`: "123ms",
		` urt=0.100 rt=0.123 x`:             "123ms",
		` "10.0.0.1" "0.123"`:               "123ms",
		` "-" rt=0.123 ua="x y" us="200"`:   "123ms",
		` 0.123 0.120`:                      "123ms",
		` 0.123 -`:                          "123ms",
		` "-" 0.123 0.120 .`:                "123ms",
		` [shop] request_time=0.123`:        "123ms",
		` request_time: 0.123`:              "123ms",
		` 0.120 0.123`:                      "", // the first is not the longest
		` "10.0.0.1"`:                       "",
		` rt=12`:                            "",
	} {
		line := []byte(combinedSample + tail)
		f, err := Detect([][]byte{line})
		if err != nil {
			t.Errorf("%s: %v", tail, err)
			continue
		}
		var r Record
		if err := f.NewParser(nil).Parse(line, &r); err != nil || r.HasDuration != (want != "") ||
			want != "" && r.Duration.String() != want || string(r.Target) != "/a" {
			t.Errorf("%s: %v, %v, %v as %s", tail, r.Duration, r.HasDuration, err, f)
		}
		unread := strings.TrimSpace(tail)
		if want != "" {
			unread = ""
		}
		if got := string(f.Unread(line)); got != unread {
			t.Errorf("%s: %q is unread, want %q", tail, got, unread)
		}
	}
}

var update = flag.Bool("update", false, "write the table of formats into docs/access-logs.md")

// The table in the documentation lists exactly the formats that are read. To write it, run go test
// ./cmd/windowstat/internal/accesslog -run Documented -update.
func TestPresetsAreDocumented(t *testing.T) {
	const path = "../../../../docs/access-logs.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| format | time, and of which end of the call | request | status | duration | client | host " +
		"|\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, n := range presets {
		f, err := Named(n.name)
		if err != nil {
			t.Fatal(err)
		}
		if f.json {
			continue
		}
		fields := map[slot]string{}
		for _, s := range f.steps {
			switch s.slot {
			case duration:
				fields[duration] = "`" + s.name + "`, in " +
					map[time.Duration]string{seconds: "s", milliseconds: "ms", microseconds: "µs"}[s.unit]
			case more:
				fields[duration] += " + `" + s.name + "`"
			case skip:
			default:
				fields[s.slot] += "`" + s.name + "`"
			}
		}
		fields[timestamp] += ", the " + f.stamp.String()
		table.WriteString("| `" + n.name + "` |")
		for _, slot := range []slot{timestamp, request, status, duration, client, host} {
			table.WriteString(" " + cmp.Or(fields[slot], "–") + " |")
		}
		table.WriteString("\n")
	}
	before, rest, _ := strings.Cut(string(page), "| format |")
	_, behind, _ := strings.Cut(rest, "\n\n")
	want := before + table.String() + "\n" + behind
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatal("the table in docs/access-logs.md is another one; -update writes it")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A line that a container runtime has split is one line, even if other lines arrive between its parts. Detect needs the
// whole line.
func TestSplitLines(t *testing.T) {
	line := strings.Replace(combinedSample+` 0.123`, "/a", "/a?"+strings.Repeat("x", 40_000), 1)
	cri := func(stream, tag, text string) string {
		return "2026-11-22T10:00:02.123456789Z " + stream + " " + tag + " " + text
	}
	docker := func(text string) string {
		b, err := json.Marshal(map[string]string{"log": text, "stream": "stdout", "time": "2026-11-22T10:00:02.5Z"})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, lines := range map[string][]string{
		"CRI": {
			cri("stdout", "P", line[:16384]), cri("stderr", "P", "an err"),
			cri("stdout", "P", line[16384:32768]), cri("stderr", "F", "or"),
			cri("stdout", "F", line[32768:]), cri("stdout", "F", combinedSample+` 0.200`),
		},
		"Docker": {
			docker(line[:16384]), docker(line[16384:32768]), docker(line[32768:] + "\n"),
			docker(combinedSample + " 0.200\n"),
		},
	} {
		var sample [][]byte
		for _, l := range lines {
			sample = append(sample, []byte(l+"\n"))
		}
		f, err := Detect(sample)
		if err != nil || f.String() != "combined-time" {
			t.Errorf("%s: %v, %v", name, f, err)
			continue
		}
		p := f.NewParser(nil)
		var got []string
		for _, l := range sample {
			var r Record
			if err := p.Parse(l, &r); err == nil {
				got = append(got, fmt.Sprint(len(r.Target), r.Duration))
			} else if err != ErrPartial && name != "CRI" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if want := "[40003 123ms 2 200ms]"; fmt.Sprint(got) != want || p.Partial() {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
		if err := p.Parse(sample[0], new(Record)); err != ErrPartial || !p.Partial() {
			t.Errorf("%s: %v", name, err)
		}
	}
}
