package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
)

// Programs for awk that print the method, path, time of day and status of each line.
const (
	awkQuoted = `awk -F'"' '{ split($1, a, "["); split($2, r, " "); split($3, s, " "); print r[1], r[2], ` +
		`substr(a[2], 13, 8), s[1] }'`
	awkISO  = `awk -F'"' '{ split($2, r, " "); split($3, s, " "); print r[1], r[2], substr($1, 13, 8), s[1] }'`
	awkJSON = `awk 'function of(key) { match($0, "\"" key "\":\"?[^\",}]*"); s = substr($0, RSTART, RLENGTH); ` +
		`sub(/^[^:]*:"?/, "", s); return s }
		{ t = of("time"); print of("method"), of("path"), substr(t, 12, 8), of("status") }'`
)

// presets has a line of each format, as servers write it, with placeholders for the parts that differ, and the program
// that reads it.
var presets = []struct {
	name, line, awk string
	end, given      bool // times are ends of calls; the format is not detected and must be given
}{
	{
		"ingress-nginx", `10.0.0.7 - - [CLF +0000] "METHOD PATH?x=1 HTTP/1.1" STATUS 612 "-" "curl/8.5.0" 407 ` +
			`SECONDS [shop-web-80] [] 10.1.0.4:8080 612 SECONDS STATUS 5f0c`,
		strings.Replace(awkQuoted, "split($3", `sub(/\?.*/, "", r[2]); split($3`, 1), true, false,
	},
	{
		"haproxy", `10.0.1.2:33317 [CLF.655] http-in static/srv1 10/0/30/69/MILLIS STATUS 2750 - - ---- 1/1/1/1/0 ` +
			`0/0 {1wt.eu} {} "METHOD PATH HTTP/1.1"`,
		`awk -F'"' '{ split($1, f, " "); split($2, r, " "); print r[1], r[2], substr(f[2], 14, 8), f[6] }'`, false,
		false,
	},
	{
		"istio", `[ISO.409Z] "METHOD PATH HTTP/1.1" STATUS - via_upstream - "-" 0 135 MILLIS 3 "-" "curl/7.73.0" ` +
			`"84961386" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.1:41854 10.44.1.27:80 - default`,
		awkISO, false, false,
	},
	{"envoy", `[ISO.310Z] "METHOD PATH HTTP/2" STATUS - 154 0 MILLIS 100 "10.0.35.28" "nsq2http" "cc21d9b0" ` +
		`"locations" "tcp://10.0.2.1:80"`, awkISO, false, false},
	{
		"alb", `https ISO.186641Z app/my-lb/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.000 SECONDS 0.000 ` +
			`STATUS STATUS 0 57 "METHOD https://www.example.com:443PATH HTTP/1.1" "curl/7.46.0" ECDHE-RSA TLSv1.2 ` +
			`arn:x "Root=1-58337281" "www.example.com" "arn:y" 1 2018-07-02T22:22:48.364000Z "forward" "-" "-"`,
		`awk '{ sub(/"/, "", $13); sub(/^https:\/\/[^\/]*/, "", $14); print $13, $14, substr($2, 12, 8), $9 }'`, true,
		false,
	},
	{
		"elb", `ISO.186641Z my-lb 192.168.131.39:2817 10.0.0.1:80 0.000 SECONDS 0.000 STATUS STATUS 0 57 "METHOD ` +
			`http://www.example.com:80PATH HTTP/1.1" "curl/7.46.0" - -`,
		`awk '{ sub(/"/, "", $12); sub(/^http:\/\/[^\/]*/, "", $13); print $12, $13, substr($1, 12, 8), $8 }'`, false,
		false,
	},
	{
		"npm-proxy", `[CLF +0000] - 502, STATUS STATUS - METHOD https shop.example "PATH" [Client 10.0.0.1] ` +
			`[Length 226] [Gzip -] [Sent-to 10.0.0.2] "Mozilla/5.0 (X11)" "-"`,
		`awk '{ gsub(/"/, "", $11); print $8, $11, substr($1, 14, 8), $6 }'`, true, false,
	},
	{
		"npm-standard", `[CLF +0000] STATUS - METHOD https shop.example "PATH" [Client 10.0.0.1] [Length 226] ` +
			`[Gzip -] "Mozilla/5.0 (X11)" "-"`,
		`awk '{ gsub(/"/, "", $8); print $5, $8, substr($1, 14, 8), $3 }'`, true, false,
	},
	{"traefik", `10.0.0.1 - - [CLF +0000] "METHOD PATH HTTP/1.1" STATUS 19 "-" "-" 1271 "web@docker" ` +
		`"http://10.0.1.7:80" MILLISms`, awkQuoted, false, false},
	{"vhost-combined", `shop.example:443 10.0.0.1 - - [CLF +0000] "METHOD PATH HTTP/1.1" STATUS 226 "-" ` +
		`"Mozilla/5.0 (X11)"`, awkQuoted, false, false},
	{
		"combined-usec", `10.0.0.1 - - [CLF +0000] "METHOD PATH HTTP/1.1" STATUS 226 "-" "Mozilla/5.0 (X11)" MILLIS000`,
		awkQuoted, false, true,
	},
	{
		"combined-time", `10.0.0.1 - - [CLF +0000] "METHOD PATH HTTP/1.1" STATUS 226 "-" "Mozilla/5.0 (X11)" SECONDS`,
		awkQuoted, true, false,
	},
	{
		"combined", `10.0.0.1 - - [CLF +0000] "METHOD PATH HTTP/1.1" STATUS 226 "-" "Mozilla/5.0 (X11)"`, awkQuoted,
		false, false,
	},
	{"common", `10.0.0.1 - frank [CLF +0000] "METHOD PATH HTTP/1.1" STATUS 2326`, awkQuoted, false, false},
	{
		"w3c", `DATE TIME 10.0.0.1 METHOD PATH x=1 443 - 192.0.2.7 Mozilla/5.0+(X11) - STATUS 0 0 MILLIS`,
		`awk '{ print $4, $5, $2, $12 }'`, true, true,
	},
	{
		"json", `{"level":"info","time":"ISO.524Z","logger":"http.log.access","request":{"remote_ip":"127.0.0.1",` +
			`"method":"METHOD","host":"localhost","uri":"PATH","headers":{"Accept":["*/*"]}},"duration":SECONDS,` +
			`"size":10900,"status":STATUS}`,
		strings.Replace(awkJSON, "path", "uri", 1), true, false,
	},
	{
		"json-ms", `{"time":"ISO.5Z","method":"METHOD","path":"PATH","status":STATUS,"duration":MILLIS}`, awkJSON, true,
		true,
	},
	{
		"json-us", `{"time":"ISO.5Z","method":"METHOD","path":"PATH","status":STATUS,"duration":MILLIS000}`, awkJSON,
		true, true,
	},
	{
		"json-ns", `{"time":"ISO.5Z","method":"METHOD","path":"PATH","status":STATUS,"duration":MILLIS000000}`, awkJSON,
		true, true,
	},
}

