package accesslog

import (
	"fmt"
	"strings"
	"time"
)

// presets has the named formats: format strings of httpd or nginx, and a #Fields directive. Only the fields that a
// record needs have real directives; the others have invented names such as %{flags}x. %{+s}T, which httpd does not
// have, is a part of the duration and is added to it.
//
// The order matters: if several formats leave the same part of a line unread, [Detect] takes the first one.
var presets = []struct {
	name, format string
	unit         time.Duration // of JSON's durations whose key does not determine it; 0 for text formats
}{
	{"ingress-nginx", `%h - %u [%{end:%d/%b/%Y:%H:%M:%S %z}t] "%r" %>s %b "%{Referer}i" "%{User-Agent}i" ` +
		`%I %{s}T [%{upstream}x] [%{alternative}x] %{address}x %{length}x %{time}x %{status}x %{id}x`, 0},
	{
		"haproxy", `%a:%p [%{%d/%b/%Y:%H:%M:%S}t.%{msec_frac}t] %{frontend}x %{backend}x ` +
			`%{TR}x/%{Tw}x/%{Tc}x/%{Tr}x/%{ms}T %>s %B %{CC}x %{CS}x %{tsc}x %{connections}x %{queues}x ` +
			`%{captures}x"%r"`,
		0,
	},
	{
		"istio",
		`[%{begin:%Y-%m-%dT%H:%M:%S%z}t] "%r" %>s %{flags}x %{details}x %{failure}x ` +
			`"%{tls}x" %I %O %{ms}T %{upstream}x ` +
			`"%{X-Forwarded-For}i" "%{User-Agent}i" "%{id}x" "%{Host}i" %{more}x`,
		0,
	},
	{"envoy", `[%{begin:%Y-%m-%dT%H:%M:%S%z}t] "%r" %>s %{flags}x %I %O %{ms}T %{upstream}x ` +
		`"%{X-Forwarded-For}i" "%{User-Agent}i" "%{id}x" "%{Host}i" %{more}x`, 0},
	{"alb", `%{type}x %{end:%Y-%m-%dT%H:%M:%S%z}t %{elb}x %a:%p %{target}x %{s}T %{+s}T %{+s}T %>s ` +
		`%{status}x %I %O "%r" %{more}x`, 0},
	{"elb", `%{begin:%Y-%m-%dT%H:%M:%S%z}t %{elb}x %a:%p %{target}x %{s}T %{+s}T %{+s}T %>s ` +
		`%{status}x %I %O "%r" %{more}x`, 0},
	{
		"npm-proxy",
		`[$time_local] $upstream_cache_status $upstream_status $status - $request_method $scheme $host ` +
			`"$request_uri" [Client $remote_addr] [Length $body_bytes_sent] [Gzip $gzip_ratio] [Sent-to $server] ` +
			`"$http_user_agent" "$http_referer"`,
		0,
	},
	{"npm-standard", `[$time_local] $status - $request_method $scheme $host "$request_uri" ` +
		`[Client $remote_addr] [Length $body_bytes_sent] [Gzip $gzip_ratio] "$http_user_agent" "$http_referer"`, 0},
	{
		"traefik",
		`%h - %u [%{begin:%d/%b/%Y:%H:%M:%S %z}t] "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %k "%{router}n" ` +
			`"%{server}n" %{ms}Tms`,
		0,
	},
	{"vhost-combined", `%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"`, 0},
	{"combined-usec", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %D`, 0},
	{"combined-time", `%h %l %u [%{end:%d/%b/%Y:%H:%M:%S %z}t] "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %{s}T`, 0},
	{"combined", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`, 0},
	{"common", `%h %l %u %t "%r" %>s %b`, 0},
	{"w3c", iisFields, 0},
	{"json", "", seconds},
	{"json-ms", "", milliseconds},
	{"json-us", "", microseconds},
	{"json-ns", "", nanoseconds},
}

// Names returns the names of the named formats.
func Names() []string {
	var names []string
	for _, n := range presets {
		names = append(names, n.name)
	}
	return names
}

// Named returns a format by name:
//
//   - common, combined: the formats of httpd and nginx with these names;
//   - vhost-combined: combined after the virtual host and its port, as Debian's httpd writes it;
//   - combined-time: combined, then nginx's $request_time, in seconds;
//   - combined-usec: combined, then httpd's %D, in microseconds;
//   - traefik: the text format of Traefik, combined and more fields, with the duration in milliseconds;
//   - ingress-nginx: the default format of the Ingress-Nginx controller;
//   - haproxy: HAProxy's "option httplog";
//   - envoy, istio: their default text formats;
//   - alb, elb: the access logs of AWS's application load balancers and classic load balancers;
//   - npm-proxy, npm-standard: the formats "proxy" and "standard" of Nginx Proxy Manager;
//   - w3c: the W3C extended log format of IIS and CloudFront. A #Fields directive names the fields of the lines after
//     it. Lines without a directive before them have the fields of IIS by default;
//   - json: an object in each line, with the keys of Caddy, Traefik, Envoy Gateway, Istio, or nginx's variables. Fields
//     of Caddy's console encoder may precede the object. Numbers under "duration" are in seconds;
//   - json-ms, json-us, json-ns: the same with "duration" in milliseconds, microseconds or nanoseconds.
//
// The error for another name lists these.
func Named(name string) (*Format, error) {
	for _, n := range presets {
		if n.name != name {
			continue
		}
		if n.unit != 0 {
			return &Format{name: name, json: true, unit: n.unit, keys: serverKeys}, nil
		}
		// The language of a preset is evident from its text.
		read := Apache
		switch {
		case strings.HasPrefix(n.format, w3cDirective):
			read = w3c
		case strings.Contains(n.format, "$"):
			read = Nginx
		}
		f, err := read(n.format)
		if err != nil {
			return nil, err
		}
		f.name = n.name
		return f, nil
	}
	return nil, fmt.Errorf("there is no log format named %q; there are %s", name, strings.Join(Names(), ", "))
}
