package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// guesses counts the responses to random passwords.
type guesses struct {
	statuses [600]atomic.Int64
	stop     func() // stops guessing
}

// compared returns the number of passwords that were compared and wrong.
func (g *guesses) compared() int64 { return g.statuses[http.StatusUnauthorized].Load() }

// refused returns the number of passwords that were not compared, because too many of their host were waiting.
func (g *guesses) refused() int64 { return g.statuses[http.StatusTooManyRequests].Load() }

// guess sends random passwords on connections of several hosts until stop is called.
func guess(t *testing.T, address string, connections, hosts int) *guesses {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	g := &guesses{stop: func() { cancel(); all.Wait() }}
	for i := range connections {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%hosts))}}
		all.Go(func() {
			for ctx.Err() == nil { // reopen a closed connection
				c, err := dialer.DialContext(ctx, "tcp", address)
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { c.Close() })
				for r := bufio.NewReader(c); err == nil; {
					authorization := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "admin:%d", rand.Int64()))
					fmt.Fprintf(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\n\r\n", authorization)
					var resp *http.Response
					if resp, err = http.ReadResponse(r, nil); err == nil {
						_, err = io.Copy(io.Discard, resp.Body)
						if g.statuses[resp.StatusCode].Add(1); resp.StatusCode == http.StatusTooManyRequests {
							time.Sleep(50 * time.Millisecond) // leave processors for other clients on the same machine
						}
					}
				}
				stop()
				c.Close()
			}
		})
	}
	return g
}

// ask requests a page with a password from a host, and returns the status.
func ask(t *testing.T, from, url, password string) (status int) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := http.Client{
		Timeout:   maxWait,
		Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true},
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		r.SetBasicAuth("admin", password)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Logf("%s: %v", url, err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// writeWebConfig writes a file with the password of a user, like an operator. A short run uses a lower cost, because
// with the race detector and busy processors a comparison takes seconds.
func writeWebConfig(t *testing.T, file, password string) {
	t.Helper()
	cost := bcrypt.DefaultCost
	if testing.Short() {
		cost -= 4
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "basic_auth_users: {admin: %s}\n", hash), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Random passwords on 240 connections, of one host or of many, delay neither clients with the right password nor probes
// without one. With many hosts, a client waits for fewer comparisons than one for each host. The test counts
// comparisons and not seconds, because seconds depend on the machine. A changed password takes effect immediately.
func TestWrongPasswordsDelayNoClient(t *testing.T) {
	const connections = 240
	for _, hosts := range []int{1, connections} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "web.yml")
			writeWebConfig(t, file, "secret")
			p := launch(t, "demo", anyPort, "--rate=1", "--web.config.file="+file)
			page := p.find(t, `metrics +(http\S+)`)
			base := strings.TrimSuffix(page, "/metrics")
			if status := ask(t, "127.0.0.1", page, "secret"); status != http.StatusOK {
				t.Fatalf("before the guesses, status %d", status)
			}
			g := guess(t, strings.TrimPrefix(base, "http://"), connections, hosts)
			waiting := func() bool { return g.compared() < 3 || hosts == 1 && g.refused() == 0 }
			for deadline := time.Now().Add(maxWait); waiting(); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("no guesses")
				}
			}
			highest := map[string]int64{}
			expect := func(what string, want int, from, url, password string) {
				t.Helper()
				before := g.compared()
				status := ask(t, from, url, password)
				compared := g.compared() - before
				if status != want ||
					hosts == connections && compared > connections/2 { // each host has a waiting comparison
					t.Errorf("%s: %s is %d after %d guesses, want %d", what, url, status, compared, want)
				}
				highest[what] = max(highest[what], compared)
			}
			for range 20 {
				expect("the scraper", http.StatusOK, "127.0.0.1", page, "secret")
				expect("a probe", http.StatusOK, "127.0.0.2", base+"/-/healthy", "")
				expect("a probe", http.StatusOK, "127.0.0.2", base+"/-/ready", "")
				time.Sleep(50 * time.Millisecond)
			}
			if hosts == 1 { // with many hosts, the new password waits for its first comparison
				writeWebConfig(t, file, "changed")
				for deadline := time.Now().Add(maxWait); ask(t, "127.0.0.1", page, "secret") == http.StatusOK; {
					if time.Now().After(deadline) {
						t.Fatal("the change of the file has no effect")
					}
				}
				expect("a changed password", http.StatusOK, "127.0.0.1", page, "changed")
				expect("one that was right", http.StatusUnauthorized, "127.0.0.1", page, "secret")
			}
			g.stop()
			t.Logf("comparisons during a request: %v; guesses refused with 401: %d, with 429: %d", highest,
				g.compared(), g.refused())
			if g.statuses[http.StatusOK].Load() > 0 || (g.refused() > 0) != (hosts == 1) {
				t.Errorf("guesses refused with 401: %d, with 429: %d, admitted: %d", g.compared(), g.refused(),
					g.statuses[http.StatusOK].Load())
			}
			p.end(t)
		})
	}
}
