package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/internal/atomicfile"
	"github.com/windowstat/windowstat/node"
)

// lives runs processes one after the other. They share a directory, and a server that works like [receiver].
type lives struct {
	t      *testing.T
	dir    string
	store  *receiver
	logged lockedText
	lives  []*life
	log    metriclog.Options

	killing sync.Mutex
	mu      sync.Mutex // guards the fields below
	random  *rand.Rand
	times   map[string]int // number of times each sample was stored
	doubt   map[int64]bool // seconds whose arrival is unknown to a process
}

func (l *lives) randomly(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.random.IntN(n)
}

// life is a process. To kill it, the test cuts its network and gives the next process a copy of the directory.
type life struct {
	*collector.Collector
	*Pusher
	log      *metriclog.Writer
	instance string
	first    int64
	dead     atomic.Bool
	cancel   func()
	end      func() error
}

type lockedText struct {
	mu sync.Mutex
	strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.String()
}

func newLives(t *testing.T, seed uint64) *lives {
	return &lives{
		t:      t,
		dir:    t.TempDir(),
		store:  newReceiver(),
		times:  map[string]int{},
		random: rand.New(rand.NewPCG(seed, 5)),
		doubt:  map[int64]bool{},
		log:    metriclog.Options{App: "shop", Location: time.UTC},
	}
}

// begin starts a process. Its requests go through do, which may be nil.
func (l *lives) begin(instance string, o Options, do requestFunc) *life {
	l.t.Helper()
	x := &life{instance: instance}
	logs := l.log
	logs.Dir, logs.Logger = l.dir, slog.New(slog.NewTextHandler(&l.logged, nil))
	last, err := metriclog.Last(logs)
	if err != nil {
		l.t.Fatal(err)
	}
	x.Collector, err = collector.New(collector.Options{
		Windows: node.Options{History: time.Minute}, After: last, RetireAfter: -1,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	if x.log, err = metriclog.New(x.Collector, logs); err != nil {
		l.t.Fatal(err)
	}
	if o.URL == "" {
		o.URL = "http://user-less/push"
	}
	o.Labels, o.Logger, o.Log = map[string]string{"job": "j", "instance": instance}, logs.Logger, x.log
	o.Format = lineFormat{}
	o.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		samples, wrong := parse(body)
		if err != nil || r.Body.Close() != nil || x.dead.Load() || wrong != nil {
			return nil, io.ErrUnexpectedEOF
		}
		arrived := false
		arrive := func() (*http.Response, error) {
			if x.dead.Load() {
				return nil, io.ErrUnexpectedEOF
			}
			resp, err := l.store.store(body)
			l.mu.Lock()
			defer l.mu.Unlock()
			if arrived = resp.StatusCode/100 == 2; arrived {
				for _, s := range samples {
					l.times[fmt.Sprint(s.series, " ", s.unix)]++
				}
			}
			return resp, err
		}
		if do == nil {
			return arrive()
		}
		resp, err := do(x, r, arrive)
		if x.dead.Load() {
			return nil, io.ErrUnexpectedEOF
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, s := range samples {
			if arrived && err != nil {
				l.doubt[s.unix] = true
			}
		}
		return resp, err
	})}
	if x.Pusher, err = New(x.Collector, o); err != nil {
		l.t.Fatal(err)
	}
	x.first = x.line.First()
	ctx, cancel := context.WithCancel(l.t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = x.log.Run(ctx) })
	all.Go(func() { err = x.Run(ctx) })
	x.cancel, x.end = cancel, func() error { cancel(); all.Wait(); return err }
	l.t.Cleanup(func() { _ = x.end() })
	l.lives = append(l.lives, x)
	return x
}

// arriveFunc delivers a request to the server and returns the response.
type arriveFunc = func() (*http.Response, error)

