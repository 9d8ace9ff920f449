package live_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// A stream sends each second once and resumes after an interruption. A stream above the maximum is refused. Close ends
// all streams.
func TestStream(t *testing.T) {
	for name, plain := range map[string]bool{"plain": true, "gzip": false} {
		t.Run(name, func(t *testing.T) { testStream(t, plain) })
	}
}

func testStream(t *testing.T, plain bool) {
	t.Parallel()
	client := &http.Client{Transport: &http.Transport{DisableCompression: plain}}
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := live.New(c, live.Options{MaxViewers: 1})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	defer p.Close() // must precede server.Close, which waits for all streams
	c.Resource("a").Block("")
	open := func(id string) (*http.Response, *bufio.Reader) {
		r, err := http.NewRequest("GET", server.URL+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		if id != "" {
			r.Header.Set("Last-Event-ID", id)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp, bufio.NewReader(resp.Body)
	}
	next := func(b *bufio.Reader) (id string, m message) {
		for {
			line, err := b.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if rest, ok := strings.CutPrefix(line, "id: "); ok {
				id = strings.TrimSpace(rest)
			}
			if rest, ok := strings.CutPrefix(line, "data: "); ok {
				if err := json.Unmarshal([]byte(rest), &m); err != nil {
					t.Fatal(err)
				}
				return id, m
			}
		}
	}
	resp, events := open("")
	if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Uncompressed == plain {
		t.Error(resp.Header)
	}
	seen := map[int64]bool{}
	id := ""
	for range 3 {
		var m message
		id, m = next(events)
		for _, s := range m.Total {
			if seen[s[0]] {
				t.Errorf("second %d arrived twice", s[0])
			}
			seen[s[0]] = true
		}
	}
	full, body := open("")
	const refusal = "retry: 10000\nevent: full\ndata: all 1 places for viewers are taken\n\n"
	if got, err := io.ReadAll(body); full.StatusCode != http.StatusOK || err != nil || string(got) != refusal {
		t.Errorf("%s, %q, %v", full.Status, got, err)
	}
	_ = resp.Body.Close()
	for range 100 { // until the server notices that the first viewer has disconnected
		_, events = open(id)
		if begin, err := events.Peek(3); err == nil && string(begin) == "id:" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 2 {
		_, m := next(events)
		if m.Fresh {
			t.Error("the resumed stream sends everything again")
		}
		for _, s := range m.Total {
			if seen[s[0]] {
				t.Errorf("second %d arrived again", s[0])
			}
			seen[s[0]] = true
		}
	}
	p.Close()
	if _, err := io.ReadAll(events); err != nil && (plain || !errors.Is(err, io.ErrUnexpectedEOF)) {
		t.Error(err)
	}
}

// requestTimeout limits a response on a busy machine.
const requestTimeout = 5 * time.Second

// A HEAD request for the stream ends immediately and takes no slot.
func TestHeadOfStream(t *testing.T) {
	p, _, _ := newPage(t, live.Options{MaxViewers: 1})
	server := httptest.NewServer(p)
	defer server.Close()
	defer p.Close()
	client := &http.Client{Timeout: requestTimeout} // fails if the response does not end
	for range 3 {
		resp, err := client.Head(server.URL + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Error(resp.Status, resp.Header)
		}
	}
}

// All viewers receive the same seconds.
func TestViewersAgree(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := live.New(c, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	defer p.Close()
	const viewers, events = 20, 4
	seen := make([]string, viewers)
	var all sync.WaitGroup
	for i := range viewers {
		all.Go(func() {
			c.Resource(fmt.Sprint("r", i)).Block("")
			client := &http.Client{Transport: &http.Transport{DisableCompression: i%2 == 0}}
			resp, err := client.Get(server.URL + "/stream")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			lines.Buffer(nil, 1<<20)
			for n := 0; n < events && lines.Scan(); {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					n++
					var m message
					if err := json.Unmarshal([]byte(data), &m); err != nil {
						t.Error(err)
					}
					for _, s := range m.Total {
						seen[i] += fmt.Sprintf("%d:%d ", s[0], s[1:])
					}
				}
			}
		})
	}
	all.Wait()
	longest := slices.MaxFunc(seen, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for i, s := range seen {
		if !strings.HasPrefix(longest, s) || strings.Count(s, ":") < events-2 {
			t.Errorf("viewer %d received %q, want a prefix of %q", i, s, longest)
		}
	}
}
