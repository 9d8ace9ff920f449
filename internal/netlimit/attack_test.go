package netlimit

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"
)

var attack = flag.Bool("attack", false, "run the attack tests with more hosts and connections")

// More addresses than allowed connections send incomplete bodies, and connect again whenever they are evicted. An
// honest client is served anyway.
func TestManyHostsCannotBlockClients(t *testing.T) {
	hosts, conns := 300, 200
	if *attack {
		hosts, conns = 9500, 8192
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: Bodies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}), stall), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(Listen(l, Bounds{Conns: conns, Stall: stall})) }()
	defer server.Close()

	ctx, end := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer end()
	var all sync.WaitGroup
	dialing := make(chan struct{}, 64)
	all.Add(hosts)
	for i := range hosts {
		attackers.Go(func() {
			from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}}
			first := sync.OnceFunc(all.Done)
			for ctx.Err() == nil {
				dialing <- struct{}{}
				c, err := from.DialContext(ctx, "tcp4", l.Addr().String())
				if err == nil {
					_, _ = fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
				}
				first()
				<-dialing
				if err != nil {
					continue
				}
				over := context.AfterFunc(ctx, func() { _ = c.Close() })
				_, _ = c.Read(make([]byte, 1)) // until the connection is evicted
				over()
				_ = c.Close()
			}
		})
	}
	all.Wait()
	for i := range 5 {
		began := time.Now()
		client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + l.Addr().String())
		// All attackers may have connected between the honest client's request and its response, because a busy
		// processor takes that long. Retry.
		for again := 0; err != nil && !os.IsTimeout(err) && again < 10; again++ {
			t.Logf("honest client %d, after %v: %v", i, time.Since(began), err)
			resp, err = client.Get("http://" + l.Addr().String())
		}
		if err != nil {
			t.Errorf("honest client %d is not served: %v", i, err)
			continue
		}
		_ = resp.Body.Close()
		t.Logf("honest client %d is served after %v", i, time.Since(began))
	}
}

// BenchmarkConnections measures a new connection that evicts another one.
func BenchmarkConnections(b *testing.B) {
	const conns = 8192
	server, _ := net.Pipe()
	for _, hosts := range []int{1, 128, conns} {
		b.Run(fmt.Sprint("hosts=", hosts), func(b *testing.B) {
			l := Listen(newDials(), Bounds{Conns: conns}).(*listener)
			admit := func(i int) {
				from := netip.AddrFrom4([4]byte{10, 0, byte(i % hosts >> 8), byte(i % hosts)})
				l.admit(newConn(server, 0), netip.PrefixFrom(from, 32))
			}
			for i := range conns {
				admit(i)
			}
			for i := 0; b.Loop(); i++ {
				admit(i)
			}
		})
	}
}
