package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// TestSIGTERM sends SIGTERM to the service of docs/programs.md, unchanged, in the middle of a load. The responses to
// clients, the log, and the samples sent to Prometheus have the same number of calls.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	server := startServer(t, "prometheus-3", prometheus3)
	for name, l := range map[string]clientLoad{
		"dense":  {clients: 16, call: 5 * time.Millisecond},
		"sparse": {clients: 2, call: time.Millisecond, pause: 30 * time.Millisecond},
		"slow":   {clients: 8, call: 1500 * time.Millisecond},
		"mixed":  {clients: 4, call: 900 * time.Millisecond, pause: 400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := buildDocumented(t, server.addr)
			p.start(t)
			ctx, cancel := context.WithCancel(t.Context())
			var sent atomic.Int64
			var clients sync.WaitGroup
			for range l.clients {
				clients.Go(func() { sent.Add(l.send(ctx, p.addr)) })
			}
			time.Sleep(2*time.Second + rand.N(time.Second)) // anywhere in a second
			said := p.end(t)
			cancel()
			clients.Wait()
			answered, err := strconv.ParseInt(strings.TrimSpace(said), 10, 64)
			if err != nil {
				t.Fatalf("the program said %q: %v", said, err)
			}
			rows, err := metriclog.Searcher{Dir: p.dir, App: "shop"}.Search(metriclog.Query{})
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var logged struct{ pass, block, complete int64 }
			for row := range rows.All() {
				if row.Resource == "GET /users/{id}" {
					logged.pass, logged.block, logged.complete = logged.pass+row.Pass,
						logged.block+row.Block, logged.complete+row.Success
				}
			}
			_, port, _ := strings.Cut(p.pages, ":")
			pushed := func(metric string) int64 {
				selector := fmt.Sprintf(`windowstat_persecond_%s{instance=~".+:%s",resource="GET /users/{id}"}[5m]`,
					metric, port)
				return int64(server.number(t, "sum_over_time("+selector+")"))
			}
			t.Logf("clients were answered %d times; the handler ran %d times; the log has %+v; %d, %d and %d were "+
				"pushed",
				sent.Load(), answered, logged, pushed("pass"), pushed("block"), pushed("complete"))
			if logged.pass+logged.block != sent.Load() || logged.pass != answered || logged.complete != answered {
				t.Error("the log is not what clients were answered")
			}
			if pushed("pass") != logged.pass || pushed("block") != logged.block ||
				pushed("complete") != logged.complete {
				t.Error("what was pushed is not what was logged")
			}
			if sent.Load() == 0 {
				t.Error("nothing was sent")
			}
		})
	}
}

// A clientLoad configures clients. Each makes one call after the other, with random durations and pauses up to a
// maximum.
type clientLoad struct {
	clients     int
	call, pause time.Duration
}

// send makes calls until the service no longer responds, and returns the number of responses.
func (l clientLoad) send(ctx context.Context, addr string) (answered int64) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for ctx.Err() == nil {
		time.Sleep(rand.N(l.pause + 1))
		url := fmt.Sprintf("http://%s/users/%d?for=%v", addr, rand.N(100), rand.N(l.call))
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			panic(err)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			if errors.Is(err, syscall.ECONNREFUSED) {
				return answered
			}
			continue // a connection that the server closed because it was idle
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if errors.Join(err, resp.Body.Close()) == nil {
			answered++
		}
	}
	return answered
}

// A documentedService is the service of docs/programs.md in a separate process.
type documentedService struct {
	addr, pages, dir string
	process          *exec.Cmd
	said             strings.Builder
}

// buildDocumented builds the program of the page, with other addresses and files. It adds a handler that takes the
// requested time, and at the end prints the number of its calls.
func buildDocumented(t *testing.T, receiver string) *documentedService {
	t.Helper()
	page, err := os.ReadFile("../docs/programs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- program service:")
	_, rest, _ = strings.Cut(rest, "```go\n")
	text, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the page has no program")
	}
	dir := t.TempDir()
	p := &documentedService{addr: freeAddress(t), pages: freeAddress(t), dir: filepath.Join(dir, "log")}
	limits := filepath.Join(dir, "limits.yml")
	if err := os.WriteFile(limits, []byte("limits: [{resource: 'GET /users/{id}', qps: 1000}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for old, now := range map[string]string{
		`":8080"`: p.addr, `":9719"`: p.pages, `"limits.yml"`: limits, `"/var/log/shop"`: p.dir,
		`"http://prometheus:9090/api/v1/write"`: "http://" + receiver + "/api/v1/write",
	} {
		if strings.Count(text, old) != 1 {
			t.Fatalf("the program has no %s:\n%s", old, text)
		}
		text = strings.ReplaceAll(text, old, strconv.Quote(now))
	}
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(fmt.Sprintf(around, text)), 0o600); err != nil {
		t.Fatal(err)
	}
	executable := filepath.Join(dir, "shop")
	if err := run(t.Context(), ".", "go", "build", "-o", executable, source); err != nil {
		t.Fatal(err)
	}
	p.process = command(t, executable)
	p.process.Stdout, p.process.Stderr = &p.said, os.Stderr
	return p
}

const around = `package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
)

func main() {
	var answered atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		d, _ := time.ParseDuration(r.FormValue("for"))
		time.Sleep(d)
		answered.Add(1)
		fmt.Fprint(w, "a user")
	})
%s
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answered.Load())
}
`

// start starts the program, and waits until it serves.
func (p *documentedService) start(t *testing.T) {
	t.Helper()
	startReady(t, p.process, saysReady(p.pages))
}

// end ends the program with SIGTERM, and returns its output.
func (p *documentedService) end(t *testing.T) string {
	t.Helper()
	begin := time.Now()
	if err := errors.Join(p.process.Process.Signal(syscall.SIGTERM), p.process.Wait()); err != nil {
		t.Errorf("the program does not end well: %v", err)
	}
	t.Logf("it has ended after %v", time.Since(begin).Round(time.Millisecond))
	return p.said.String()
}