// For each format, replay and awk count the same calls of each resource in each second, and of each status.
func TestReplayOfAllFormats(t *testing.T) {
	for i, name := range accesslog.Names() {
		if len(presets) <= i || presets[i].name != name {
			t.Fatalf("no preset for %s", name)
		}
	}
	for _, c := range presets {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, r := t.TempDir(), rand.New(rand.NewPCG(1, 2))
			var log strings.Builder
			for n := range 3000 {
				at := time.Date(2026, 11, 22, 10, 0, n/60, 0, time.UTC)
				millis := 100 + r.IntN(2000)
				log.WriteString(strings.NewReplacer(
					"CLF", at.Format("02/Jan/2006:15:04:05"), "ISO", at.Format("2006-01-02T15:04:05"),
					"DATE", at.Format(time.DateOnly), "TIME", at.Format(time.TimeOnly),
					"METHOD", []string{"GET", "POST"}[r.IntN(2)],
					"PATH", []string{"/", "/cart", "/cart/pay", "/img/a.png"}[r.IntN(4)],
					"STATUS", []string{"200", "204", "304", "404", "500", "503"}[r.IntN(6)],
					"SECONDS", fmt.Sprintf("%d.%03d", millis/1000, millis%1000), "MILLIS", strconv.Itoa(millis),
				).Replace(c.line) + "\n")
			}
			path := filepath.Join(dir, "access.log")
			if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"replay", "--metric-log.dir=" + dir, "--routes-only"}
			// Without routes, the first calls are unmatched.
			for _, route := range []string{"/{$}", "/cart", "/cart/pay", "/img/a.png"} {
				args = append(args, "--route=GET "+route, "--route=POST "+route)
			}
			if c.given {
				args = append(args, "--format="+c.name)
			}
			p := launch(t, append(args, path)...)
			if status := p.wait(t); status != 0 {
				t.Fatalf("status %d:\n%s", status, p.output())
			}
			got, failed := map[string]int64{}, map[string]int64{}
			for _, row := range logRows(t, dir) {
				n, name := row.Pass, strings.Replace(row.Resource, "{$}", "", 1)
				if c.end {
					n = row.Success
				}
				if row.Resource != collector.InboundTotal && n > 0 {
					got[name+row.Start.UTC().Format(" 15:04:05")] += n
				}
				if row.Resource != collector.InboundTotal {
					failed[name] += row.Exception
				}
			}
			statuses := regexp.MustCompile(`(?m)^ +(\d+) calls with (status \d+)$`)
			for _, m := range statuses.FindAllStringSubmatch(p.output(), -1) {
				got[m[2]], _ = strconv.ParseInt(m[1], 10, 64)
			}
			want := map[string]int64{}
			for line := range strings.Lines(shell(t, dir, c.awk+" access.log")) {
				f := strings.Fields(line)
				if len(f) != 4 {
					t.Fatalf("awk prints %q", line)
				}
				want[f[0]+" "+f[1]+" "+f[2]]++
				want["status "+f[3]]++
				if f[3][0] == '5' {
					failed[f[0]+" "+f[1]]--
				}
			}
			for what, n := range want {
				if got[what] != n {
					t.Errorf("%s: %d, awk counts %d", what, got[what], n)
				}
			}
			if len(got) != len(want) || len(want) < 6+7*50 {
				t.Errorf("%d resources in seconds and statuses, awk counts %d", len(got), len(want))
			}
			for resource, n := range failed {
				if n != 0 {
					t.Errorf("%s: %d exceptions more than awk counts", resource, n)
				}
			}
		})
	}
}
