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

// guesses are the responses to random passwords.
type guesses struct {
	statuses [600]atomic.Int64
	stop     func() // ends those who guess
}

// compared is how many passwords were compared and found wrong.
func (g *guesses) compared() int64 { return g.statuses[http.StatusUnauthorized].Load() }

// refused is how many were not compared, as too many of their host were waiting for that.
func (g *guesses) refused() int64 { return g.statuses[http.StatusTooManyRequests].Load() }

// guess tries random passwords of a user on connections of hosts, until it is stopped.
func guess(t *testing.T, address string, connections, hosts int) *guesses {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	g := &guesses{stop: func() { cancel(); all.Wait() }}
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
						if g.statuses[resp.StatusCode].Add(1); resp.StatusCode == http.StatusTooManyRequests {
							time.Sleep(50 * time.Millisecond) // or guessing takes the processors that it has in common with who is not to be held up
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

// ask requests a page from a host with a password.
func ask(t *testing.T, from, url, password string) (status int) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := http.Client{Timeout: maxWait, Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
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
// needs none: of many hosts nobody waits until all have been compared once, as a turn would take. That is counted in guesses, as seconds
// say more of the machine. A password that is changed meanwhile holds at once.
func TestWrongPasswordsHoldUpNobody(t *testing.T) {
	const connections = 240
	for _, hosts := range []int{1, connections} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "web.yml")
			writeWebConfig(t, file, "secret")
			p := launch(t, "demo", anyPort, "--rate=1", "--web.config.file="+file)
			page := p.find(t, `metrics +(http\S+)`)
			base := strings.TrimSuffix(page, "/metrics")
			if status := ask(t, "127.0.0.1", page, "secret"); status != http.StatusOK {
				t.Fatalf("before anybody guesses, status %d", status)
			}
			g := guess(t, strings.TrimPrefix(base, "http://"), connections, hosts)
			for deadline := time.Now().Add(maxWait); g.compared() < 3 || hosts == 1 && g.refused() == 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("nobody guesses")
				}
			}
			most := map[string]int64{}
			expect := func(what string, want int, from, url, password string) {
				t.Helper()
				before := g.compared()
				status := ask(t, from, url, password)
				compared := g.compared() - before
				if status != want || hosts == connections && compared > connections/2 { // each host has one that is to be compared
					t.Errorf("%s: %s is %d after %d guesses, want %d", what, url, status, compared, want)
				}
				most[what] = max(most[what], compared)
			}
			for range 20 {
				expect("the scraper", http.StatusOK, "127.0.0.1", page, "secret")
				expect("a probe", http.StatusOK, "127.0.0.2", base+"/-/healthy", "")
				expect("a probe", http.StatusOK, "127.0.0.2", base+"/-/ready", "")
				time.Sleep(50 * time.Millisecond)
			}
			if hosts == 1 { // an attack of many is waited for
				writeWebConfig(t, file, "changed")
				expect("a changed password", http.StatusOK, "127.0.0.1", page, "changed")
				expect("one that was right", http.StatusUnauthorized, "127.0.0.1", page, "secret")
			}
			g.stop()
			t.Logf("guesses that were waited for: %v; of all %d were refused with 401, %d with 429", most, g.compared(), g.refused())
			if g.statuses[http.StatusOK].Load() > 0 || (g.refused() > 0) != (hosts == 1) {
				t.Errorf("of the guesses %d were refused with 401, %d with 429, and %d were right", g.compared(), g.refused(), g.statuses[http.StatusOK].Load())
			}
			p.end(t)
		})
	}
}
