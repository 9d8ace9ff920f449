package otlp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/internal/limiter"
)

// Hosts of the tests.
var (
	attacker = &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, 1)}}
	honest   = &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
)

// checkNothingHeld fails if a request still holds memory or a slot. It waits for handlers that have already responded.
func checkNothingHeld(t *testing.T, h *handler) {
	t.Helper()
	await(t, "all requests to end", func() bool { return h.bodies.requests.Held()+h.bodies.memory.Held() == 0 })
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// postAll sends n honest requests, and fails if one of them is refused.
func postAll(t *testing.T, url string, n int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: honest.DialContext}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	for i := range n {
		body := toProtobuf(ago(1_000_000+uint64(i), time.Second))
		response, err := client.Post(url, protobufType, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("honest request %d: %s", i, response.Status)
		}
	}
}

// sendHalf opens a connection from the attacking host, and sends part of a body.
func sendHalf(t *testing.T, address, headers string, length int, part []byte) {
	t.Helper()
	c, err := attacker.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n",
		tracesPath, protobufType, headers, length)
	go func() { _, _ = c.Write(part) }()
}

// An incomplete compressed body takes memory for the bytes that have arrived, and not for the decompressed ones.
func TestHalfOfACompressedBody(t *testing.T) {
	h, _ := newTestHandler(t, Options{})
	address := listenTo(t, h, time.Minute)
	bomb := packed(make([]byte, maxBody))
	for range 8 {
		sendHalf(t, address, "Content-Encoding: gzip\r\n", len(bomb), bomb[:len(bomb)-20])
	}
	await(t, "the bombs", func() bool { return h.bodies.memory.Held() > 8*(len(bomb)-minGrowth) })
	if n := h.bodies.memory.Held(); n > 8*(2*len(bomb)+minGrowth) {
		t.Errorf("%d bytes are held for %d that arrived", n, 8*len(bomb))
	}
	postAll(t, "http://"+address+tracesPath, 10)
}

// Large bodies of one host use the whole budget. Requests of another host evict them.
func TestLargeHalfBodies(t *testing.T) {
	h, _ := newTestHandler(t, Options{})
	h.bodies.memory = limiter.NewShares(1<<20, limiter.EvictOldest)
	address := listenTo(t, h, time.Minute)
	// Bodies that grow evict each other, and what remains may fit into half of the budget. Another body then fills it.
	await(t, "the budget to be used", func() bool {
		sendHalf(t, address, "", 1<<20, make([]byte, 1<<18))
		return h.bodies.memory.Held() > 1<<19
	})
	large := toProtobuf(ago(1, time.Second))
	large = bytes.Repeat(large, 1+(64<<10)/len(large)) // a honest request needs memory from the budget, too
	for range 10 {
		client := &http.Client{Transport: &http.Transport{DialContext: honest.DialContext, DisableKeepAlives: true}}
		response, err := client.Post("http://"+address+tracesPath, protobufType, bytes.NewReader(large))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatal(response.Status)
		}
	}
	if n := h.bodies.memory.Held(); n > 2<<20 {
		t.Errorf("%d bytes are held, want at most the budget of 1 MiB and one body", n)
	}
}

// Streams with headers only, or with the header of a gRPC frame, take no memory from the budget. Their number is
// bounded. At the bound, the host with the most streams loses its oldest stream.
func TestStreamsWithoutABody(t *testing.T) {
	for name, tc := range map[string]struct {
		contentType, path string
		first             []byte
	}{
		"headers only":          {protobufType, tracesPath, nil},
		"a gRPC frame's header": {grpcType, grpcMethod, binary.BigEndian.AppendUint32([]byte{0}, maxBody)},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newTestHandler(t, Options{})
			const most = 40
			h.bodies.requests = limiter.NewShares(most, limiter.EvictOldest)
			address := listenTo(t, h, time.Minute)
			ctx, cancel := context.WithCancel(t.Context())
			var streams sync.WaitGroup
			defer streams.Wait()
			defer cancel()
			var bodies []io.Closer
			for range 5 {
				protocols := new(http.Protocols)
				protocols.SetUnencryptedHTTP2(true)
				client := &http.Client{
					Transport: &http.Transport{Protocols: protocols, DialContext: attacker.DialContext},
				}
				defer client.CloseIdleConnections()
				for range 20 {
					from, to := io.Pipe()
					bodies = append(bodies, from)
					r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+tc.path, from)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Content-Type", tc.contentType)
					streams.Go(func() {
						if response, err := client.Do(r); err == nil {
							_ = response.Body.Close()
						}
					})
					streams.Go(func() { _, _ = to.Write(tc.first) })
				}
			}
			await(t, "the streams", func() bool { return h.refusals.counts["busy"].Load() >= 100-most })
			if n := h.bodies.requests.Held(); n > most {
				t.Errorf("%d requests are in progress, want at most %d", n, most)
			}
			if n := h.bodies.memory.Held(); n != 0 {
				t.Errorf("%d bytes are held, of which none has arrived", n)
			}
			postAll(t, "http://"+address+tracesPath, 10)
			for _, b := range bodies {
				_ = b.Close()
			}
		})
	}
}

