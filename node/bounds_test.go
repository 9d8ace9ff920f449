package node_test

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// tallies counts the calls in flight of several leaves, and of all leaves together, as a service could count them. The
// inner count contains the calls between Enter and Exit. The outer count also contains the calls that are within Enter
// or Exit:
//
//	outer +1   Enter   inner +1   ...   inner -1   Exit   outer -1
//
// The clock and the counts change only under mu. Each change of a count therefore belongs to exactly one second, and
// the maximum of each second is exact.
type tallies struct {
	clock atomic.Int64 // changes only while mu is held

	mu      sync.Mutex
	second  int64
	now     []tally
	highest [][]tally // highest counts, by second and leaf; the last tally of each second is for all leaves together
}

type tally struct{ inner, outer int64 }

// add adds n to the counts of a leaf, and to the counts of all leaves together. The parameter leaf is the index of the
// leaf.
func (c *tallies) add(leaf int, n tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range []int{leaf, len(c.now) - 1} {
		now, most := &c.now[i], &c.highest[c.second][i]
		now.inner, now.outer = now.inner+n.inner, now.outer+n.outer
		most.inner, most.outer = max(most.inner, now.inner), max(most.outer, now.outer)
	}
}

// tick moves the clock forward by d, which must be less than a second.
func (c *tallies) tick(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock.Add(int64(d)) / int64(time.Second); now > c.second {
		c.second = now
		c.highest = append(c.highest, slices.Clone(c.now))
	}
}

// The true maximum in flight of each second lies between the two bounds in the record, for each leaf and for all leaves
// together. The leaves have several stripes. Calls turn buckets and have late stamps. Some calls are batches, some are
// backdated or resumed, and some use a loan.
//
// The test does not know the true maximum, but it knows the maxima of the inner and the outer count of tallies. The
// maximum of the inner count may be below the lower bound, because the inner count misses calls that are within Enter
// or Exit. It is never above the upper bound. The maximum of the outer count is never below the lower bound.
func TestMaxInFlightIsBetweenItsBounds(t *testing.T) {
	const leaves, writers = 3, 16
	seconds := int64(150)
	if testing.Short() {
		seconds = 30
	}
	truth := &tallies{now: make([]tally, leaves+1), highest: [][]tally{make([]tally, leaves+1)}}
	line := leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return time.Duration(truth.clock.Load()) },
		Wall: func() time.Time { return epoch.Add(time.Duration(truth.clock.Load())) },
	})
	config, err := node.NewConfig(line, node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := line.At(0).Index
	views := make([]*node.View, leaves+1)
	for i := range views {
		views[i] = node.NewView(config, 0)
	}
	list := make([]*node.Statistic, leaves)
	for i := range list {
		list[i] = node.New(config, 0)
		list[i].Grow()
		views[i].Add(list[i])
		views[leaves].Add(list[i])
	}

	var wg sync.WaitGroup
	var stop atomic.Bool
	// entering has an element for each writer. While the writer is within Enter, Resume or Occupy, the element is 1
	// plus the number of the second in which this method call began. Otherwise the element is 0.
	var entering [writers]atomic.Int64
	for w := range writers {
		wg.Go(func() {
			leaf := w % leaves
			s := list[leaf]
			for i := w; !stop.Load(); i++ {
				truth.add(leaf, tally{outer: 1})
				entering[w].Store(truth.clock.Load()/int64(time.Second) + 1)
				now := line.Now()
				var c node.Call
				switch i % 32 {
				case 1:
					c = s.Enter(now, 3)
				case 2:
					c = s.Resume(now, 1)
				case 3:
					bucket := line.At(now).LineTime(now).Truncate(500*ms) + 500*ms
					loan, ok := s.Occupy(now, bucket, 1)
					entering[w].Store(0)
					for ok && c.IsZero() {
						if stop.Load() && loan.Cancel(line.Now()) {
							break
						}
						runtime.Gosched()
						c, _ = loan.Call(line.Now(), now)
					}
				default:
					c = s.Enter(now, 1)
				}
				entering[w].Store(0)
				if !c.IsZero() {
					truth.add(leaf, tally{inner: 1})
					if i%8 == 0 {
						c.Backdate(now.Add(-100 * ms))
					}
					for range i % 4 {
						runtime.Gosched()
					}
					truth.add(leaf, tally{inner: -1})
					c.End(false, 0)
				}
				truth.add(leaf, tally{outer: -1})
			}
		})
	}
	// crossing reports whether a writer called Enter, Resume or Occupy in an earlier second and is still within this
	// method. In this case, the test waits before it ends the current second. If one call of Enter lasted across the
	// ends of two seconds, the lower bound of the maximum in flight could exceed the true maximum; see the caveats in
	// the package comment.
	crossing := func() bool {
		for w := range entering {
			if since := entering[w].Load() - 1; since >= 0 && since < truth.second {
				return true
			}
		}
		return false
	}
	for truth.second < seconds {
		for (truth.clock.Load()+int64(43*ms))/int64(time.Second) > truth.second && crossing() {
			runtime.Gosched()
		}
		truth.tick(43 * ms)
		time.Sleep(20 * time.Microsecond)
		if truth.second%16 == 5 {
			list[truth.second%leaves].Reseed()
		}
		if truth.second == seconds/2 {
			list[0].Grow()
		}
	}
	stop.Store(true)
	wg.Wait()

	var sum node.MetricNode
	var truths tally
	var above int
	for i, v := range views {
		for second := range seconds {
			m, ok := v.Second(first + second)
			if !ok {
				t.Fatalf("second %d cannot be read", second)
			}
			most := truth.highest[second][i]
			if m.InFlightMax > most.outer || m.InFlightMaxUpper < most.inner || m.InFlightMax > m.InFlightMaxUpper {
				t.Errorf("view %d, second %d: from %d to %d in flight, and the calls counted %+v",
					i, second, m.InFlightMax, m.InFlightMaxUpper, most)
			}
			if m.InFlightMax > most.inner {
				above++
			}
			if i == leaves {
				sum.InFlightMax += m.InFlightMax
				sum.InFlightMaxUpper += m.InFlightMaxUpper
				truths.inner, truths.outer = truths.inner+most.inner, truths.outer+most.outer
			}
		}
	}
	mean := func(n int64) float64 { return float64(n) / float64(seconds) }
	t.Logf("all leaves, on average over %d seconds: at least %.1f, inside %.1f, around %.1f, at most %.1f", seconds,
		mean(sum.InFlightMax), mean(truths.inner), mean(truths.outer), mean(sum.InFlightMaxUpper))
	t.Logf("the lower bound was above a count inside in %d of %d seconds, and never above a count around",
		above, len(views)*int(seconds))
}
