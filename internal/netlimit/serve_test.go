package netlimit

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
)

// slowToClose is a connection whose Close waits for end.
type slowToClose struct {
	net.Conn
	end <-chan struct{}
}

func (c *slowToClose) Close() error {
	<-c.end
	return c.Conn.Close()
}

func TestConnectionIsAcceptedWhileAnotherIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDials()
		l := Listen(d, Bounds{Conns: 1})
		accepted, served := make(chan net.Conn), make(chan error)
		go func() {
			served <- Serve(l, func(l net.Listener) error {
				for {
					c, err := l.Accept()
					if err != nil {
						return err
					}
					accepted <- c
				}
			})
		}()
		const attacker = "198.51.100.9"
		for range 2 { // the second connection replaces the first one, the next one is in excess
			d.dial(attacker)
			<-accepted
		}
		end := make(chan struct{})
		_, server := net.Pipe()
		d.conns <- &fromAddress{&slowToClose{server, end}, &net.TCPAddr{IP: net.ParseIP(attacker)}}
		synctest.Wait()
		d.dial("192.0.2.1")
		if from := (<-accepted).RemoteAddr().String(); from != "192.0.2.1:1" {
			t.Errorf("accepted a connection from %s", from)
		}
		close(end)
		_ = l.Close()
		<-served
	})
}

func TestShutdownOfSeveralAcceptorsSucceeds(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	served := make(chan error, 1)
	go func() { served <- Serve(l, server.Serve) }()
	response, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func TestServeReturnsErrorOfAccept(t *testing.T) {
	d := newDials()
	_ = d.Close()
	if err := Serve(d, (&http.Server{}).Serve); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
