package node_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// A counter always equals the number of calls in flight or waiting, summed over the statistics that it follows. The
// test uses calls of all kinds, which enter before or after SetCounters.
func TestCountersAgainstOracle(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		r := newRig(t, node.Options{})
		now := r.line.Now()
		stats := []*node.Statistic{node.New(r.config, now), node.New(r.config, now)}
		counters := [3]atomic.Int64{}
		following := [2][3]bool{}
		type inFlight struct {
			of   int
			call *node.Call
			loan *node.Loan
		}
		var calls []inFlight
		for range 300 {
			i := random.IntN(2)
			s := stats[i]
			switch random.IntN(9) {
			case 0:
				c := s.Enter(now, 1)
				calls = append(calls, inFlight{of: i, call: &c})
			case 1:
				c := s.Enter(now, 5)
				calls = append(calls, inFlight{of: i, call: &c})
			case 2:
				c := s.Hold(now).Enter(1)
				calls = append(calls, inFlight{of: i, call: &c})
			case 3:
				c := s.Resume(now, 2)
				calls = append(calls, inFlight{of: i, call: &c})
			case 4:
				bucket := r.line.At(now).LineTime(now).Truncate(500*ms) + 500*ms
				if l, ok := s.Occupy(now, bucket, 1); ok {
					calls = append(calls, inFlight{of: i, loan: &l})
				}
			case 5, 6:
				if len(calls) == 0 {
					continue
				}
				k := random.IntN(len(calls))
				x := calls[k]
				if x.loan != nil && !x.loan.Cancel(now) {
					c, ok := x.loan.Call(now, now)
					if !ok {
						t.Fatal("a loan can neither be canceled nor become a call")
					}
					x.call = &c
				}
				if x.call != nil {
					x.call.Exit(now, false, 0)
					x.call.Exit(now, false, 0)
				}
				calls = append(calls[:k], calls[k+1:]...)
			case 7:
				var list []*atomic.Int64
				for w := range counters {
					if following[i][w] = random.IntN(2) == 0; following[i][w] {
						list = append(list, &counters[w])
					}
				}
				s.SetCounters(list...)
			case 8:
				if random.IntN(10) == 0 {
					s.Grow()
				}
				now = r.at(time.Duration(now) + time.Duration(random.Int64N(int64(700*ms))))
			}
			for w := range counters {
				var want int64
				for _, x := range calls {
					if following[x.of][w] {
						want++
					}
				}
				if got := counters[w].Load(); got != want {
					t.Fatalf("seed %d: counter %d is %d, want %d", seed, w, got, want)
				}
			}
		}
	}
}

// Counters are set and removed while calls enter without a lock. The counters count each call exactly once.
func TestCountersUnderConcurrentCalls(t *testing.T) {
	line := leap.NewTimeline(leap.Clock{})
	config, err := node.NewConfig(line, node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := node.New(config, line.Now())
	var counters [2]atomic.Int64
	length := 2 * time.Second
	if testing.Short() {
		length = 300 * ms
	}
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	var kept [8][]*node.Call
	for g := range kept {
		wg.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				c := new(node.Call)
				switch i % 3 {
				case 0, 1:
					*c = s.Enter(line.Now(), 1)
				case 2:
					*c = s.Hold(line.Now()).Enter(1)
				}
				if i%1000 == 0 && len(kept[g]) < 5 {
					kept[g] = append(kept[g], c)
					continue
				}
				c.End(false, 0)
			}
		})
	}
	wg.Go(func() {
		for i := 0; time.Now().Before(end); i++ {
			switch i % 4 {
			case 0:
				s.SetCounters(&counters[0])
			case 1:
				s.SetCounters(&counters[1], &counters[0])
			case 2:
				s.SetCounters()
			case 3:
				s.SetCounters(&counters[1])
			}
			for w := range counters {
				if n := counters[w].Load(); n < -8 {
					t.Errorf("%d in flight", n)
				}
			}
		}
		s.SetCounters(&counters[0], &counters[1])
	})
	wg.Wait()
	want := int64(0)
	for g := range kept {
		want += int64(len(kept[g]))
	}
	for w := range counters {
		if got := counters[w].Load(); got != want || want == 0 {
			t.Errorf("counter %d is %d, want %d", w, got, want)
		}
	}
	for g := range kept {
		for i := range kept[g] {
			kept[g][i].End(false, 0)
		}
	}
	for w := range counters {
		if got := counters[w].Load(); got != 0 {
			t.Errorf("counter %d is %d after all calls have left", w, got)
		}
	}
}
