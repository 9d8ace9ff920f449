package sentinellog_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sentinellog"
)

// receiver is a server that stores pushed samples. It breaks the connection of every breakEvery-th request after it has
// stored the samples; the Pusher must send these again.
type receiver struct {
	t          *testing.T
	breakEvery int

	mu       sync.Mutex
	database database
	requests int
	broken   map[string]bool // bodies of broken requests
	newest   int64
	hang     bool // store samples, and do not respond
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	z, err := gzip.NewReader(req.Body)
	if err != nil {
		r.t.Error(err)
		return
	}
	b, err := io.ReadAll(z)
	if err != nil {
		r.t.Error(err)
	}
	text := strings.NewReplacer(`instance="i",`, "", `job="j",`, "", `,instance="i"`, "", `,job="j"`, "").
		Replace(string(b))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.broken[text] {
		delete(r.broken, text)
		return // already stored
	}
	r.database.store(r.t, text)
	for _, v := range r.database {
		for at := range v {
			r.newest = max(r.newest, at)
		}
		break
	}
	if r.hang {
		r.broken[text] = true
		r.mu.Unlock()
		<-req.Context().Done()
		r.mu.Lock()
		return
	}
	if r.breakEvery > 0 && r.requests%r.breakEvery == 0 {
		r.broken[text] = true
		panic(http.ErrAbortHandler)
	}
}

// pushed runs a Follower with a Pusher until the receiver has the second until, and then kills or stops it.
func pushed(t *testing.T, o sentinellog.Options, url string, done func() bool) {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sentinellog.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // of a lock
	p, err := f.Push(push.Options{
		URL: url, Format: push.VictoriaMetrics, Logger: o.Logger,
		Labels: map[string]string{"job": "j", "instance": "i"},
		Drain:  time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = f.Run(ctx) })
	all.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(time.Minute); !done() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	all.Wait()
}

// A Pusher that was away for two hours sends all rows once, in ascending order, and resends requests that broke
// unchanged.
func TestPushCatchesUp(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	r := &receiver{t: t, database: database{}, broken: map[string]bool{}, breakEvery: 3}
	server := httptest.NewServer(r)
	defer server.Close()
	o := sentinellog.Options{Dir: dir, StateDir: state, Lag: time.Second, Logger: slog.New(slog.DiscardHandler)}
	pushed(t, o, server.URL, func() bool { return true }) // saves a position
	const length = 7200
	end := time.Now().Unix() - 2
	begin := end - length
	one, two := newJavaLog(t, dir, "shop", 0), newJavaLog(t, dir, "till", 8)
	one.maxBytes, two.noIndex = 200<<10, true
	for i := range int64(length) {
		one.write(begin+i, traffic(1, begin+i, 20, false))
		two.write(begin+i, traffic(2, begin+i, 4, true))
	}
	moveBack(t, state, begin)
	newest := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.newest >= end-1
	}
	pushed(t, o, server.URL, newest)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range []*javaLog{one, two} {
		if rows := r.database.compare(t, l, begin, end); rows < length {
			t.Errorf("%s has only %d rows", l.app, rows)
		}
	}
	if r.requests < 20 || len(r.broken) > 0 {
		t.Errorf("%d requests, and %d that were not sent again", r.requests, len(r.broken))
	}
}

// The requests of a Pusher that ended without a response are sent again by the next one, unchanged: a server that has
// them then refuses exactly these requests.
func TestPushResendsUnchanged(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	r := &receiver{t: t, database: database{}, broken: map[string]bool{}}
	server := httptest.NewServer(r)
	defer server.Close()
	o := sentinellog.Options{Dir: dir, StateDir: state, Lag: time.Second, Logger: slog.New(slog.DiscardHandler)}
	pushed(t, o, server.URL, func() bool { return true }) // saves a position
	begin := time.Now().Unix() - 20
	end := begin
	log := newJavaLog(t, dir, "shop", 0)
	write := func() { // all seconds until now
		for ; end < time.Now().Unix()-1; end++ {
			log.write(end, traffic(1, end, 40, false))
		}
	}
	write()
	moveBack(t, state, begin)
	r.hang = true
	pushed(t, o, server.URL, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.broken) > 0
	})
	write() // the next request could have more seconds
	sent := len(r.broken)
	r.hang = false
	pushed(t, o, server.URL, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.newest >= end-1
	})
	if len(r.broken) > 0 {
		t.Errorf("%d of %d requests were not sent again", len(r.broken), sent)
	}
	if rows := r.database.compare(t, log, begin, end); rows < 20 {
		t.Errorf("%d rows", rows)
	}
}

// At the end, a Pusher sends the seconds that have not reached the lag, because the logs of a pod end with the pod.
func TestPushSendsTheLastSecond(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &receiver{t: t, database: database{}, broken: map[string]bool{}}
	server := httptest.NewServer(r)
	defer server.Close()
	log := newJavaLog(t, dir, "shop", 0)
	o := sentinellog.Options{Dir: dir, StateDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	var begin, end int64
	pushed(t, o, server.URL, func() bool {
		begin = time.Now().Unix()
		for range 3 {
			end = time.Now().Unix()
			time.Sleep(time.Until(time.Unix(end+1, 0)))
			log.write(end, traffic(1, end, 5, false))
		}
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	written := 0 // not a constant, because traffic leaves out rows without calls
	for _, rows := range log.truth {
		written += len(rows)
	}
	if rows := r.database.compare(t, log, begin, end+1); rows != written || rows == 0 {
		t.Errorf("%d rows arrived, %d were written", rows, written)
	}
}

// moveBack sets the state back, as if the Follower had not run since.
func moveBack(t *testing.T, state string, to int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "windowstat-*.json"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b = regexp.MustCompile(`"(Next|Sealed)": \d+`).ReplaceAll(b, []byte(fmt.Sprintf(`"$1": %d`, to)))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
