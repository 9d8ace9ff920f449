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

// guessers try random passwords of a user on connections of hosts, until they are stopped. They count the responses by status.
func guess(t *testing.T, address string, connections, hosts int) (stop func() (unauthorized, tooMany int64)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var statuses [600]atomic.Int64
	for i := range connections {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%hosts))}}
		all.Go(func() {
			for ctx.Err() == nil { // one that is closed is opened again
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
						statuses[resp.StatusCode].Add(1)
					}
				}
				stop()
				c.Close()
			}
		})
	}
	return func() (unauthorized, tooMany int64) {
		cancel()
		all.Wait()
		if statuses[http.StatusOK].Load() > 0 {
			t.Error("a guess was right")
		}
		return statuses[http.StatusUnauthorized].Load(), statuses[http.StatusTooManyRequests].Load()
	}
}

// ask requests a page from a host with a password, as a scraper that gives up after ten seconds.
func ask(t *testing.T, from, url, password string) (status int, took time.Duration) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		r.SetBasicAuth("admin", password)
	}
	began := time.Now()
	resp, err := client.Do(r)
	if err != nil {
		t.Logf("%s: %v", url, err)
		return 0, time.Since(began)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, time.Since(began)
}

// writeWebConfig writes a file with the password of a user, as an operator does it. In a short run, as with the race detector, which
// makes a comparison take seconds where others use the processors too, the password has less work.
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

// Random passwords on 240 connections, of one host or of many, keep out nobody who knows the right one, nor a probe, which
// needs none. A password that is changed meanwhile holds at once.
func TestWrongPasswordsHoldUpNobody(t *testing.T) {
	for _, hosts := range []int{1, 240} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "web.yml")
			writeWebConfig(t, file, "secret")
			p := launch(t, "demo", anyPort, "--rate=1", "--web.config.file="+file)
			page := p.find(t, `metrics +(http\S+)`)
			base := strings.TrimSuffix(page, "/metrics")
			expect := func(what string, want int, from, url, password string) time.Duration {
				t.Helper()
				status, took := ask(t, from, url, password)
				if status != want {
					t.Errorf("%s: %s is %d after %v, want %d", what, url, status, took, want)
				}
				return took
			}
			expect("before", http.StatusOK, "127.0.0.1", page, "secret")
			stop := guess(t, strings.TrimPrefix(base, "http://"), 240, hosts)
			time.Sleep(500 * time.Millisecond)
			var slowest, probed time.Duration
			for range 20 {
				slowest = max(slowest, expect("the scraper", http.StatusOK, "127.0.0.1", page, "secret"))
				probed = max(probed, expect("a probe", http.StatusOK, "127.0.0.2", base+"/-/healthy", ""), expect("a probe", http.StatusOK, "127.0.0.2", base+"/-/ready", ""))
				time.Sleep(50 * time.Millisecond)
			}
			if hosts == 1 { // an attack of many is waited for
				writeWebConfig(t, file, "changed")
				expect("a changed password", http.StatusOK, "127.0.0.1", page, "changed")
				expect("one that was right", http.StatusUnauthorized, "127.0.0.1", page, "secret")
			}
			unauthorized, tooMany := stop()
			t.Logf("the scraper waited for %v at most, a probe for %v; of the guesses %d were refused with 401, %d with 429", slowest, probed, unauthorized, tooMany)
			if unauthorized == 0 || (tooMany > 0) != (hosts == 1) {
				t.Errorf("of the guesses %d were refused with 401, %d with 429", unauthorized, tooMany)
			}
			p.end(t)
		})
	}
}
