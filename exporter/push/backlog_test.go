package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/delivery"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// outage returns a transport that fails in the period between two durations after the call.
func outage(after, before time.Duration) requestFunc {
	began := time.Now()
	return func(_ *life, _ *http.Request, arrive arriveFunc) (*http.Response, error) {
		if d := time.Since(began); d >= after && d < before {
			return nil, errors.New("connection refused")
		}
		return arrive()
	}
}

// An outage longer than the history loses nothing, because the log has the seconds that left the history.
func TestOutageLongerThanTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 1)
		x := l.begin("i", Options{}, outage(0, 5*time.Minute)) // the history covers one minute
		l.load(x, 7*time.Minute)
		if err := x.end(); err != nil || x.total.lost != 0 {
			t.Errorf("%v, %d seconds lost", err, x.total.lost)
		}
		if rows := l.check(); rows < 400 {
			t.Errorf("%d rows, want at least 400", rows)
		}
	})
}

// A process that ends while the server is unreachable logs that the next process sends the rest, and the next process
// does so.
func TestNextProcessSendsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 2)
		x := l.begin("i", Options{}, outage(0, time.Hour))
		l.load(x, 20*time.Second)
		if err := x.end(); err != nil || x.total.lost != 0 {
			t.Errorf("%v, %d seconds lost", err, x.total.lost)
		}
		if logged := l.logged.String(); !strings.Contains(logged, "the next process sends them from the metric log") {
			t.Error(logged)
		}
		if err := l.begin("i", Options{}, nil).endAfter(10 * time.Second); err != nil {
			t.Error(err)
		}
		if rows := l.check(); rows < 30 {
			t.Errorf("%d rows, want at least 30", rows)
		}
	})
}

func (x *life) endAfter(d time.Duration) error {
	time.Sleep(d)
	return x.end()
}

// The first process with a position file does not send the whole log.
func TestFirstPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 3)
		x := l.begin("i", Options{}, outage(0, time.Hour))
		l.load(x, 20*time.Second)
		l.kill(x)
		if err := os.Remove(l.position()); err != nil {
			t.Fatal(err)
		}
		x = l.begin("i", Options{}, nil)
		l.load(x, 10*time.Second)
		if err := x.end(); err != nil {
			t.Error(err)
		}
		for key := range l.store.stored {
			var unix int64
			if _, err := fmt.Sscan(key[strings.LastIndex(key, " "):], &unix); err != nil || unix < x.first {
				t.Fatalf("%s is from another process: %v", key, err)
			}
		}
		if len(l.store.stored) == 0 || x.total.lost != 0 {
			t.Errorf("%d samples, %d seconds lost", len(l.store.stored), x.total.lost)
		}
	})
}

// An invalid position file is renamed and logged. Pushing continues with the seconds of the current process.
func TestInvalidPositions(t *testing.T) {
	change := func(f func(*position)) func([]byte) []byte {
		return func(b []byte) []byte {
			var x position
			if err := json.Unmarshal(b, &x); err != nil {
				panic(err)
			}
			f(&x)
			b, _ = json.Marshal(x)
			return b
		}
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty":                        func([]byte) []byte { return nil },
		"torn":                         func(b []byte) []byte { return b[:len(b)/2] },
		"zeros":                        func(b []byte) []byte { return make([]byte, len(b)) },
		"huge":                         func([]byte) []byte { return []byte(strings.Repeat(" ", 17<<20)) },
		"something else":               func([]byte) []byte { return []byte(`{"a":1}`) },
		"next in the future":           change(func(x *position) { x.Next += 3600 }),
		"unacknowledged in the future": change(func(x *position) { x.UnackedTo = x.Next + 3600 }),
		"next is zero":                 change(func(x *position) { x.Next = 0 }),
		"next is negative":             change(func(x *position) { x.Next = -5 }),
		"too many parts":               change(func(x *position) { x.Parts = maxParts + 1 }),
		"list of positions":            func(b []byte) []byte { return fmt.Appendf(nil, "[%s]", b) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLives(t, 4)
				x := l.begin("i", Options{}, outage(0, time.Hour))
				l.load(x, 10*time.Second)
				l.kill(x)
				path := l.position()
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, damage(b), 0o644); err != nil {
					t.Fatal(err)
				}
				x = l.begin("i", Options{}, nil)
				l.load(x, 5*time.Second)
				if err := x.end(); err != nil {
					t.Error(err)
				}
				_, err = os.Stat(path + ".unreadable")
				if err != nil || !strings.Contains(l.logged.String(), "the file is renamed") {
					t.Error(err, l.logged.String())
				}
				if n := x.total.seconds; n < 5 || n > 7 {
					t.Errorf("sent %d seconds, want 5 to 7", n)
				}
				if was := l.savedPosition(); was.Next < x.first {
					t.Errorf("%+v", was)
				}
			})
		})
	}
}

