package accesslog

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// addresses has clients with ports, as servers write them.
var addresses = []struct{ text, want string }{
	{"192.0.2.7:40512", "192.0.2.7"},
	{"2001:db8::7:40512", "2001:db8::7"},
	{"[2001:db8::7]:40512", "2001:db8::7"},
	{"::1:40512", "::1"},
	{"[::1]:40512", "::1"},
	{"::ffff:192.0.2.7:40512", "::ffff:192.0.2.7"},
	{"[::ffff:192.0.2.7]:40512", "::ffff:192.0.2.7"},
	{"fe80::1%eth0:40512", "fe80::1%eth0"},
	{"[fe80::1%eth0]:40512", "fe80::1%eth0"},
	{"2001:db8:0:0:1:2:3:4:40512", "2001:db8:0:0:1:2:3:4"},
	{"2001:db8:::40512", "2001:db8::"},
	{"unix:1", ""},
	{"client.example:40512", "client.example"},
}

func TestClientsWithPorts(t *testing.T) {
	formats := map[string]string{
		"haproxy": `%s [22/Nov/2026:10:00:01.100] in~ app/s1 0/0/1/6/7 200 512 - - ---- 1/1/0/0/0 0/0 ` +
			`"GET /a HTTP/1.1"`,
		"alb": `https 2026-11-22T10:00:01.100000Z app/my-lb/50dc6c495c0c9188 %s 10.0.0.1:80 0.001 0.004 0.002 200 ` +
			`200 0 57 "GET https://a.example:443/a HTTP/1.1" ` +
			`"curl/7.46.0" ECDHE-RSA TLSv1.2 arn:x "Root=1-58337281" "a.example" ` +
			`"arn:y" 1 2026-11-22T10:00:01.000000Z "forward" "-" "-"`,
		"elb": `2026-11-22T10:00:01.100000Z my-lb %s 10.0.0.1:80 0.001 0.004 0.002 200 200 0 57 ` +
			`"GET http://a.example:80/a HTTP/1.1" "curl/7.46.0" - -`,
	}
	for name, format := range formats {
		for _, a := range addresses {
			line := fmt.Appendf(nil, format, a.text)
			f, err := Detect([][]byte{line})
			if err != nil || f.String() != name {
				t.Errorf("%s: %s: %v, %v", name, a.text, f, err)
				continue
			}
			var r Record
			if err := f.NewParser(nil).Parse(line, &r); err != nil || string(r.Client) != a.want ||
				r.Duration.Milliseconds() != 7 || string(r.Method) != "GET" {
				t.Errorf("%s: %s: %v, %s, want the client %q", name, a.text, err, show(&r), a.want)
			}
		}
	}
	for _, f := range []struct{ kind, format, behind string }{
		{
			"nginx", `$remote_addr:$remote_port [$time_local] "$request" $status`,
			` [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200`,
		},
		{"nginx", `$remote_addr:$remote_port,$msec,$status`, `,1795341601.1,200`},
		{"apache", `%h:%{remote}p %t %>s`, ` [22/Nov/2026:10:00:01 +0000] 200`},
		{"apache", `%a:%p %t %>s`, ` [22/Nov/2026:10:00:01 +0000] 200`},
		{"nginx", `$remote_addr $msec $status`, ` 1795341601.1 200`},
	} {
		format, err := compiled(f.kind, f.format)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			if text := a.text; !strings.Contains(f.format, "ort") && !strings.Contains(f.format, ":%p") &&
				strings.Count(text, ":") > 1 && text[0] != '[' {
				continue // if the format has no port, this is a different address
			}
			var r Record
			if err := format.NewParser(nil).Parse([]byte(a.text+f.behind), &r); err != nil ||
				string(r.Client) != a.want {
				t.Errorf("%s: %s: %v, %q, want %q", f.format, a.text, err, r.Client, a.want)
			}
		}
	}
}

func TestClientsWithoutPorts(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "2001:db8::7": "2001:db8::7", "::1": "::1", "::": "::",
		"[2001:db8::7]": "2001:db8::7", "::ffff:192.0.2.7": "::ffff:192.0.2.7",
		"unix:": "", "-": "", "a.example": "a.example", "fe80::1%eth0": "fe80::1%eth0",
		"@/run/a.sock": "", "/run/a.sock": "",
	} {
		for format, line := range map[string]string{
			"combined": text + ` - - [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200 17 "-" "ua"`,
			"json":     fmt.Sprintf(`{"ts":1795341601.1,"status":200,"remote_addr":%q}`, text),
		} {
			f, err := Detect([][]byte{[]byte(line)})
			if err != nil || f.String() != format {
				t.Errorf("%s: %v, %v", line, f, err)
				continue
			}
			var r Record
			if err := f.NewParser(nil).Parse([]byte(line), &r); err != nil || string(r.Client) != want {
				t.Errorf("%s: %v, %q, want %q", line, err, r.Client, want)
			}
		}
	}
}

func TestHostsWithPorts(t *testing.T) {
	const behind = ` 2001:db8::7 - ann lee [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200 17 "-" "ua"`
	for text, want := range map[string]string{
		"shop.example:443": "shop.example", "[2001:db8::1]:443": "[2001:db8::1]",
		"192.0.2.1:80": "192.0.2.1",
	} {
		f, err := Detect([][]byte{[]byte(text + behind)})
		if err != nil || f.String() != "vhost-combined" {
			t.Errorf("%s: %v, %v", text, f, err)
			continue
		}
		var r Record
		if err := f.NewParser(nil).Parse([]byte(text+behind), &r); err != nil || string(r.Host) != want ||
			string(r.Client) != "2001:db8::7" {
			t.Errorf("%s: %v, %s", text, err, show(&r))
		}
	}
	// An IPv6 client is not a host with a port.
	if f, err := Detect([][]byte{[]byte(behind[1:])}); err != nil || f.String() != "combined" {
		t.Errorf("%v, %v", f, err)
	}
}

// FuzzAddress reads every address back, with and without a port.
func FuzzAddress(f *testing.F) {
	f.Add([]byte{192, 0, 2, 7}, uint16(80), "")
	f.Add([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}, uint16(40512), "eth0")
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7}, uint16(0), "")
	f.Fuzz(func(t *testing.T, ip []byte, port uint16, zone string) {
		field := []byte(zone)
		if len(field) > 0 {
			for _, has := range []bool{false, true} { // any text
				if got := clientAddress(field, has); len(got) > len(field) {
					t.Fatalf("%q became %q", field, got)
				}
				_ = hostName(field)
				_ = hasPort(client, field)
				_ = hasPort(host, field)
			}
		}
		a, ok := netip.AddrFromSlice(ip)
		if !ok || strings.ContainsAny(zone, "]:%[ ") {
			return
		}
		if a.Is6() && zone != "" {
			a = a.WithZone(zone)
		}
		want := a.String()
		texts := map[string]bool{
			want: false, fmt.Sprintf("%s:%d", a, port): true,
			fmt.Sprintf("[%s]:%d", a, port): true, fmt.Sprintf("[%s]", a): false,
		}
		for text, has := range texts {
			if got := string(clientAddress([]byte(text), has)); got != want {
				t.Fatalf("%s, port %v: %s", text, has, got)
			}
		}
		if got := string(clientAddress(fmt.Appendf(nil, "[%s]:%d", a, port), false)); got != want {
			t.Fatalf("%s:%d without its port: %s", a, port, got)
		}
	})
}
