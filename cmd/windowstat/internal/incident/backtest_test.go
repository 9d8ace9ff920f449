package incident

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// logging is a Collector with a metric log.
type logging struct {
	c    *collector.Collector
	dir  string
	stop func() error
}

func newLogging(t *testing.T) *logging {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &logging{c: c, dir: t.TempDir()}
	w, err := metriclog.New(c, metriclog.Options{Dir: l.dir, App: "shop", Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	l.stop = w.Start()
	return l
}

// trials ends the log and applies a limit to all of it.
func (l *logging) trials(t *testing.T, limit collector.Limit) []Trial {
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	all, err := logquery.Select(logquery.Source{Dirs: []string{l.dir}, From: "-2h", Zone: time.UTC}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read(t.Context(), all, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return s.Backtest(limit)
}

// Two services receive the same calls for an hour, and one of them has the limit. A backtest of either log finds the
// same calls and the same lower bound of refused calls. The bound is below the number that the limit refused, and above
// two thirds of it.
func TestBacktestBesideALimit(t *testing.T) {
	for _, limit := range []collector.Limit{
		{Resource: "GET /search", Count: 20},
		{Resource: "GET /*", Count: 20, Strict: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			limited, free := newLogging(t), newLogging(t)
			if err := limited.c.SetLimits([]collector.Limit{limit}); err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(36, 2))
			refused, highest := int64(0), int64(0)
			for second := range 3600 {
				n, apart := random.IntN(18), time.Second/20
				switch second % 10 {
				case 4:
					n, apart = n+60, time.Second/100
				case 7: // a burst across two seconds: no calendar second shows the refused calls
					time.Sleep(900 * time.Millisecond)
					n, apart = 15, time.Millisecond
				case 8:
					n, apart = 15, time.Millisecond
				}
				highest = max(highest, int64(n))
				for range n {
					for _, l := range []*logging{limited, free} {
						e, err := l.c.Resource("GET /search").TryEnter()
						if err != nil {
							refused++
							continue
						}
						e.Exit(nil)
					}
					time.Sleep(apart)
				}
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			}
			with, without := limited.trials(t, limit)[0], free.trials(t, limit)[0]
			t.Logf("%s: refused %d; in the log at least %d of %d, in %d seconds, the highest %d",
				limit, refused, with.Refused, with.Offered, with.Seconds, with.Highest)
			if with.Blocked != refused || without.Blocked != 0 || with.Highest != highest {
				t.Errorf("refused %d, in the logs %d and %d; highest second %d, in the log %d",
					refused, with.Blocked, without.Blocked, highest, with.Highest)
			}
			if with.Refused >= refused || with.Refused < refused*2/3 {
				t.Errorf("lower bound %d, refused %d", with.Refused, refused)
			}
			with.Blocked = 0
			if !reflect.DeepEqual(with, without) {
				t.Errorf("with the limit\n%v\nwithout\n%v", with, without)
			}
		})
	}
}

// For concurrency, seconds are not added up, because two seconds may have the same calls.
func TestBacktestOfConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogging(t)
		for range 8 {
			e := l.c.Resource("db").Enter()
			time.AfterFunc(3*time.Second, func() { e.Exit(nil) })
		}
		time.Sleep(5 * time.Second)
		got := l.trials(t, collector.Limit{Resource: "db", Grade: collector.Concurrency, Count: 5})[0]
		if got.Refused != 3 || got.Highest != 8 || len(got.Spans) != 1 || got.Spans[0].Refused != 3 || got.Seconds < 3 {
			t.Errorf("%+v", got)
		}
	})
}

// A limit consists of a name, a grade and a count.
func TestParseLimit(t *testing.T) {
	for text, want := range map[string]collector.Limit{
		"GET /search qps 300":       {Resource: "GET /search", Count: 300},
		"  * concurrency  0 ":       {Resource: "*", Grade: collector.Concurrency},
		"a qps 1 qps 2":             {Resource: "a qps 1", Count: 2},
		"qps 3":                     {},
		"GET /search qps -1":        {},
		"GET /search rate 3":        {},
		"a qps 1234567890123456789": {},
	} {
		got, err := ParseLimit(text)
		if got != want || (err == nil) != (want != collector.Limit{}) ||
			err != nil && !strings.Contains(err.Error(), LimitHelp) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
