package netlimit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const stall = time.Minute

// serve runs a server in a synctest bubble and returns a connection to it.
func serve(t *testing.T, h http.HandlerFunc) net.Conn {
	t.Helper()
	d := newDials()
	s := &http.Server{Handler: Bodies(h, stall), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	go s.Serve(Listen(d, Bounds{Stall: stall}))
	c := d.dial("192.0.2.1")
	t.Cleanup(func() { c.Close(); s.Close(); d.Close() })
	return c
}

// answer reads a response until the server closes the connection, and returns the status and the duration.
func answer(t *testing.T, c net.Conn) (status string, open time.Duration) {
	t.Helper()
	begin := time.Now()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	status, _, _ = strings.Cut(string(b), "\r\n")
	return status, time.Since(begin)
}

func TestIncompleteBodyTimesOut(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"read": func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the handler gets %v", err)
			}
			w.WriteHeader(http.StatusRequestTimeout)
		},
		"left":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"answered": func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1<<16)) },
		"both ways": func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = r.Body.Read(make([]byte, 4))
			time.Sleep(2 * time.Minute) // until the deadline of the read has passed
			w.Write(make([]byte, 1<<16))
		},
		// Like a transport whose server responded early.
		"background read": func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			go io.Copy(io.Discard, r.Body)
			time.Sleep(time.Second)
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusNotFound)
		},
		"panic": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		for _, head := range []string{"Content-Length: 100", "Content-Length: 10000000", "Transfer-Encoding: chunked"} {
			t.Run(name+", "+head, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := serve(t, h)
					fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n9\r\nhalf", head)
					wait := rest + time.Second // the server waits this long to avoid a reset
					switch name {
					case "read", "left", "answered": // the server reads the rest of the body before it responds
						wait += stall
					case "background read":
						wait += time.Second
					case "both ways":
						wait += 2 * time.Minute
					}
					if _, open := answer(t, c); open > wait {
						t.Errorf("the connection was open for %v", open)
					}
				})
			})
		}
	}
}

func TestSlowUploadContinues(t *testing.T) {
	for _, head := range []string{"Content-Length: 3600000", "Transfer-Encoding: chunked"} {
		synctest.Test(t, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				n, err := io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, n, err)
			})
			fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", head)
			chunk := strings.Repeat("x", 1000)
			if strings.HasPrefix(head, "T") {
				chunk = fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk)
			}
			for range 3600 {
				fmt.Fprint(c, chunk)
				time.Sleep(time.Second)
			}
			if strings.HasPrefix(head, "T") {
				fmt.Fprint(c, "0\r\n\r\n")
			}
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := io.ReadAll(r.Body); string(b) != "3600000 <nil>" {
				t.Errorf("%s", b)
			}
		})
	}
}

// The server sends an event every ten minutes, after a body or without one. The client sends nothing else and is not
// disconnected.
func TestMostlySilentStream(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Leave") == "" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		for range 6 {
			select {
			case <-time.After(10 * time.Minute):
			case <-r.Context().Done():
				t.Error("the context of the request was canceled")
				return
			}
			fmt.Fprintln(w, "event")
			_ = http.NewResponseController(w).Flush()
		}
	}
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
		"POST / HTTP/1.1\r\nHost: x\r\nX-Leave: it\r\nContent-Length: 4\r\n\r\nbody",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			c := serve(t, h)
			go io.WriteString(c, request)
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(r.Body); strings.Count(string(b), "event") != 6 || err != nil {
				t.Errorf("%q: %q, %v", request, b, err)
			}
		})
	}
}

// A hijacked connection has no deadline: it exchanges pings for ten minutes, and then idles for ten minutes.
func TestTunnelHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_, _ = io.Copy(conn, buf)
		})
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		r := bufio.NewReader(c)
		if _, err := http.ReadResponse(r, nil); err != nil {
			t.Fatal(err)
		}
		for i := range 21 {
			fmt.Fprintln(c, "ping")
			if line, err := r.ReadString('\n'); line != "ping\n" || err != nil {
				t.Fatalf("%q, %v", line, err)
			}
			if time.Sleep(30 * time.Second); i == 19 {
				time.Sleep(10 * time.Minute)
			}
		}
	})
}

// The deadline of a body does not apply to the wait for the next request.
func TestIdleConnectionHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		r := bufio.NewReader(c)
		for range 3 {
			go fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
			if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
				t.Fatal(err)
			}
			time.Sleep(119 * time.Second)
		}
		begin := time.Now()
		if _, err := r.ReadByte(); err != io.EOF || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// Abort ends the running read of a body. The client gets the response of the handler, and the connection is closed
// although the client would send more.
func TestAbort(t *testing.T) {
	for name, after := range map[string]time.Duration{"during a read": time.Second, "between two reads": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var took time.Duration
				c := serve(t, func(w http.ResponseWriter, r *http.Request) {
					begin := time.Now()
					_, err := io.ReadFull(r.Body, make([]byte, 4))
					if after > 0 {
						time.AfterFunc(after, func() { Abort(r.Body) })
					} else {
						Abort(r.Body)
					}
					if err == nil {
						_, err = r.Body.Read(make([]byte, 1))
					}
					if err == nil {
						t.Error("the read succeeds")
					}
					took = time.Since(begin)
					w.WriteHeader(http.StatusServiceUnavailable)
				})
				fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nhalf")
				status, open := answer(t, c)
				if status != "HTTP/1.1 503 Service Unavailable" || took != after || open > after+time.Second {
					t.Errorf("%s after %v, closed after %v", status, took, open)
				}
			})
		})
	}
}
