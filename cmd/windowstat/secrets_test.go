package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A URL with a token, a user or a password is in no message and on no page, whatever goes wrong.
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
	for _, args := range [][]string{
		{"proxy", anyPort, "--upstream=http://" + hush + ":" + hush + "@127.0.0.1:1/"},
		{"proxy", anyPort, "--upstream=" + nobody + "/?token=" + hush},
		{"proxy", anyPort, "--upstream=http://" + hush + "@127.0.0.1:x/?token=" + hush + "#" + hush},
		{"top", "--once", "http://" + hush + "@127.0.0.1:1"},
		{"top", "--once", nobody + "/?token=" + hush},
		{"top", "--once", "ftp://" + hush + ":" + hush + "@127.0.0.1:1/#" + hush},
		{"log", "--dir=" + dir, "--from=-1h", "--label=job=a", "--label=instance=b", "--remote-write=" + refuses.URL + "/redirect?token=" + hush},
		{"log", "--dir=" + dir, "--from=-1h", "--label=job=a", "--label=instance=b", "--remote-write=ftp://" + hush + "@x/?token=" + hush},
		{"log", "--dir=" + dir, "--from=-1h", "--label=job=a", "--label=instance=b", "--remote-write=http://x:y/?token=" + hush},
		{"demo", "--duration=2s", anyPort, "--remote-write.url=" + nobody + "/?token=" + hush, "--vm.push-url=" + refuses.URL + "/?token=" + hush},
		{"demo", anyPort, "--remote-write.url=http://a:" + hush + "@x/"},
		{"demo", anyPort, "--vm.push-url=http:///?token=" + hush},
	} {
		if args[0] == "demo" && strings.Contains(args[1], "duration") {
			args = append(args, "--log.level=debug", "--web.enable-pprof")
		}
		p := launch(t, args...)
		if strings.Contains(strings.Join(args, " "), "--web.enable-pprof") {
			page := p.find(t, `metrics +(http\S+)`)
			time.Sleep(1500 * time.Millisecond) // it pushes
			base := strings.TrimSuffix(page, "/metrics")
			for _, path := range []string{"/", "/metrics", "/metrics/seconds", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
				if _, body := get(t, base+path); strings.Contains(body, hush) {
					t.Errorf("%s has the secret", path)
				}
			}
		}
		if status := p.wait(t); status == 0 && args[0] != "log" && args[0] != "demo" {
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

// Profiles are where they were asked for, and nowhere else; the telemetry of every command tells whether it is ready.
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
