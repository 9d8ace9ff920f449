package e2e

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
)

// headerSenders is the number of connections that send the maximum of headers.
const headerSenders = 200

// tinyHeaders returns headers with a total of size bytes that use as much memory as possible: each has its own name,
// and no value.
func tinyHeaders(size int) string {
	var b strings.Builder
	for i := int64(36 * 36); b.Len()+len("zzz:\r\n") <= size; i++ {
		b.WriteString(strconv.FormatInt(i, 36) + ":\r\n")
	}
	return b.String()
}

// Two hundred requests with the maximum of headers use half a megabyte each, while the proxy waits for the service and
// the pages stream. When 128 KiB were allowed, each used 4.4 MB of the proxy and 2.3 MB of the pages.
func TestHeadersTakeLittleMemory(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, headerSenders)
	up := accept(t, func(c net.Conn) { // never respond
		if _, err := readMessage(bufio.NewReader(c), func() {}); err == nil {
			arrived <- struct{}{}
		}
		_, _ = io.Copy(io.Discard, c)
	})
	for path, most := range map[string]int{"/a": 250, "/live/stream": 150} { // megabytes
		front, page, process := startWindowstatProxy(t, up, "--proxy.upstream-timeout=5m")
		to := map[string]string{"/a": front, "/live/stream": page}[path]
		before := held(t, page, process)
		request := func(size int) string {
			return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + tinyHeaders(size) +
				"\r\n"
		}
		// A request that is not refused reaches the service, or begins to stream.
		refused := func(size int) bool {
			t.Helper()
			c, err := net.Dial("tcp", to)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, request(size)); err != nil {
				t.Fatal(err)
			}
			status := make(chan string, 1)
			go func() {
				line, _ := bufio.NewReader(c).ReadString('\n')
				status <- line
			}()
			select {
			case line := <-status:
				return strings.HasPrefix(line, "HTTP/1.1 431 ")
			case <-arrived:
				return false
			}
		}
		if !refused(20 << 10) {
			t.Errorf("%s with more headers is not refused", path)
		}
		size := 16<<10 - 100
		for refused(size) { // since Go 1.27 the number of headers is limited, too
			size /= 2
		}
		allowed := request(size)
		for range headerSenders {
			c, err := net.Dial("tcp", to)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, allowed); err != nil {
				t.Fatal(err)
			}
			if to == front {
				<-arrived
			} else if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		after := held(t, page, process)
		t.Logf("%d × %d bytes sent to %s: %v, before %v", headerSenders, len(allowed), path, after, before)
		if more := (after.kilobytes - before.kilobytes) / 1000; more > most {
			t.Errorf("%d MB more, %d are allowed", more, most)
		}
	}
}