// requestFunc handles a request of a process. It may call arrive, kill the process, or return an error.
type requestFunc = func(x *life, r *http.Request, arrive arriveFunc) (*http.Response, error)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// kill simulates kill -9: the next process finds the files in their current state.
func (l *lives) kill(x *life) {
	l.killing.Lock() // a second caller finds the process dead
	defer l.killing.Unlock()
	if x.dead.Swap(true) {
		return
	}
	x.Pusher.mu.Lock() // finishes a save in progress and prevents further ones
	defer x.Pusher.mu.Unlock()
	next := l.t.TempDir()
	err := os.CopyFS(next, os.DirFS(l.dir))
	for errors.Is(err, os.ErrNotExist) { // a file is absent while it is renamed
		next = l.t.TempDir()
		err = os.CopyFS(next, os.DirFS(l.dir))
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.dir = next
	was := l.savedPosition()
	l.mu.Lock()
	defer l.mu.Unlock()
	x.cancel() // nothing that the process does after this is visible
	for at := was.Next; at < was.UnackedTo; at++ {
		l.doubt[at] = true
	}
}

// savedPosition returns the saved position.
func (l *lives) savedPosition() (was position) {
	l.t.Helper()
	if err := atomicfile.Read(l.position(), &was); err != nil {
		l.t.Error(err)
	}
	return was
}

// position returns the path of the first position file.
func (l *lives) position() string {
	found, _ := filepath.Glob(filepath.Join(l.dir, "shop-push-*-1.json"))
	if len(found) == 0 {
		return filepath.Join(l.dir, "none")
	}
	return found[0]
}

// load makes calls for a duration, or until the process is killed.
func (l *lives) load(x *life, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !x.dead.Load(); {
		x.Resource(fmt.Sprint("r", l.randomly(4))).Block("")
		time.Sleep(time.Duration(l.randomly(400)+1) * time.Millisecond)
	}
}

// check compares the stored samples with the log: each row is stored once, under the labels of its process.
func (l *lives) check() (rows int) {
	l.t.Helper()
	found, err := metriclog.Searcher{Dir: l.dir, App: "shop"}.Search(metriclog.Query{})
	if err != nil {
		l.t.Fatal(err)
	}
	for row := range found.All() {
		if row.Resource == collector.InboundTotal {
			continue
		}
		at, instance := row.Start.Unix(), ""
		for _, x := range l.lives {
			if x.first <= at {
				instance = x.instance
			}
		}
		key := fmt.Sprintf(`windowstat_persecond_block{instance=%q,job="j",resource=%q} %d`, instance, row.Resource, at)
		if v, ok := l.store.stored[key]; !ok || v != float64(row.Block) {
			l.t.Errorf("%s is %v (%t), want %d", key, v, ok, row.Block)
		}
		if n := l.times[key]; n > 1 && !l.doubt[at] {
			l.t.Errorf("%s was stored %d times", key, n)
		}
		rows++
	}
	return rows
}

// TestPushesOfKilledProcesses kills processes at random times: before and after the server stores a request, during an
// outage, and during catch-up.
func TestPushesOfKilledProcesses(t *testing.T) {
	seeds, processes := uint64(6), 12
	if testing.Short() {
		seeds, processes = 3, 5
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			l := newLives(t, seed)
			var outage atomic.Int64 // end of the outage
			do := func(x *life, _ *http.Request, arrive arriveFunc) (*http.Response, error) {
				switch n := l.randomly(100); {
				case time.Now().UnixNano() < outage.Load():
					return answer(http.StatusServiceUnavailable, "")
				case n < 5:
					outage.Store(time.Now().Add(time.Duration(l.randomly(150)) * time.Second).UnixNano())
					return nil, io.ErrUnexpectedEOF
				case n < 10:
					_, _ = arrive()
					return nil, io.ErrUnexpectedEOF
				case n < 13:
					l.kill(x)
					return nil, io.ErrUnexpectedEOF
				case n < 16:
					_, _ = arrive()
					l.kill(x)
					return nil, io.ErrUnexpectedEOF
				}
				return arrive()
			}
			o := Options{Timeout: 2 * time.Second, MaxSamples: []int{30, 500, 10_000}[seed%3]}
			o.Interval = time.Duration(1+seed%2*4) * time.Second
			for n := range processes {
				x := l.begin(fmt.Sprint("i", l.randomly(2)), o, do)
				l.load(x, time.Duration(l.randomly(120_000))*time.Millisecond)
				if n%4 == 3 && !x.dead.Load() {
					if err := x.end(); err != nil { // leaves unsent seconds to the next process
						t.Error(err)
					}
				}
				l.kill(x)
				time.Sleep(time.Duration(l.randomly(3)*l.randomly(5000)) * time.Millisecond)
			}
			x := l.begin("last", o, nil)
			l.load(x, 5*time.Minute)
			if err := x.end(); err != nil {
				t.Error(err)
			}
			if rows := l.check(); rows < 40*processes {
				t.Errorf("%d rows, want at least 40 per process", rows)
			}
			if lost := x.total.lost; lost != 0 {
				t.Errorf("%d seconds lost", lost)
			}
			if t.Failed() {
				t.Logf("with seed %d: %s", seed, l.logged.String())
			}
		})
	}
}
