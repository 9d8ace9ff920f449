package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The token, user or password of a URL is in no message and on no page after any error.
func TestSecretsOfURLs(t *testing.T) {
	t.Parallel()
	const hush = "hunter2"
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer refuses.Close()
	const nobody = "http://127.0.0.1:1"
	dir := t.TempDir()
	p := launch(t, "demo", "--duration=1s", anyPort, "--metric-log.dir="+dir)
	p.wait(t)
	all := [][]string{
		{"proxy", anyPort, "--upstream=http://" + hush + ":" + hush + "@127.0.0.1:1/"},
		{"proxy", anyPort, "--upstream=" + nobody + "/?token=" + hush},
		{"proxy", anyPort, "--upstream=http://" + hush + "@127.0.0.1:x/?token=" + hush + "#" + hush},
		{"top", "--once", "http://" + hush + "@127.0.0.1:1"},
		{"top", "--once", nobody + "/?token=" + hush},
		{"top", "--once", "ftp://" + hush + ":" + hush + "@127.0.0.1:1/#" + hush},
		{
			"verify",
			"--new",
			"--dir=" + dir,
			"--app=demo",
			"--from=-1h",
			"--label=job=a",
			"--label=instance=b",
			"--url=" + nobody,
			"--remote-write=" + refuses.URL + "/redirect?token=" + hush,
		},
		{
			"verify",
			"--new",
			"--dir=" + dir,
			"--app=demo",
			"--from=-1h",
			"--label=job=a",
			"--label=instance=b",
			"--url=" + nobody,
			"--remote-write=ftp://" + hush + "@x/?token=" + hush,
		},
		{
			"verify",
			"--new",
			"--dir=" + dir,
			"--app=demo",
			"--from=-1h",
			"--label=job=a",
			"--label=instance=b",
			"--url=" + nobody,
			"--remote-write=http://x:y/?token=" + hush,
		},
		{
			"demo",
			"--log.level=debug",
			"--web.enable-pprof",
			anyPort,
			"--remote-write.url=" + nobody + "/?token=" + hush,
			"--vm.push-url=" + refuses.URL + "/?token=" + hush,
		},
		{"demo", anyPort, "--remote-write.url=http://a:" + hush + "@x/"},
		{"demo", anyPort, "--vm.push-url=http:///?token=" + hush},
	}
	var asking []*process // concurrently, because some of them retry
	for _, args := range all {
		asking = append(asking, launch(t, args...))
	}
	for i, p := range asking {
		args := all[i]
		if slices.Contains(args, "--web.enable-pprof") {
			base := strings.TrimSuffix(p.find(t, `metrics +(http\S+)`), "/metrics")
			p.find(t, `(?s)(err=.* err=)`) // errors of both pushes
			for _, path := range []string{
				"/", "/metrics", "/metrics/seconds", "/debug/pprof/", "/debug/pprof/cmdline",
				"/debug/pprof/goroutine?debug=2",
			} {
				if _, body := get(t, base+path); strings.Contains(body, hush) {
					t.Errorf("%s has the secret", path)
				}
			}
			p.cancel()
		}
		if status := p.wait(t); status == 0 && args[0] != "demo" {
			t.Errorf("%q: status %d:\n%s", args, status, p.output())
		}
		if out := p.output(); strings.Contains(out, hush) || out == "" {
			t.Errorf("%q:\n%s", args, out)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), hush) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A receiver may repeat a request in its body or in the text of its status, or may not speak HTTP. No message then
// contains a token, a header, a password or a part of the query.
func TestSecretsInResponses(t *testing.T) {
	t.Parallel()
	const hush = "hunter2"
	log := aLog(t)
	var config []string
	for _, text := range []string{
		"authorization: {credentials: " + hush + "}\n",
		"basic_auth: {username: reader-" + hush + ", password: " + hush + "}\nhttp_headers: {X-Key: {secrets: " +
			"[" + hush + "]}}\n",
	} {
		file := filepath.Join(t.TempDir(), "client.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		config = append(config, file)
	}
	for name, answer := range map[string]string{
		"the body": "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: " +
			"%d\r\n\r\n%s",
		"the body of a teapot":       "HTTP/1.1 418 I am\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		"a body that is no response": "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		"the status":                 "HTTP/1.1 400 %[2]q\r\nContent-Length: 0\r\n\r\n",
		"a header":                   "HTTP/1.1 400 Bad Request\r\n%[2]q\r\n\r\n",
		"no HTTP":                    "%[2]q\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := echo(t, answer)
			var asking []*process
			for _, file := range config {
				for _, args := range [][]string{
					{
						"verify", "--dir=" + log, "--app=shop", "--from=2026-01-02", "--to=2026-01-02", "--label=job=a",
						"--label=instance=b", "--url=" + at + "/?token=" + hush, "--config.file=" + file,
					},
					{"top", "--once", "--http.config.file=" + file, at},
					{
						"demo", "--rate=1", anyPort, "--log.level=debug",
						"--remote-write.url=" + at + "/?token=" + hush,
						"--remote-write.config.file=" + file,
					},
					{
						"demo", "--rate=1", anyPort, "--log.level=debug", "--vm.push-url=" + at + "/?token=" + hush,
						"--vm.push-config.file=" + file,
					},
				} {
					asking = append(asking, launch(t, args...))
				}
			}
			for i, p := range asking {
				if i%4 >= 2 && name != "a body that is no response" { // a push logs the error once and continues
					p.find(t, "(err=)")
					p.cancel()
				}
			}
			time.Sleep(2 * time.Second)
			for _, p := range asking {
				p.cancel()
			}
			for _, p := range asking {
				p.wait(t)
				if out := p.output(); strings.Contains(out, hush) {
					t.Error(out)
				}
			}
		})
	}
}

