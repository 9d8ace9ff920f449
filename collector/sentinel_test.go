package collector_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// stage is a Collector with a clock that the test sets. Each row of the tables below runs on a new stage.
type stage struct {
	*testing.T
	*collector.Collector
	clock *fakeClock
}

func (s stage) enter(name string, opts ...collector.CallOption) *collector.Entry {
	s.Helper()
	_, e, err := s.Enter(context.Background(), name, opts...)
	if err != nil {
		s.Fatal(err)
	}
	return &e
}

func (s stage) equal(what string, got, want any) {
	s.Helper()
	if got != want {
		s.Errorf("%s is %v, want %v", what, got, want)
	}
}

// row describes a behaviour, and has a function that checks it.
type row struct {
	behaviour string
	play      func(stage)
}

func playAll(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.behaviour, func(t *testing.T) {
			c, f := clocked(t, collector.Options{})
			r.play(stage{t, c, f})
		})
	}
}

// In the cases of this table, package collector behaves like Sentinel's StatisticNode, node hierarchy, StatisticSlot
// and tryOccupyNext.
func TestBehavesLikeSentinel(t *testing.T) {
	playAll(t, []row{
		{"pass, block, success, exception and occupied QPS are the counts of the window, per second", func(s stage) {
			for i := range 4 {
				e := s.enter("a")
				s.clock.add(10 * ms)
				e.Exit([]error{nil, errBad}[i%2])
			}
			s.Resource("a").Block("")
			w := s.Resource("a").Window()
			s.equal("pass", w.PassQPS(), 4.0)
			s.equal("block", w.Block, int64(1))
			s.equal("success", w.Complete, int64(4))
			s.equal("exception", w.Exception, int64(2))
			s.equal("occupied", w.OccupiedPass, int64(0))
			s.equal("total", w.Total(), int64(5))
		}},
		{"the totals of the minute include the open second", func(s stage) {
			s.enter("a")
			s.clock.set(59 * time.Second)
			s.enter("a")
			s.equal("passes in 0 to 59 s", s.Resource("a").View().Minute().Pass, int64(2))
			s.clock.set(60 * time.Second)
			s.equal("passes in 1 to 60 s", s.Resource("a").View().Minute().Pass, int64(1))
		}},
		{"maxSuccessQps is the highest number of completions in a bucket", func(s stage) {
			for _, at := range []time.Duration{100 * ms, 600 * ms, 700 * ms, 800 * ms} {
				s.clock.set(at)
				s.enter("a").Exit(nil)
			}
			s.equal("the highest", s.Resource("a").Window().MaxComplete, int64(3))
		}},
		{"the previous second is a complete second", func(s stage) {
			for _, at := range []time.Duration{0, 400 * ms, 900 * ms, 1100 * ms} {
				s.clock.set(at)
				s.enter("a")
			}
			s.equal("passes", s.Resource("a").Snapshot(nil).Last.Pass, int64(3))
		}},
		{"a resource has one node for each entrance, one for all calls, and one for each origin", func(s stage) {
			s.enter("a", collector.Entrance("x"), collector.Origin("o1"))
			s.enter("a", collector.Entrance("x"), collector.Origin("o2"))
			s.enter("a", collector.Entrance("y"), collector.Origin("o1"))
			got := map[string]int64{}
			for name, v := range s.Resource("a").Entrances() {
				got["in "+name] = v.Window().Pass
			}
			for name, v := range s.Resource("a").Origins() {
				got["from "+name] = v.Window().Pass
			}
			s.equal("nodes", fmt.Sprint(got), "map[from o1:2 from o2:1 in x:2 in y:1]")
			s.equal("in total", s.Resource("a").Window().Pass, int64(3))
		}},
		{
			"each inbound request counts once in the inbound total, even if calls below it are marked inbound",
			func(s stage) {
				ctx, _, _ := s.Enter(context.Background(), "a", collector.Inbound())
				s.Enter(ctx, "b", collector.Inbound())
				inner, _, _ := s.Enter(ctx, "b")
				s.Enter(inner, "b", collector.Inbound())
				out, _, _ := s.Enter(ctx, "c", collector.Outbound())
				s.equal("inbound", s.Inbound().Window().Pass, int64(1))
				s.Enter(out, "b", collector.Inbound()) // the request has left the process and enters it again
				s.equal("inbound", s.Inbound().Window().Pass, int64(2))
				s.equal("calls of b", s.Resource("b").Window().Pass, int64(4))
			},
		},
		{"an entrance counts its outermost calls, not the calls below them", func(s stage) {
			ctx, _, _ := s.Enter(context.Background(), "a", collector.Entrance("x"))
			s.Enter(ctx, "b")
			s.enter("c", collector.Entrance("x"))
			s.equal("entrance", s.Tree().Children()[0].View().Window().Pass, int64(2))
			s.equal("root", s.Tree().View().Window().Pass, int64(2))
		}},
		{"all calls of a chain have the entrance of the outermost call", func(s stage) {
			ctx, _, _ := s.Enter(context.Background(), "a", collector.Entrance("x"))
			s.Enter(ctx, "b", collector.Entrance("y"))
			s.equal("tree", tree(s.Tree(), ""), "machine-root\n  x\n    a\n      b\n")
		}},
		{"nested calls inherit the origin", func(s stage) {
			ctx, _, _ := s.Enter(context.Background(), "a", collector.Origin("web"))
			s.Enter(ctx, "b")
			s.equal("origins of b", fmt.Sprint(origins(s.Resource("b"))), "[web]")
		}},
		{"pass and in flight count at entry; rt, success and exception at exit", func(s stage) {
			e := s.enter("a")
			w := s.Resource("a").Window()
			s.equal("pass", w.Pass, int64(1))
			s.equal("success before", w.Complete, int64(0))
			s.equal("in flight before", s.Resource("a").InFlight(), int64(1))
			s.clock.add(30 * ms)
			e.Exit(errBad)
			w = s.Resource("a").Window()
			s.equal("success, which includes failed calls", w.Complete, int64(1))
			s.equal("exception", w.Exception, int64(1))
			s.equal("rt", w.AvgRT(), 30*ms)
			s.equal("in flight", s.Resource("a").InFlight(), int64(0))
		}},
		{"success counts in the second of the exit, and pass in the second of the entry", func(s stage) {
			e := s.enter("a")
			s.clock.set(1500 * ms)
			e.Exit(nil)
			s.clock.set(2 * time.Second)
			open := s.Seal().Open
			first, _ := s.Resource("a").View().Node().Second(open - 2)
			second, _ := s.Resource("a").View().Node().Second(open - 1)
			s.equal("passes", fmt.Sprint(first.Pass, second.Pass), "1 0")
			s.equal("successes", fmt.Sprint(first.Complete, second.Complete), "0 1")
		}},
		{"a refused call is a block in every node, with its batch, and has no rt", func(s stage) {
			limit(s.T, s.Collector, collector.Limit{Resource: "a", Count: 0})
			_, e, err := s.Enter(
				context.Background(),
				"a",
				collector.Batch(3),
				collector.Inbound(),
				collector.Entrance("x"),
				collector.Origin("o"),
			)
			s.equal("refused", errors.Is(err, collector.ErrBlocked), true)
			e.Exit(nil)
			want := node.Counts{Block: 3}
			s.equal("cluster", s.Resource("a").Window().Counts, want)
			s.equal("origin", s.Resource("a").Origin("o").Window().Counts, want)
			s.equal("inbound", s.Inbound().Window().Counts, want)
			s.equal("root", s.Tree().View().Window().Counts, want)
			s.equal("entrance", s.Tree().Children()[0].View().Window().Counts, want)
		}},
		{"an entry that ends with the block of another call is no exception", func(s stage) {
			e := s.enter("a")
			e.Exit(fmt.Errorf("below: %w", &collector.BlockedError{}))
			s.equal("exceptions", s.Resource("a").Window().Exception, int64(0))
		}},
		{"rt includes the wait for a bucket", func(s stage) {
			synctest.Test(s.T, func(t *testing.T) {
				c := newCollector(t, collector.Options{})
				limit(t, c, collector.Limit{Resource: "a", Count: 1})
				c.Resource("a").Enter()
				time.Sleep(700 * ms)
				_, e, err := c.Enter(t.Context(), "a", collector.Prioritized())
				if err != nil {
					t.Fatal(err)
				}
				e.Exit(nil)
				if rt := c.Resource("a").Window().RTMax; rt != 300*ms {
					t.Errorf("rt %v", rt)
				}
			})
		}},
		{"a call passes if the passes in the window, including its own, are within the limit", func(s stage) {
			limit(s.T, s.Collector, collector.Limit{Resource: "a", Count: 5})
			_, _, err := s.Enter(context.Background(), "a", collector.Batch(6))
			s.equal("a batch of 6 is refused", errors.Is(err, collector.ErrBlocked), true)
			s.enter("a", collector.Batch(3))
			s.enter("a", collector.Batch(2))
			s.clock.set(999 * ms)
			_, _, err = s.Enter(context.Background(), "a")
			s.equal("a sixth call is refused", errors.Is(err, collector.ErrBlocked), true)
			s.clock.set(time.Second)
			s.enter("a", collector.Batch(5))
		}},
		{"tryOccupyNext: wait for the next bucket if enough passes leave the window", func(s stage) {
			for _, tc := range []struct {
				// The field old is the number of passes in the previous bucket, and young is the number of passes in
				// the open bucket. The field borrowed is the number of passes that are already borrowed from the next
				// bucket. A batch of n calls tries to borrow n passes, and ok is the expected result. The limit is 10.
				old, young, borrowed int64
				n                    int64
				ok                   bool
			}{
				{10, 0, 0, 10, true},  // all 10 passes of the previous bucket leave the window
				{10, 0, 0, 11, false}, // a batch of 11 exceeds the limit of 10
				{0, 10, 0, 1, false},  // the 10 passes of the open bucket stay in the window
				{4, 6, 0, 4, true},
				{4, 6, 0, 5, false},
				{4, 6, 3, 1, true},
				{4, 6, 4, 1, false}, // the 4 borrowed passes use the quota of the 4 passes that leave the window
				{0, 0, 10, 1, false},
			} {
				length := 500 * ms
				q := node.NewQuota(shape(s.T), 10, false)
				q.Pass(10*length, tc.old)
				q.Pass(11*length, tc.young)
				if tc.borrowed > 0 {
					q.Borrow(11*length, 12*length, tc.borrowed)
				}
				bucket, ok := q.TryOccupyNext(11*length, 11*length, tc.n)
				if ok != tc.ok || ok && bucket != 12*length {
					s.Errorf("%+v: %v, %t", tc, bucket, ok)
				}
				s.equal("waiting", q.Waiting(11*length), tc.borrowed)
			}
		}},
	})
}

