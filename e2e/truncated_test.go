package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

// TestTruncatedImport breaks off requests to VictoriaMetrics at many positions, like the death of a process.
// VictoriaMetrics stores only whole lines. Without the parameter that a push sends, it stores the rest of a line as a
// sample with the current time.
func TestTruncatedImport(t *testing.T) {
	t.Parallel()
	s := startServer(t, "victoria", victoria)
	query := pushedQuery(t)
	second := time.Now().Unix() - 60
	for name, query := range map[string]string{"with": query, "without": ""} {
		for at := range 60 {
			truncated(t, s, query, fmt.Sprintf(`truncated{is=%q,at="%d"} 123 %d000`+"\n", name, at, second), at)
		}
	}
	await(t, s, `truncated{is="without",at="0"}`, second, time.Now().Add(catchUp))
	wrong := map[string]int{}
	for _, x := range s.query(t, `truncated[1h]`) {
		for _, v := range x.Values {
			if v.at != second*1000 || v.value != 123 {
				wrong[x.Metric["is"]]++
			}
		}
	}
	if wrong["with"] != 0 || wrong["without"] == 0 {
		t.Errorf("false samples: %v, want none with the parameter, and some without", wrong)
	}
}

// pushedQuery is the query of the URL of a push.
func pushedQuery(t *testing.T) string {
	t.Helper()
	queries := make(chan string, 100)
	l := listen(t, "127.0.0.1:0")
	serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case queries <- r.URL.RawQuery:
		default:
		}
	}), l, nil)
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := push.New(c, push.Options{
		URL: "http://" + l.Addr().String(), Format: push.VictoriaMetrics,
		Labels: map[string]string{"job": "x", "instance": "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Resource("x").Enter()
	stop := p.Start()
	query := <-queries
	if err := stop(); err != nil {
		t.Error(err)
	}
	return query
}

// truncated sends a line, first whole and then without some bytes of its end, and closes the connection.
func truncated(t *testing.T, s *server, query, line string, without int) {
	t.Helper()
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	_, _ = io.WriteString(z, strings.Repeat("whole 1 1000\n", 3)+line[:max(len(line)-without, 1)])
	_ = z.Flush() // without the end of the stream
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/import/prometheus?%s HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"+
		"Content-Length: %d\r\n\r\n%s", query, body.Len()+1000, &body)
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(catchUp))
	_, _ = io.Copy(io.Discard, conn) // wait until the line is stored
}
