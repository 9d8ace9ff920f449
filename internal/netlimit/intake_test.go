package netlimit

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// flood writes a message in a loop until the connection is closed.
func flood(c net.Conn, message []byte) {
	all := bytes.Repeat(message, 1000)
	for {
		if _, err := c.Write(all); err != nil {
			return
		}
	}
}

// open connects from an address and returns both ends.
func open(l net.Listener, from string) (client net.Conn, server *conn) {
	d, dialed := l.(*listener).Listener.(*dials), make(chan net.Conn)
	go func() { dialed <- d.dial(from) }()
	server = l.(*listener).accept(<-d.conns)
	return <-dialed, server
}

// read reads a connection and returns a function that returns the number of bytes so far.
func read(c net.Conn) (total func() int) {
	n := 0
	go func() {
		for b := make([]byte, 4096); ; {
			m, err := c.Read(b)
			n += m
			if err != nil {
				return
			}
		}
	}()
	return func() int { synctest.Wait(); return n }
}

var ping = append([]byte{0, 0, 8, 6, 0, 0, 0, 0, 0}, make([]byte, 8)...)

// 256 connections flood the server: with requests or encrypted frames under LimitBytes, with frames of HTTP/2 under
// LimitFrames. They are read at the limited rate. A connection that sends a request each second is read at once.
func TestFloodIsReadSlowly(t *testing.T) {
	settings, reset := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, []byte{0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8}
	empty := []byte{0, 0, 0, 0, 0, 0, 0, 0, 1} // a DATA frame
	for name, x := range map[string]struct {
		kind          Intake
		begin, repeat []byte
	}{
		"bytes":    {LimitBytes, nil, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")},
		"ping":     {LimitFrames, preface, ping},
		"settings": {LimitFrames, preface, settings},
		"reset":    {LimitFrames, preface, reset},
		"empty":    {LimitFrames, preface, empty},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const conns = 256
				l := Listen(newDials(), Bounds{Conns: conns, Intake: x.kind})
				var totals []func() int
				for range conns - 1 {
					client, server := open(l, "198.51.100.9")
					defer server.Close() //nolint:errcheck // of a pipe
					defer client.Close() //nolint:errcheck // of a pipe
					totals = append(totals, read(server))
					go func() {
						_, _ = client.Write(x.begin)
						flood(client, x.repeat)
					}()
				}
				client, server := open(l, "198.51.100.9")
				defer server.Close() //nolint:errcheck // of a pipe
				defer client.Close() //nolint:errcheck // of a pipe
				mine := read(server)
				time.Sleep(time.Second)
				const seconds = 60
				for i := range seconds {
					begin := append(x.begin[:len(x.begin):len(x.begin)], make([]byte, 1000)...)
					if _, err := client.Write(begin); err != nil {
						t.Fatal(err)
					}
					if want := (i + 1) * (1000 + len(x.begin)); mine() != want {
						t.Fatalf("second %d: %d bytes were read at once, want %d", i, mine(), want)
					}
					time.Sleep(time.Second)
				}
				sum := 0
				for _, total := range totals {
					sum += total()
				}
				const most = 2*sharedRate*(seconds+1) + sharedBurst + conns*(ownBurst+4096)
				if sum > most || sum < sharedRate*seconds {
					t.Errorf("%d bytes were read, want at most %d", sum, most)
				}
			})
		})
	}
}

// Bodies are not limited under LimitFrames: those of HTTP/1.1, and DATA frames.
func TestBodiesAreNotLimited(t *testing.T) {
	data := append([]byte{0, 0x40, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 1<<14)...)
	for name, begin := range map[string][]byte{
		"HTTP/1.1": []byte("POST / HTTP/1.1\r\n\r\n"),
		"HTTP/2":   preface,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := Listen(newDials(), Bounds{Conns: 10, Intake: LimitFrames})
				client, server := open(l, "192.0.2.1")
				defer client.Close() //nolint:errcheck // of a pipe
				total := read(server)
				const n = 1000
				started := time.Now()
				_, _ = client.Write(begin)
				for range n {
					if _, err := client.Write(data); err != nil {
						t.Fatal(err)
					}
				}
				if got, want := total(), len(begin)+n*len(data); got != want ||
					time.Since(started) > 10*time.Millisecond {
					t.Errorf("%d bytes after %v, want %d", got, time.Since(started), want)
				}
			})
		})
	}
}

// A wait ends at the read deadline, when the server interrupts a read, and when the connection is closed.
func TestWaitsEnd(t *testing.T) {
	for name, end := range map[string]func(c *conn) error{
		"deadline":    func(c *conn) error { return c.SetReadDeadline(time.Now().Add(time.Second)) },
		"interrupted": func(c *conn) error { return c.SetReadDeadline(time.Unix(1, 0)) },
		"closed":      func(c *conn) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := Listen(newDials(), Bounds{Conns: 10, Intake: LimitBytes})
				client, server := open(l, "192.0.2.1")
				defer client.Close() //nolint:errcheck // of a pipe
				server.reader.until.Store(int64(time.Since(epoch()) + time.Hour))
				result := make(chan error)
				started := time.Now()
				go func() {
					_, err := server.Read(make([]byte, 100))
					result <- err
				}()
				synctest.Wait()
				if err := end(server); err != nil {
					t.Fatal(err)
				}
				err, want := <-result, error(os.ErrDeadlineExceeded)
				if name == "closed" {
					want = io.ErrClosedPipe
				}
				if !errors.Is(err, want) || time.Since(started) > time.Second {
					t.Errorf("%v after %v", err, time.Since(started))
				}
			})
		})
	}
}

// Frames are found wherever the bytes are split.
func TestFramesAreCounted(t *testing.T) {
	var stream []byte
	stream = append(stream, preface...)
	stream = append(stream, ping...)
	stream = append(stream, 0, 0, 100, 0, 0, 0, 0, 0, 1)
	stream = append(stream, make([]byte, 100)...)
	stream = append(stream, ping...)
	for size := range len(stream) {
		var f frames
		n := 0
		for rest := stream; len(rest) > 0; {
			m := min(size+1, len(rest))
			n += f.count(rest[:m])
			rest = rest[m:]
		}
		if n != len(stream)-100 {
			t.Errorf("in parts of %d bytes: %d, want %d", size+1, n, len(stream)-100)
		}
	}
	var f frames
	if n := f.count([]byte("PRI /")) + f.count(ping); n != 0 {
		t.Errorf("%d bytes of HTTP/1.1 are counted", n)
	}
}

// Two hundred hosts reconnect in a loop. Their connections replace each other at a limited rate, and a new host is
// accepted at any time.
func TestReconnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := evicted(Bounds{Conns: 256})
		accepted := 0
		const seconds, perSecond = 10, 5000
		for i := range seconds * perSecond {
			from := net.IPv4(198, 51, 100, byte(i%200)).String()
			if accept(t, l, from) != nil {
				accepted++
			}
			if i%perSecond == 0 {
				if accept(t, l, net.IPv4(192, 0, 2, byte(i/perSecond)).String()) == nil {
					t.Error("a host without a connection was refused")
				}
			}
			time.Sleep(time.Second / perSecond)
		}
		if most := 256 + 64*(seconds+3); accepted > most {
			t.Errorf("%d of %d connections were accepted, want at most %d", accepted, seconds*perSecond, most)
		}
	})
}
