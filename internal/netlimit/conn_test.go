package netlimit

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestUnreadWriteTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := net.Pipe()
		c := Conn(server, time.Minute)
		begin := time.Now()
		if n, err := c.Write(make([]byte, 10)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
		if d := time.Since(begin); d != time.Minute {
			t.Errorf("after %v", d)
		}
	})
}

// The client reads for an hour at 1 kB/s. The server pauses for ten minutes and then sends more.
func TestSlowDownloadContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := Conn(server, time.Minute)
		sent := bytes.Repeat([]byte("0123456789abcdef"), 3600*1000/16)
		go func() {
			for range 2 {
				if n, err := c.Write(sent); n != len(sent) || err != nil {
					t.Errorf("%d, %v", n, err)
				}
				time.Sleep(10 * time.Minute)
			}
			c.Close()
		}()
		var got []byte
		for b := make([]byte, 1000); ; time.Sleep(time.Second) {
			n, err := client.Read(b)
			if got = append(got, b[:n]...); err == io.EOF {
				break
			}
		}
		if !bytes.Equal(got, append(sent, sent...)) {
			t.Errorf("%d bytes arrived", len(got))
		}
	})
}

func TestCallersDeadlineApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := net.Pipe()
		c := Conn(server, time.Minute)
		write := func(set func(time.Time) error, at time.Duration) time.Duration {
			begin := time.Now()
			if err := set(begin.Add(at)); err != nil {
				t.Error(err)
			}
			if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			return time.Since(begin)
		}
		for at, want := range map[time.Duration]time.Duration{
			time.Second: time.Second, -time.Second: 0, time.Hour: time.Minute,
		} {
			if got := write(c.SetWriteDeadline, at); got != want {
				t.Errorf("write deadline in %v: returned after %v", at, got)
			}
			if got := write(c.SetDeadline, at); got != want {
				t.Errorf("deadline in %v: returned after %v", at, got)
			}
		}
		go func() { // a deadline also applies to a write in progress
			time.Sleep(time.Second)
			_ = c.SetWriteDeadline(time.Now())
		}()
		begin := time.Now()
		_ = c.SetWriteDeadline(time.Time{})
		if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// tcp connects a client and a server. The client has small buffers that fill up soon.
func tcp(t *testing.T) (client *net.TCPConn, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	limited := Listen(l, Bounds{Stall: 200 * time.Millisecond})
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client = dialed.(*net.TCPConn)
	_ = client.SetReadBuffer(1 << 14)
	if server, err = limited.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// A connection has the methods that other packages call: raw control, half-close and addresses.
func TestTCPConnectionMethods(t *testing.T) {
	client, server := tcp(t)
	raw, err := server.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(uintptr) {}); err != nil {
		t.Error(err)
	}
	if server.RemoteAddr().String() != client.LocalAddr().String() ||
		server.LocalAddr().String() != client.RemoteAddr().String() {
		t.Error("wrong addresses")
	}
	if err := server.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v, want EOF", err)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := server.Read(make([]byte, 9)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	_, pipe := net.Pipe()
	if _, err := newConn(pipe, 0).SyscallConn(); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if err := newConn(pipe, 0).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// A client that stops reading is disconnected and loses the data in the send buffer: it gets a reset, not megabytes and
// an EOF.
func TestSlowReaderIsReset(t *testing.T) {
	client, server := tcp(t)
	var err error
	for err == nil {
		_, err = server.Write(make([]byte, 1<<20))
	}
	server.Close()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, client); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v, want a reset", err)
	}
}

// A deadline that the caller sets causes no reset.
func TestCallersDeadlineCausesNoReset(t *testing.T) {
	client, server := tcp(t)
	_, err := server.Write([]byte("x")) // succeeds before the deadline, even on a slow machine
	_ = server.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	for err == nil {
		_, err = server.Write(make([]byte, 1<<20))
	}
	server.Close()
	if n, err := io.Copy(io.Discard, client); n == 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
