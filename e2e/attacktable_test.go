package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
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
	return fmt.Sprintf("| %v | %d | %s | %s | %d | %v | %v |", r.attack, r.connections, kilobytes(int(r.sent.Load()/1000)), kilobytes(r.memory), r.files, &r.scraper, &r.client)
}

func kilobytes(n int) string {
	if n < 1000 {
		return fmt.Sprintf("%d kB", n)
	}
	return fmt.Sprintf("%d MB", n/1000)
}

// honest holds the durations of honest requests and the number of failures.
type honest struct {
	took   []time.Duration
	failed int
	why    string // error of the last failure
}

func (s *honest) String() string {
	slices.Sort(s.took)
	return fmt.Sprintf("%v, %v, %d of %d", short(s.took[len(s.took)/2]), short(s.took[len(s.took)-1]), s.failed, len(s.took))
}

func short(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// observe sends ten requests a second until ctx ends. The returned function waits for the end.
func observe(ctx context.Context, url, password string) (end func() honest) {
	var s honest
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			begin := time.Now()
			if status, err := fromElsewhere(url, password); err != nil || status != http.StatusOK {
				s.failed, s.why = s.failed+1, fmt.Sprint(status, err)
			}
			s.took = append(s.took, time.Since(begin))
			time.Sleep(100 * time.Millisecond)
		}
	})
	return func() honest { asking.Wait(); return s }
}

// writeAttacks writes the table of docs/security.md.
func writeAttacks(t *testing.T, rows []*row) {
	t.Helper()
	table := fmt.Sprintf("On %d processors, shared with the attackers, with %s:\n\n", runtime.NumCPU(), runtime.Version()) +
		"| attack | connections | sent | memory at most | open files at most | a scraper: median, worst, failed | a client of the service: the same |\n|---|---|---|---|---|---|---|\n"
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
