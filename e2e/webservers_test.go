package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A webServer forwards requests to an upstream, and logs them.
type webServer struct {
	name   string
	format string // format flag of replay; replay guesses if it is empty
	end    bool   // the log records the ends of calls
	start  func(t *testing.T, addr, upstream, dir, log string)
}

var webServers = []webServer{
	{
		"nginx", `--nginx-format=$remote_addr [$time_local] "$request" $status $request_time`, true,
		func(t *testing.T, addr, upstream, dir, log string) {
			config := `daemon off; master_process off; pid nginx.pid; error_log stderr; events {}
			http {
				log_format timed '$remote_addr [$time_local] "$request" $status $request_time';
				access_log ` + log + ` timed;
				client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;
				uwsgi_temp_path t4; scgi_temp_path t5;
				server { listen ` + addr + `; location / { proxy_pass http://` + upstream + `; } }
			}`
			launch(t, addr, dir, nginx.path(t), "-p", dir, "-c", configure(t, dir, config), "-e", "stderr")
		},
	},
	{
		"Apache", `--apache-format=%h %l %u %t "%r" %>s %b %D`, false,
		func(t *testing.T, addr, upstream, dir, log string) {
			var config strings.Builder
			for _, module := range []string{"mpm_event", "authz_core", "proxy", "proxy_http"} {
				fmt.Fprintf(&config, "LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n", module, module)
			}
			fmt.Fprintf(&config,
				"ServerName shop\nListen %s\nPidFile %s/pid\nDefaultRuntimeDir %s\nErrorLog /dev/stderr\n"+
					"User nobody\nGroup nogroup\n", addr, dir, dir)
			fmt.Fprintf(&config,
				"ProxyPass / http://%s/\nLogFormat \"%%h %%l %%u %%t \\\"%%r\\\" %%>s %%b %%D\" timed\n"+
					"CustomLog %s timed\n", upstream, log)
			launch(t, addr, dir, "apache2", "-d", dir, "-f", configure(t, dir, config.String()), "-D", "FOREGROUND")
		},
	},
	{"Caddy", "", true, func(t *testing.T, addr, upstream, dir, log string) {
		config := `{"admin": {"disabled": true}, "storage": {"module": "file_system", "root": "` + dir + `"},
			"logging": {"logs": {"access": {"writer": {"output": "file", "filename": "` + log + `"},
				"include": ["http.log.access"]}}},
			"apps": {"http": {"servers": {"shop": {"listen": ["` + addr + `"], "automatic_https": {"disable": true},
				"logs": {}, "routes": [
				{"handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "` + upstream + `"}]}]}
			]}}}}}`
		launch(t, addr, dir, caddy.path(t), "run", "--config", configure(t, dir, config))
	}},
	{"HAProxy", "", false, func(t *testing.T, addr, upstream, dir, log string) {
		config := `global
	log ` + listenSyslog(t, log) + ` local0
defaults
	mode http
	log global
	option httplog
	option dontlognull
	timeout connect 5s
	timeout client 5s
	timeout server 5s
frontend in
	bind ` + addr + `
	default_backend shop
backend shop
	server shop ` + upstream + "\n"
		launch(t, addr, dir, "haproxy", "-db", "-f", configure(t, dir, config))
	}},
}

func configure(t *testing.T, dir, config string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "config")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// listenSyslog returns a syslog socket, and writes all messages to a file.
func listenSyslog(t *testing.T, log string) (socket string) {
	t.Helper()
	socket = filepath.Join(filepath.Dir(log), "syslog")
	l, err := net.ListenPacket("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	f := appendable(t, log)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		message := make([]byte, 64<<10)
		for {
			n, _, err := l.ReadFrom(message)
			if err != nil {
				return // the socket is closed
			}
			_, _ = fmt.Fprintln(f, strings.TrimSpace(string(message[:n])))
		}
	}()
	return socket
}

