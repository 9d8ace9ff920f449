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

var attack = flag.Bool("attack", false, "attack with more")

// From more addresses than there are connections come bodies that are half sent, and again whenever one makes room. An honest client
// is served all the same.
func TestManyHostsKeepNobodyOut(t *testing.T) {
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
	var strangers sync.WaitGroup
	defer strangers.Wait()
	defer end()
	var all sync.WaitGroup
	dialing := make(chan struct{}, 64)
	all.Add(hosts)
	for i := range hosts {
		strangers.Go(func() {
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
				_, _ = c.Read(make([]byte, 1)) // until it is pushed out
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
		// All strangers may have come between it and its answer: a processor that is busy with other things takes so long.
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

// A connection comes, and another makes room for it.
func BenchmarkConnections(b *testing.B) {
	const conns = 8192
	server, _ := net.Pipe()
	for _, hosts := range []int{1, 128, conns} {
		b.Run(fmt.Sprint("hosts=", hosts), func(b *testing.B) {
			l := Listen(newDials(), Bounds{Conns: conns}).(*listener)
			come := func(i int) {
				l.admit(newConn(server, 0), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i % hosts >> 8), byte(i % hosts)}), 32))
			}
			for i := range conns {
				come(i)
			}
			for i := 0; b.Loop(); i++ {
				come(i)
			}
		})
	}
}