func shape(t testing.TB) *node.Config {
	t.Helper()
	s, err := node.NewConfig(leap.NewTimeline(leap.Clock{}), node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// In the cases of this table, package collector differs from Sentinel on purpose. Each row states the reason.
func TestDifferencesFromSentinel(t *testing.T) {
	playAll(t, []row{
		{
			"an idle node reads as zero, because a minimum rt of 5000 and a maximum of 2 per second look measured",
			func(s stage) {
				w := s.Resource("a").Window()
				_, there := w.MinRT()
				s.equal("window", w.Counts, node.Counts{})
				s.equal("minimum", there, false)
				s.equal("best", w.MaxComplete, int64(0))
			},
		},
		{"times are in nanoseconds, because a millisecond is too coarse for fast calls", func(s stage) {
			e := s.enter("a")
			s.clock.add(300)
			e.Exit(nil)
			s.equal("rt", s.Resource("a").Window().RTMin, 300*time.Nanosecond)
		}},
		{"a batch counts n calls with its rt, because the average must be per call", func(s stage) {
			e := s.enter("a", collector.Batch(2))
			s.clock.add(7 * ms)
			e.Exit(nil)
			e = s.enter("a")
			s.clock.add(4 * ms)
			e.Exit(nil)
			s.equal("average", s.Resource("a").Window().AvgRT(), 6*ms) // (2*7+4)/3; Sentinel: (7+4)/3 = 3.667
		}},
		{
			"an entrance has all counts, such as exceptions and rt, because a field that is always zero misleads",
			func(s stage) {
				e := s.enter("a", collector.Entrance("x"))
				s.clock.add(5 * ms)
				e.Exit(errBad)
				w := s.Tree().Children()[0].View().Window()
				s.equal("exceptions", w.Exception, int64(1))
				s.equal("shortest", w.RTMin, 5*ms)
				s.equal("best", w.MaxComplete, int64(1))
				s.equal("minute", s.Tree().Children()[0].View().Minute().Complete, int64(1))
			},
		},
		{
			"every node counts the pass of a prioritized call when it passes, because success must not exceed pass",
			func(s stage) {
				synctest.Test(s.T, func(t *testing.T) {
					c := newCollector(t, collector.Options{})
					limit(t, c, collector.Limit{Resource: "a", Count: 1})
					c.Resource("a").Enter()
					time.Sleep(800 * ms) // at 0.8 s, the call borrows a pass; it passes at 1.0 s, in the next second
					_, e, err := c.Enter(
						t.Context(),
						"a",
						collector.Prioritized(),
						collector.Inbound(),
						collector.Origin("o"),
						collector.Entrance("x"),
					)
					if err != nil {
						t.Fatal(err)
					}
					e.Exit(nil)
					time.Sleep(time.Second)
					open := c.Seal().Open
					for name, v := range map[string]collector.View{
						"cluster": c.Resource("a").View(), "origin": c.Resource("a").Origin("o"),
						"inbound": c.Inbound(),
						"root":    c.Tree().View(), "entrance": c.Tree().Children()[1].View(),
						"default": c.Tree().Children()[1].Children()[0].View(),
					} {
						m, ok := v.Node().Second(open - 1)
						if !ok || m.Pass != 1 || m.OccupiedPass != 1 || m.Complete != 1 {
							t.Errorf("%s: %+v, %t", name, m, ok)
						}
					}
				})
			},
		},
		{
			"a call that arrives when a bucket begins may wait half a second for the next one, as documented",
			func(s stage) {
				synctest.Test(s.T, func(t *testing.T) {
					c := newCollector(t, collector.Options{})
					limit(t, c, collector.Limit{Resource: "a", Count: 1})
					c.Resource("a").Enter()
					time.Sleep(500 * ms)
					begin := time.Now()
					_, _, err := c.Enter(t.Context(), "a", collector.Prioritized())
					if waited := time.Since(begin); err != nil || waited != 500*ms {
						t.Errorf("%v after %v", err, waited)
					}
				})
			},
		},
		{"a limit on concurrency counts a batch as one call in flight, because it is one", func(s stage) {
			limit(s.T, s.Collector, collector.Limit{Resource: "a", Grade: collector.Concurrency, Count: 1})
			s.enter("a", collector.Batch(5))
		}},
		{
			"outbound calls inherit no origin, because origins times resources fill the memory",
			func(s stage) {
				ctx, _, _ := s.Enter(context.Background(), "a", collector.Origin("web"))
				s.Enter(ctx, "b", collector.Outbound())
				s.equal("origins of b", fmt.Sprint(origins(s.Resource("b"))), "[]")
			},
		},
		{"context.Canceled is no exception, because a caller that left is not a failure of the callee", func(s stage) {
			s.enter("a").Exit(fmt.Errorf("x: %w", context.Canceled))
			s.enter("a").Exit(context.DeadlineExceeded)
			s.equal("exceptions", s.Resource("a").Window().Exception, int64(1))
		}},
		{
			"concurrency is never negative after panics, because exits without entries count nothing",
			func(s stage) {
				limit(s.T, s.Collector, collector.Limit{Resource: "refused", Count: 0})
				for range 3 {
					func() {
						defer func() { _ = recover() }()
						_, e, _ := s.Enter(context.Background(), "refused")
						defer e.Exit(errBad)
						panic("boom")
					}()
					func() {
						defer func() { _ = recover() }()
						_ = s.Resource("a").Do(func() error { panic("boom") })
					}()
					var none collector.Entry
					none.Exit(errBad)
				}
				s.equal("refused", s.Resource("refused").Snapshot(nil).InFlight, int64(0))
				s.equal("completions without a pass", s.Resource("refused").Snapshot(nil).Total.Complete, int64(0))
				s.equal("in flight", s.Resource("a").InFlight(), int64(0))
				s.equal("exceptions", s.Resource("a").Window().Exception, int64(3))
			},
		},
		{"calls of names beyond the limits are counted, because lost calls must be visible", func(s stage) {
			c, _ := clocked(s.T, collector.Options{MaxResources: 1})
			c.Resource("a").Enter()
			c.Resource("b").Enter()
			s.equal("overflow", c.Health().Overflow, int64(1))
			s.equal("other", c.Resource(collector.Other).Window().Pass, int64(1))
		}},
	})
}