// Seconds that retention deleted are counted as lost and logged once. The remaining seconds are sent.
func TestBacklogCutByRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 5)
		l.log.MaxFileSize, l.log.MaxFiles = 3000, 4
		x := l.begin("i", Options{}, outage(20*time.Second, time.Hour))
		l.load(x, 20*time.Second)
		l.load(x, 4*time.Minute)
		l.kill(x)
		x = l.begin("i", Options{}, nil)
		l.load(x, 10*time.Second)
		if err := x.end(); err != nil {
			t.Error(err)
		}
		if rows := l.check(); rows < 30 {
			t.Errorf("%d rows, want at least 30", rows)
		}
		if lost := x.total.lost; lost < 60 || lost > 235 {
			t.Errorf("%d seconds lost", lost)
		}
		if n := strings.Count(l.logged.String(), "no longer has some unsent seconds"); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// Retention deletes seconds of a backlog while it is being sent and the server is unreachable. The deleted seconds are
// counted and logged.
func TestBacklogCutWhileSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 9)
		l.log.MaxFileSize, l.log.MaxFiles = 30_000, 6
		first := l.begin("i", Options{}, outage(20*time.Second, time.Hour))
		l.load(first, 5*time.Minute)
		l.kill(first)
		n, back := 0, time.Now().Add(20*time.Minute)
		x := l.begin("i", Options{}, func(_ *life, _ *http.Request, arrive arriveFunc) (*http.Response, error) {
			if n++; n > 2 && time.Now().Before(back) {
				return nil, errors.New("connection refused")
			}
			return arrive()
		})
		l.load(x, 25*time.Minute)
		if err := x.end(); err != nil {
			t.Error(err)
		}
		stored := map[int64]bool{}
		for key := range l.store.stored {
			var unix int64
			if _, err := fmt.Sscan(key[strings.LastIndex(key, " "):], &unix); err != nil {
				t.Fatal(err)
			}
			stored[unix] = true
		}
		missing := x.at.Next - first.first - int64(len(stored))
		if lost := x.total.lost; missing < 300 || lost < missing || lost > missing+60 {
			t.Errorf("counted %d lost seconds, but %d are missing", lost, missing)
		}
		l.check() // the remaining rows of the log
	})
}

// Seconds that are too old for the server are counted as lost, and newer seconds are sent.
func TestBacklogTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 6)
		x := l.begin("i", Options{}, outage(0, time.Hour))
		l.load(x, 3*time.Minute)
		l.kill(x)
		x = l.begin("i", Options{}, func(x *life, r *http.Request, arrive arriveFunc) (*http.Response, error) {
			x.mu.Lock()
			next := x.at.Next
			x.mu.Unlock()
			if next < x.first-60 {
				return answer(http.StatusBadRequest, "out of bounds\n")
			}
			return arrive()
		})
		l.load(x, 10*time.Second)
		if err := x.end(); err != nil {
			t.Error(err)
		}
		if lost := x.total.lost; lost < 120 || lost > 180 || lost+x.total.seconds < 185 {
			t.Errorf("%d seconds lost, %d sent", lost, x.total.seconds)
		}
		if n := strings.Count(l.logged.String(), "the server refused samples"); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// A backlog of many samples is sent in requests of bounded size, with pauses.
func TestBacklogIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 8)
		x := l.begin("i", Options{}, outage(0, time.Hour))
		l.load(x, 5*time.Minute)
		l.kill(x)
		var sent []time.Time
		const takes = 100 * time.Millisecond
		x = l.begin("i", Options{MaxSamples: 100}, func(_ *life, r *http.Request,
			arrive arriveFunc,
		) (*http.Response, error) {
			sent = append(sent, time.Now())
			time.Sleep(takes)
			return arrive()
		})
		if err := x.endAfter(90 * time.Second); err != nil {
			t.Error(err)
		}
		if rows := l.check(); rows < 100 || len(sent) < 100 {
			t.Errorf("%d rows in %d requests, want at least 100 each", rows, len(sent))
		}
		for i, at := range sent[1:50] {
			if d := at.Sub(sent[i]); d < 2*takes {
				t.Fatalf("%v between two requests", d)
			}
		}
	})
}

// A position file is in the directory of the log, under a bounded name without secrets. Each of several pushes to one
// server has a separate file.
func TestPositionFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 9)
		secret := "http://x/push/" + strings.Repeat("long/", 100) + "?token=secret"
		x := l.begin("i", Options{URL: secret}, nil)
		time.Sleep(2500 * time.Millisecond)
		o := x.opts
		if _, err := New(x.Collector, o); err != nil {
			t.Error("second push to the same server: ", err)
		}
		files, err := filepath.Glob(filepath.Join(l.dir, "shop-push-*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%q, %v", files, err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil || len(filepath.Base(path)) > 100 || strings.Contains(path+string(b), "secret") {
				t.Errorf("%s: %s, %v", path, b, err)
			}
		}
	})
}

// Pushes continue if the position cannot be written.
func TestUnwritablePosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 10)
		x := l.begin("i", Options{}, nil)
		l.load(x, 5*time.Second)
		if err := os.Mkdir(x.Pusher.file.path+".new", 0o700); err != nil { // the file is written under this name first
			t.Fatal(err)
		}
		l.load(x, 5*time.Second)
		if err := x.end(); err != nil {
			t.Error(err)
		}
		if rows := l.check(); rows < 10 {
			t.Errorf("%d rows, want at least 10", rows)
		}
		if n := strings.Count(l.logged.String(), "cannot save the position"); n != 1 {
			t.Errorf("logged %d times: %s", n, l.logged.String())
		}
	})
}

