package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A row holds the cost of an attack and its effect on honest clients.
type row struct {
	*attack
	connections, files, memory int           // peak number of files; peak memory in kilobytes
	made, sent                 atomic.Int64  // connections, and bytes
	gone                       time.Duration // until nothing was held, or the attack ended
	scraper, client            honest
}

func (r *row) String() string {
	return fmt.Sprintf("| %v | %d | %s | %s | %d | %v | %v |", r.attack, r.connections,
		kilobytes(int(r.sent.Load()/1000)), kilobytes(r.memory), r.files, &r.scraper, &r.client)
}

func kilobytes(n int) string {
	if n < 1000 {
		return fmt.Sprintf("%d kB", n)
	}
	return fmt.Sprintf("%d MB", n/1000)
}

// honest holds the durations of honest requests and the number of failures.
type honest struct {
	Took   []time.Duration
	Failed int
	Why    string // error of the last failure
}

func (s *honest) String() string {
	slices.Sort(s.Took)
	return fmt.Sprintf(
		"%v, %v, %d of %d",
		short(s.Took[len(s.Took)/2]),
		short(s.Took[len(s.Took)-1]),
		s.Failed,
		len(s.Took),
	)
}

func short(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// observerURL is the environment variable that makes the test's executable run as an honest client of a URL. A client
// in the process of the attackers would wait for thousands of their goroutines, not for the server.
const (
	observerURL      = "WINDOWSTAT_E2E_OBSERVER_URL"
	observerPassword = "WINDOWSTAT_E2E_OBSERVER_PASSWORD"
)

// observe sends ten requests a second from a process of its own until the returned function is called. The requests to
// the receiver of spans post a span.
func observe(t *testing.T, url, password string) (end func() honest) {
	t.Helper()
	p := command(t, os.Args[0])
	p.Env = append(os.Environ(), observerURL+"="+url, observerPassword+"="+password)
	p.Stderr = os.Stderr
	stdin, err := p.StdinPipe()
	stdout, err2 := p.StdoutPipe()
	if err := errors.Join(err, err2, p.Start()); err != nil {
		t.Fatal(err)
	}
	return func() (s honest) {
		_ = stdin.Close()
		if err := errors.Join(json.NewDecoder(stdout).Decode(&s), p.Wait()); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// runObserver is the process of an honest client. It writes an [honest] when its standard input is closed.
func runObserver(url, password string) error {
	ctx, end := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	request := func() (int, error) { return fromElsewhere(url, password) }
	if strings.HasSuffix(url, spansPath) {
		request = func() (int, error) { return postSpan(url) }
	}
	var s honest
	for ctx.Err() == nil {
		begin := time.Now()
		if status, err := request(); err != nil || status != http.StatusOK {
			s.Failed, s.Why = s.Failed+1, fmt.Sprint(status, err)
		}
		s.Took = append(s.Took, time.Since(begin))
		time.Sleep(100 * time.Millisecond)
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// writeAttacks writes the table of docs/security.md.
func writeAttacks(t *testing.T, rows []*row) {
	t.Helper()
	table := fmt.Sprintf("On %d processors, shared with the attackers, with %s:\n\n",
		runtime.NumCPU(), runtime.Version()) +
		"| attack | connections | sent | memory at most | open files at most | a scraper: median, worst, failed | a " +
		"client of the service: the same |\n|---|---|---|---|---|---|---|\n"
	for _, r := range rows {
		table += r.String() + "\n"
	}
	replaceBetween(t, "../docs/security.md", "<!-- attacks -->\n", "<!-- /attacks -->", table)
}

// replaceBetween replaces the text between two markers of a page.
func replaceBetween(t *testing.T, page, begin, end, text string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no table", page)
	}
	if err := os.WriteFile(page, []byte(before+begin+text+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
