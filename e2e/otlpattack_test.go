package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/encoding/protowire"
)

// spanAttack is an attack on the receiver of spans. Each connection runs send until ctx ends.
type spanAttack struct {
	name   string
	many   bool // each connection comes from its own host
	grpc   bool // the port for gRPC is attacked, and not the port for HTTP
	shared int  // number of connections that one connection replaces, for HTTP/2
	send   func(ctx context.Context, c net.Conn) error
}

const (
	spansPath = "/v1/traces"
	// streamsPerConn is the number of streams that an attacker opens on a connection, although the receiver allows 100.
	streamsPerConn = 250
)

var spanAttacks = []spanAttack{
	{name: "gzip bodies of 16 MiB without their end", send: halfBody("Content-Encoding: gzip\r\n", gzipped(16<<20))},
	{name: "the same, one from each host", many: true, send: halfBody("Content-Encoding: gzip\r\n", gzipped(16<<20))},
	{name: "half of a body of 1 MiB", send: halfBody("", make([]byte, 512<<10))},
	{name: "the same, one from each host", many: true, send: halfBody("", make([]byte, 512<<10))},
	{
		name:   "HTTP/2 streams of headers only",
		shared: streamsPerConn,
		send:   halfStreams("application/x-protobuf", spansPath, nil),
	},
	{
		name:   "the same, one connection from each host",
		many:   true,
		shared: streamsPerConn,
		send:   halfStreams("application/x-protobuf", spansPath, nil),
	},
	{
		name:   "gRPC streams of 5 bytes",
		grpc:   true,
		shared: streamsPerConn,
		send:   halfStreams("application/grpc", grpcPath, binary.BigEndian.AppendUint32([]byte{0}, 16<<20)),
	},
	{
		name:   "gzip bodies that decompress to 16 MiB, repeatedly",
		shared: 20,
		send:   repeated("Content-Encoding: gzip\r\n", func() []byte { return gzipped(16 << 20) }),
	},
	{name: "spans of 2017, repeatedly", shared: 20, send: repeated("", oldSpans)},
	{name: "PING frames of HTTP/2", grpc: true, shared: 250, send: pings},
	{name: "SETTINGS frames of HTTP/2", grpc: true, shared: 250, send: settings},
	{name: "reset streams of HTTP/2", grpc: true, shared: 250, send: resets},
	{name: "2,500 headers in a loop", shared: 250, send: smallHeaders},
}

// hostsAtATime is the number of hosts that attack concurrently. The receiver has a few more connections.
const hostsAtATime = 1000

const grpcPath = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// gzipped returns compressed zeros.
func gzipped(n int) []byte {
	var to bytes.Buffer
	z := gzip.NewWriter(&to)
	_, _ = z.Write(make([]byte, n))
	_ = z.Close()
	return to.Bytes()
}

// oldSpans returns a request of 10,000 spans of 2017 with random IDs.
func oldSpans() []byte {
	end := time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC)
	var scope []byte
	for range 10_000 {
		scope = putBytes(scope, 2, spanBytes(rand.Uint64(), end))
	}
	return putBytes(nil, 1, putBytes(nil, 2, scope))
}

// requestHead returns the head of a request with spans.
func requestHead(headers string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"+
		"%sContent-Length: %d\r\n\r\n",
		spansPath, headers, length)
}

// halfBody sends a request without the last bytes of its body, and then nothing.
func halfBody(headers string, body []byte) func(context.Context, net.Conn) error {
	request := append([]byte(requestHead(headers, 2*len(body))), body[:len(body)-20]...)
	return func(ctx context.Context, c net.Conn) error {
		_, err := c.Write(request)
		<-ctx.Done()
		return err
	}
}

// repeated sends complete requests one after the other.
func repeated(headers string, body func() []byte) func(context.Context, net.Conn) error {
	b := sync.OnceValue(body)
	return func(ctx context.Context, c net.Conn) error {
		request := append([]byte(requestHead(headers, len(b()))), b()...)
		go func() { _, _ = io.Copy(io.Discard, c) }()
		for ctx.Err() == nil {
			if _, err := c.Write(request); err != nil {
				return err
			}
		}
		return nil
	}
}

// halfStreams opens streams with headers and the first bytes of a body, and then sends nothing.
func halfStreams(contentType, path string, first []byte) func(context.Context, net.Conn) error {
	return func(ctx context.Context, c net.Conn) error {
		if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
			return err
		}
		f := http2.NewFramer(c, c)
		err := f.WriteSettings()
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for i := range streamsPerConn {
			block.Reset()
			for _, h := range [][2]string{
				{":method", "POST"},
				{":scheme", "http"},
				{":authority", "x"},
				{":path", path},
				{"content-type", contentType},
				{"te", "trailers"},
			} {
				_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
			}
			stream := uint32(2*i + 1)
			err = errors.Join(err,
				f.WriteHeaders(http2.HeadersFrameParam{
					StreamID:      stream,
					BlockFragment: block.Bytes(), EndHeaders: true,
				}))
			if len(first) > 0 {
				err = errors.Join(err, f.WriteData(stream, false, first))
			}
			if err != nil {
				return err
			}
		}
		go func() { _, _ = io.Copy(io.Discard, c) }()
		<-ctx.Done()
		return nil
	}
}