// A killed process may have sent seconds that it had not logged. The next process begins in the same second. It counts
// these seconds as lost, and sends no other values under the same names and labels.
func TestSecondsSentByThePreviousProcess(t *testing.T) {
	for _, next := range []int64{-1, 0, 1} {
		synctest.Test(t, func(t *testing.T) {
			l := newLives(t, 13)
			x := l.begin("i", Options{}, nil)
			l.load(x, 5*time.Second)
			l.kill(x)
			at := time.Now().Unix()
			all := position{delivery.Position{Next: at + next, UnackedTo: at + 3}, 1}
			if err := atomicfile.Swap(l.position(), all); err != nil {
				t.Fatal(err)
			}
			before := len(l.store.stored)
			x = l.begin("i", Options{}, nil)
			if x.first != at {
				t.Fatalf("first second is %d, want %d", x.first, at)
			}
			l.load(x, 10*time.Second)
			if err := x.end(); err != nil {
				t.Error(err)
			}
			for key := range l.store.stored {
				for unix := at; unix < at+3; unix++ {
					if strings.HasSuffix(key, fmt.Sprint(" ", unix)) {
						t.Errorf("from %d: %s was sent", next, key)
					}
				}
			}
			if x.total.lost != 3 || len(l.store.stored) <= before {
				t.Errorf("from %d: %d lost seconds, want 3", next, x.total.lost)
			}
		})
	}
}

// Only selected metrics are sent from the log. A selection without metrics of the log keeps no position.
func TestSelectionOfABacklog(t *testing.T) {
	for name, tc := range map[string]struct {
		selected Options
		want     []string
	}{
		"all": {Options{}, []string{
			`block{instance="i",job="j",resource="r0"}`,
			`block{instance="i",job="j",resource="r1"}`, `pass{instance="i",job="j",resource="r1"}`,
		}},
		"a metric": {
			Options{Metrics: []string{"windowstat_persecond_block"}},
			[]string{`block{instance="i",job="j",resource="r0"}`, `block{instance="i",job="j",resource="r1"}`},
		},
		"a resource": {Options{Resources: []string{"r1"}}, []string{
			`block{instance="i",job="j",resource="r1"}`,
			`pass{instance="i",job="j",resource="r1"}`,
		}},
		"no such": {Options{Metrics: []string{"windowstat_persecond_pass_peak"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLives(t, 12)
				x := l.begin("i", tc.selected, outage(0, time.Hour))
				l.load(x, 30*time.Second)
				l.kill(x)
				x = l.begin("i", tc.selected, nil)
				if err := x.endAfter(10 * time.Second); err != nil {
					t.Error(err)
				}
				got := map[string]bool{}
				for key := range l.store.stored {
					series := key[:strings.LastIndex(key, " ")]
					metric := strings.TrimPrefix(series, "windowstat_persecond_")
					if strings.HasPrefix(metric, "block{") || strings.HasPrefix(metric, "pass{") {
						if strings.Contains(metric, `"r0"`) || strings.Contains(metric, `"r1"`) {
							got[metric] = true
						}
					}
				}
				for _, series := range tc.want {
					if !got[series] {
						t.Errorf("%s is missing", series)
					}
				}
				if all := tc.selected.Metrics == nil && tc.selected.Resources == nil; !all && len(got) != len(tc.want) {
					t.Errorf("got %v", got)
				}
				if _, err := os.Stat(l.position()); (err == nil) != (tc.want != nil) {
					t.Errorf("position file: %v", err)
				}
			})
		})
	}
}

// A temporary read error of the log during catch-up, for example for lack of file descriptors, loses nothing.
func TestTemporaryReadErrorOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 1)
		o := Options{MaxSamples: 30}
		x := l.begin("a", o, func(*life, *http.Request, arriveFunc) (*http.Response, error) {
			return answer(http.StatusServiceUnavailable, "")
		})
		l.load(x, 3*time.Minute)
		_ = x.end()
		l.kill(x)
		var requests atomic.Int64
		x = l.begin("b", o, func(_ *life, _ *http.Request, arrive arriveFunc) (*http.Response, error) {
			if requests.Add(1) == 3 {
				aside := l.dir + "-aside"
				if err := os.Rename(l.dir, aside); err != nil {
					t.Error(err)
				}
				time.AfterFunc(1500*time.Millisecond, func() {
					if err := errors.Join(os.RemoveAll(l.dir), os.Rename(aside, l.dir)); err != nil {
						t.Error(err)
					}
				})
			}
			return arrive()
		})
		time.Sleep(5 * time.Minute)
		if err := x.end(); err != nil {
			t.Error(err)
		}
		if rows := l.check(); rows < 100 || x.total.lost != 0 {
			t.Errorf("%d rows, %d seconds lost", rows, x.total.lost)
		}
	})
}
