//go:build fleet

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// spanLoad is a load of spans with ten attributes, spread over every millisecond. The spans arrive in batches, some
// seconds after their end.
type spanLoad struct {
	rate    int // a second
	seconds int
	delays  []time.Duration // of the batches, in turn

	mu   sync.Mutex
	sent countsBySecond // in the columns pass and complete, by resource
	n    int
}

// spansOfBatch is the default maximum number of spans that an SDK sends in a batch.
const spansOfBatch = 512

// spanAttributes holds the attributes of a Go server's span, except the route.
var spanAttributes = map[string]any{
	"http.request.method": "GET", "http.response.status_code": 200, "url.scheme": "http", "url.path": "/users/12345",
	"server.address": "shop.example.com",
	"server.port":    8080, "network.protocol.version": "1.1", "user_agent.original": "Mozilla/5.0 (X11; Linux x86_64)",
	"client.address": "10.0.0.7",
}

func putAttribute(b []byte, number protowire.Number, key string, v any) []byte {
	var value []byte
	switch v := v.(type) {
	case string:
		value = putBytes(nil, 1, []byte(v))
	case int:
		value = protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(v))
	}
	return putBytes(b, number, putBytes(putBytes(nil, 1, []byte(key)), 2, value))
}

// batch encodes and counts spans. The first span ended at the given time.
func (l *spanLoad) batch(first int, from time.Time) []byte {
	var common []byte
	for key, v := range spanAttributes {
		common = putAttribute(common, 9, key, v)
	}
	scope := putBytes(nil, 1, putBytes(nil, 1, []byte("e2e")))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := first; i < first+spansOfBatch; i++ {
		end := from.Add(time.Duration(i-first) * time.Second / time.Duration(l.rate))
		start := end.Add(-time.Duration(i%200) * time.Millisecond)
		route := fmt.Sprintf("/users/{id}/%d", i%20)
		id := binary.BigEndian.AppendUint64(nil, uint64(i+1))
		s := putBytes(putBytes(nil, 1, append([]byte("trace-id"), id...)), 2, id)
		s = putBytes(s, 5, []byte("GET "+route))
		s = protowire.AppendVarint(protowire.AppendTag(s, 6, protowire.VarintType), 2)
		s = protowire.AppendFixed64(protowire.AppendTag(s, 7, protowire.Fixed64Type), uint64(start.UnixNano()))
		s = protowire.AppendFixed64(protowire.AppendTag(s, 8, protowire.Fixed64Type), uint64(end.UnixNano()))
		s = putAttribute(append(s, common...), 9, "http.route", route)
		scope = putBytes(scope, 2, s)
		l.sent[fmt.Sprint("GET ", route, "|pass|", start.Unix())]++
		l.sent[fmt.Sprint("GET ", route, "|complete|", end.Unix())]++
		l.n++
	}
	of := putBytes(nil, 1, putAttribute(nil, 1, "service.name", "shop"))
	return putBytes(nil, 1, putBytes(of, 2, scope))
}

// run sends the spans of the seconds from now on, each batch some time after its end.
func (l *spanLoad) run(t *testing.T, url string) {
	t.Helper()
	l.sent = countsBySecond{}
	begin := time.Now()
	every := time.Second * spansOfBatch / time.Duration(l.rate)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	work := make(chan int)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for i := range work {
				from := begin.Add(time.Duration(i)*every - l.delays[i%len(l.delays)])
				body := l.batch(i*spansOfBatch, from)
				r, err := client.Post(url, "application/x-protobuf", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					continue
				}
				_ = r.Body.Close()
				if r.StatusCode != http.StatusOK {
					t.Error(r.Status)
				}
			}
		})
	}
	for i := range l.seconds * l.rate / spansOfBatch {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * every)))
		work <- i
	}
	close(work)
	senders.Wait()
	t.Logf("%d spans in %v", l.n, time.Since(begin).Round(10*time.Millisecond))
}

// processorTime returns the processor time and the peak memory of a process.
func processorTime(t *testing.T, pid int) (used time.Duration, memory string) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skip(err)
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	for _, f := range fields[11:13] { // in ticks of 10 ms
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		used += time.Duration(n) * 10 * time.Millisecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, memory, _ = strings.Cut(string(status), "VmHWM:")
	memory, _, _ = strings.Cut(memory, "\n")
	return used, strings.TrimSpace(memory)
}

// TestSpansRate sends 30,000 spans a second, 3, 8 and 13 seconds after their end. No span is lost, and each counts in
// its second.
func TestSpansRate(t *testing.T) {
	t.Parallel()
	o := newOTLPReceiver(t)
	o.start(t, buildWindowstat(t), "--service=shop")
	l := spanLoad{
		rate: 30_000, seconds: 15,
		delays: []time.Duration{3 * time.Second, 8 * time.Second, 13 * time.Second},
	}
	l.run(t, "http://"+o.http+"/v1/traces")
	page := o.sealed(t, l.sent)
	used, memory := processorTime(t, o.process.Process.Pid)
	compareSeconds(t, "30,000 spans a second", readSeconds(t, page, "pass", "complete"), l.sent)
	t.Logf("%v of processor time in all, %.2f µs a span; %s at most", used,
		float64(used.Microseconds())/float64(l.n), memory)
}