// spanRow is the result of an attack.
type spanRow struct {
	*spanAttack
	connections, memory int // memory in kilobytes
	sent                atomic.Int64
	posts, scraper      honest
}

func (r *spanRow) String() string {
	return fmt.Sprintf("| %s | %d | %s | %s | %v | %v |",
		r.name, r.connections, kilobytes(int(r.sent.Load()/1000)), kilobytes(r.memory), &r.posts, &r.scraper)
}

// TestOTLPAttacked attacks both ports of the receiver of spans, from one host or from many. Another host sends spans to
// the same port and scrapes throughout the attack: none of its requests fails, and each of its spans is counted once.
// WINDOWSTAT_E2E_ATTACK sets the number of connections. With -update the test writes the table of docs/otlp.md.
func TestOTLPAttacked(t *testing.T) {
	t.Parallel()
	connections := attackers
	more := os.Getenv("WINDOWSTAT_E2E_ATTACK")
	if more != "" {
		n, err := strconv.Atoi(more)
		if err != nil {
			t.Fatal(err)
		}
		connections = n
	}
	binary := buildWindowstat(t)
	var rows []*spanRow
	for i := range spanAttacks {
		a := &spanAttacks[i]
		t.Run(a.name, func(t *testing.T) { rows = append(rows, a.run(t, binary, connections)) })
	}
	if *update && more != "" && len(rows) == len(spanAttacks) {
		table := fmt.Sprintf("On %d processors, shared with the attackers, with %s:\n\n",
			runtime.NumCPU(), runtime.Version()) +
			"| attack | connections | sent | memory at most | posts of another host: median, worst, failed | its " +
			"scrapes: the same |\n|---|---|---|---|---|---|\n"
		for _, r := range rows {
			table += r.String() + "\n"
		}
		replaceBetween(t, "../docs/otlp.md", "<!-- attacks -->\n", "<!-- /attacks -->", table)
	}
}

func (a *spanAttack) run(t *testing.T, binary string, connections int) *spanRow {
	t.Helper()
	o := newOTLPReceiver(t)
	o.start(t, binary)
	t.Cleanup(func() {
		_ = o.process.Process.Kill()
		_ = o.process.Wait()
	})
	if a.many {
		connections = min(connections, hostsAtATime)
	}
	r := &spanRow{spanAttack: a, connections: max(20, connections/max(1, a.shared))}
	to := o.http
	if a.grpc {
		to = o.grpc
	}
	scraper, posts := observe(t, "http://"+o.pages+metricsPath, ""), observe(t, "http://"+to+spansPath, "")
	attacking, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for i := range r.connections {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, 1)}}
		if a.many {
			d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}
		}
		all.Go(func() { a.attack(attacking, d, to, &r.sent) })
	}
	time.Sleep(8 * time.Second)
	r.memory = held(t, "", o.process.Process.Pid).most
	stop()
	all.Wait()
	r.scraper, r.posts = scraper(), posts()
	t.Log(r)
	if r.scraper.Failed+r.posts.Failed > 0 {
		t.Errorf("honest requests failed: %s %s", r.scraper.Why, r.posts.Why)
	}
	response, err := http.Get("http://" + o.pages + metricsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	m := countedSpans.FindSubmatch(page)
	if err != nil || m == nil || string(m[1]) != strconv.Itoa(len(r.posts.Took)-r.posts.Failed) {
		t.Errorf("%v: %s spans are counted, want %d", err, m, len(r.posts.Took)-r.posts.Failed)
	}
	return r
}

var countedSpans = regexp.MustCompile(`(?m)^windowstat_otlp_spans_total\{result="counted"\} (\d+)$`)

// attack runs one connection, and opens it again if the receiver closes it. Connections from many hosts are opened only
// once. If they were reopened again and again, they would evict new connections of every host before their first byte.
func (a *spanAttack) attack(ctx context.Context, d net.Dialer, to string, sent *atomic.Int64) {
	for ctx.Err() == nil {
		c, err := d.DialContext(ctx, "tcp", to)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		end := context.AfterFunc(ctx, func() { _ = c.Close() })
		err = a.send(ctx, &countingConn{c, sent})
		end()
		_ = c.Close()
		if a.many {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// countingConn counts the bytes that it writes.
type countingConn struct {
	net.Conn
	n *atomic.Int64
}

func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// putBytes appends a field of protobuf.
func putBytes(b []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}

// spanBytes returns a span with an ID, as protobuf.
func spanBytes(id uint64, end time.Time) []byte {
	b := binary.BigEndian.AppendUint64(nil, id|1)
	s := putBytes(putBytes(nil, 1, append([]byte("trace-id"), b...)), 2, b)
	s = append(putBytes(s, 5, []byte("process orders")), 0x30, 5) // a consumer
	s = binary.LittleEndian.AppendUint64(append(s, 0x39), uint64(end.Add(-time.Millisecond).UnixNano()))
	return binary.LittleEndian.AppendUint64(append(s, 0x41), uint64(end.UnixNano()))
}

// postSpan sends a new span from another host.
func postSpan(url string) (status int, err error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := http.Client{
		Timeout:   20 * time.Second,
		Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true},
	}
	body := putBytes(nil, 1, putBytes(nil, 2, putBytes(nil, 2, spanBytes(rand.Uint64(), time.Now()))))
	response, err := client.Post(url, "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