// Data that a server sends after its response is not logged. net/http would log it.
func TestSecretsAfterAResponse(t *testing.T) {
	t.Parallel()
	const hush = "hunter2"
	file := filepath.Join(t.TempDir(), "client.yml")
	if err := os.WriteFile(file, []byte("authorization: {credentials: "+hush+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := echo(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n%[2]q\r\n")
	c := exec.Command(os.Args[0], "demo", "--duration=2s", anyPort, "--rate=1", "--remote-write.url="+at,
		"--remote-write.config.file="+file)
	c.Env = append(os.Environ(), asCommand+"=1")
	if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), hush) {
		t.Errorf("%v\n%s", err, out)
	}
}

// echo returns the URL of a server that responds with the request. format receives the length and the text of the
// request.
func echo(t *testing.T, format string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				text := fmt.Sprint(r.Header.Get("Authorization"), r.Header, r.URL)
				user, password, _ := r.BasicAuth()
				text += user + password
				_, _ = io.Copy(io.Discard, r.Body)
				answer := fmt.Sprintf(format, len(text), text)
				answer, _, _ = strings.Cut(answer, "%!(EXTRA")
				_, _ = io.WriteString(c, answer)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// Profiles are served only with --web.enable-pprof. The pages of a command report its health.
func TestProfilesAndHealth(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want int
	}{{nil, http.StatusNotFound}, {[]string{"--web.enable-pprof"}, http.StatusOK}} {
		p := launch(t, append([]string{"demo", anyPort, "--rate=1"}, tc.args...)...)
		base := strings.TrimSuffix(p.find(t, `metrics +(http\S+)`), "/metrics")
		for path, want := range map[string]int{
			"/debug/pprof/": tc.want, "/debug/pprof/heap": tc.want, "/debug/pprof/cmdline": http.StatusNotFound,
			"/-/healthy": http.StatusOK, "/metrics": http.StatusOK, "/live/": http.StatusOK,
		} {
			if status, _ := get(t, base+path); status != want {
				t.Errorf("%q: %s: %d, want %d", tc.args, path, status, want)
			}
		}
		p.end(t)
	}
}