// TestWebServers sends the same requests through web servers to one upstream. From each log, replay counts the same:
// the calls of each resource in each second, as in the upstream, and the statuses.
func TestWebServers(t *testing.T) {
	t.Parallel()
	binary := buildWindowstat(t)
	upstream := listen(t, "127.0.0.1:0")
	serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/down":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "ok")
	}), upstream)
	type server struct {
		webServer
		addr, dir, log string
	}
	var servers []server
	for _, s := range webServers {
		x := server{webServer: s, addr: freeAddress(t), dir: t.TempDir()}
		x.log = filepath.Join(x.dir, "access.log")
		s.start(t, x.addr, upstream.Addr().String(), x.dir, x.log)
		servers = append(servers, x)
	}
	// Send in the middle of seconds: each call then begins and ends in the same second, at all servers.
	paths := []string{"/", "/cart", "/cart?item=7", "/cart/pay", "/caf%C3%A9", "/missing", "/down"}
	passed, calls, sums := map[string]int{}, 0, false
	for n := 0; n < 5 || calls < 5*len(paths); n++ { // a busy machine makes few calls in a second
		second := time.Now().Truncate(time.Second).Add(time.Second)
		time.Sleep(time.Until(second.Add(100 * time.Millisecond)))
		for i := 0; i < 40 && time.Since(second) < 600*time.Millisecond; i++ {
			path := paths[calls%len(paths)]
			name, _, _ := strings.Cut(path, "?")
			switch name {
			case "/missing", "/down":
				name = "unmatched"
			case "/caf%C3%A9":
				name = "GET /café"
			default:
				name = "GET " + name
			}
			passed[name+second.UTC().Format(" 15:04:05")]++
			calls++
			for _, s := range servers {
				resp, err := http.Get("http://" + s.addr + path)
				if err != nil {
					t.Fatal(s.name, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body) // allows reuse of the connection
				_ = resp.Body.Close()
			}
		}
		if took := time.Since(second); took > 900*time.Millisecond {
			t.Logf("calls of a second took until %v, as this machine is busy: only sums over the seconds are compared",
				took)
			sums = true
		}
	}
	for _, s := range servers { // they write their logs at the end
		for deadline := time.Now().Add(catchUp); ; time.Sleep(20 * time.Millisecond) {
			if text, err := os.ReadFile(s.log); strings.Count(string(text), "\n") >= calls {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("%s has logged %d calls of %d: %v", s.name, strings.Count(string(text), "\n"), calls, err)
			}
		}
	}
	statuses := regexp.MustCompile(`(?m)^ +\d+ calls with status \d+$`)
	want := ""
	for _, s := range servers {
		args := []string{
			"replay", "--zone=Local", "--metric-log.dir=" + filepath.Join(s.dir, "log"), // routes count first calls
			"--route=GET /{$}", "--route=GET /cart", "--route=GET /cart/pay", "--route=GET /café", s.log,
		}
		if s.format != "" {
			args = append([]string{"replay", s.format}, args[1:]...)
		}
		out, err := output(t.Context(), ".", append([]string{binary}, args...)...)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		got := map[string]int{}
		for _, row := range rowsIn(t, filepath.Join(s.dir, "log")) {
			n := row.Pass
			if s.end {
				n = row.Success
			}
			if n > 0 && row.Resource != collector.InboundTotal {
				got[strings.Replace(row.Resource, "{$}", "", 1)+row.Start.UTC().Format(" 15:04:05")] += int(n)
			}
		}
		if sums {
			compareCounts(t, s.name+": calls", overSeconds(got), overSeconds(passed))
		} else {
			compareCounts(t, s.name+": calls", got, passed)
		}
		said := strings.Join(statuses.FindAllString(string(out), -1), "\n")
		if want == "" {
			want = said
		}
		if said != want || !strings.Contains(said, "calls with status 503") {
			t.Errorf("%s:\n%s\nwant\n%s", s.name, out, want)
		}
	}
	t.Logf("%d resources in seconds, %d calls through each server", len(passed), calls)
}

// overSeconds adds up counts over keys that end with a time.
func overSeconds(counts map[string]int) map[string]int {
	sums := map[string]int{}
	for key, n := range counts {
		sums[key[:len(key)-len(" 15:04:05")]] += n
	}
	return sums
}