// Old spans are not remembered, so they neither fill the table nor refuse requests of others.
func TestOldSpansFillNothing(t *testing.T) {
	r := receive(t, Options{MaxSpans: 1000}, second(0), time.Time{})
	for i := range 50 {
		var old []sent
		for j := range 900 {
			s := at(uint64(1+900*i+j), 0, 0)
			s.start, s.end = s.start.AddDate(-9, 0, 0), s.end.AddDate(-9, 0, 0)
			old = append(old, s)
		}
		if not := r.send(t, 1, old...); not.spans != 900 {
			t.Fatalf("%d of 900 old spans are rejected", not.spans)
		}
	}
	if n := r.seen.len(); n != 0 {
		t.Errorf("%d old spans are remembered", n)
	}
	for i := range 900 {
		r.send(t, 1, at(uint64(1+i), 0.1, 0.2))
	}
	if r.counts[counted] != 900 || r.counts[late] != 50*900 {
		t.Errorf("%+v, want 900 counted and all old ones late", r.counts)
	}
}

// The table of seen spans has the memory for its maximum, although each generation may be as large as all of them.
func TestMemoryOfSeenSpans(t *testing.T) {
	const most = 1 << 18
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := newSeen(most, second(0))
	next := uint64(0)
	for i := range 12 { // each fourth generation fills the table, in a different set
		s.turn(second(45 * float64(i)))
		for i%4 == 0 && s.fits(1) {
			next += 0x9e3779b97f4a7c15
			s.add(next)
		}
	}
	if grown := int64(heap()-before) / most; grown > 24 {
		t.Errorf("%d bytes a span, want some 20", grown)
	}
	runtime.KeepAlive(s)
}

// reader returns one chunk at each interval.
type reader struct {
	interval time.Duration
	chunk    int
	left     int
}

func (r *reader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(r.interval)
	n := min(len(p), r.chunk, r.left)
	r.left -= n
	return n, nil
}

// A body must make progress: it may take a minute, and a second more for each 16 KiB.
func TestProgressOfABody(t *testing.T) {
	for _, tc := range []struct {
		what  string
		from  reader
		want  error
		after time.Duration
	}{
		{"a byte in 25 s", reader{25 * time.Second, 1, 1000}, errSlow, 75 * time.Second},
		{"a kilobyte in a second", reader{time.Second, 1000, 1 << 20}, errSlow, 64 * time.Second},
		{"a small one within a minute", reader{5 * time.Second, 1, 11}, nil, 55 * time.Second},
		{"20 kB in a second, for five minutes", reader{time.Second, 20_000, 6_000_000}, nil, 5 * time.Minute},
	} {
		t.Run(tc.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tracesPath, nil)
				if err != nil {
					t.Fatal(err)
				}
				all := newBodies()
				b, err := all.open(r)
				if err != nil {
					t.Fatal(err)
				}
				defer b.free()
				begin := time.Now()
				if err = b.read(&tc.from, -1, false); err != tc.want {
					t.Errorf("%v, want %v", err, tc.want)
				}
				if d := time.Since(begin); d < tc.after || d > tc.after+time.Minute {
					t.Errorf("it ended after %v, want %v", d, tc.after)
				}
			})
		})
	}
}

// Stalled clients and a client that never reads delay no other client, and their connections are closed.
func TestStalledClients(t *testing.T) {
	h, _ := newTestHandler(t, Options{})
	address := listenTo(t, h, 200*time.Millisecond)
	var stalled sync.WaitGroup
	stalled.Go(func() { neverRead(t, address) })
	for range 20 {
		stalled.Go(func() {
			c, err := attacker.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 1000000\r\n\r\n%s",
				tracesPath, protobufType, make([]byte, 1000))
			response, _ := io.ReadAll(c) // until the server closes the connection
			if !strings.HasPrefix(string(response), "HTTP/1.1 408") {
				t.Errorf("%.50q", response)
			}
		})
	}
	postAll(t, "http://"+address+tracesPath, 10)
	stalled.Wait()
	checkNothingHeld(t, h)
}
