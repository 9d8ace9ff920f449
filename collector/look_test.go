package collector_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

var really = flag.Duration("really", 0, "measure what is seen in flight for so long in real time")

// flight is a call as the test saw it.
type flight struct {
	from, to time.Time
	resource int
	origin   int
}

// most is the most of the flights that are wanted in flight at once in each of n seconds.
func most(flights []flight, start time.Time, n int, wanted func(*flight) bool) []int64 {
	type event struct {
		at   time.Duration
		more int64
	}
	var events []event
	for i := range flights {
		if f := &flights[i]; wanted(f) {
			events = append(events, event{f.from.Sub(start), 1}, event{f.to.Sub(start), -1})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	most, flying, second := make([]int64, n), int64(0), 0
	for _, e := range events {
		for ; second < n && e.at >= time.Duration(second+1)*time.Second; second++ {
			if second+1 < n {
				most[second+1] = flying
			}
		}
		flying += e.more
		if second < n {
			most[second] = max(most[second], flying)
		}
	}
	return most
}

// sums adds up numbers of seconds.
func sums(ms []node.MetricNode, of func(node.MetricNode) float64) (sum float64) {
	for _, m := range ms {
		sum += of(m)
	}
	return sum
}

// load makes calls of 50 resources by three origins for a number of seconds, 4 a second of each resource that take 30 ms on
// average, and compares what views have seen at most with the truth.
func load(t *testing.T, seconds int, tolerance float64) {
	c := newCollector(t, collector.Options{})
	const resources, origins = 50, 3
	names := make([]string, resources)
	for i := range names {
		names[i] = fmt.Sprint("resource ", i)
	}
	begin := time.Now().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(begin))
	var mu sync.Mutex
	var flights []flight
	var wg sync.WaitGroup
	for i := range resources {
		for k := range origins {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), uint64(k)))
				pause := func(mean time.Duration) time.Duration {
					return time.Duration(random.ExpFloat64() * float64(mean))
				}
				for {
					time.Sleep(pause(origins * time.Second / 4))
					if time.Since(begin) > time.Duration(seconds)*time.Second {
						return
					}
					rt := pause(30 * time.Millisecond)
					wg.Go(func() {
						f := flight{from: time.Now(), resource: i, origin: k}
						_, e, _ := c.Enter(context.Background(), names[i], collector.Inbound(), collector.Origin(fmt.Sprint(k)), collector.Entrance("http"))
						time.Sleep(rt)
						f.to = time.Now()
						e.Exit(nil)
						mu.Lock()
						flights = append(flights, f)
						mu.Unlock()
					})
				}
			})
		}
	}
	time.Sleep(time.Until(begin.Add(time.Duration(seconds)*time.Second + time.Second)))
	wg.Wait()
	compare := func(name string, tolerance float64, views []collector.View, wanted func(int) func(*flight) bool) {
		var want, got, average float64
		for i, v := range views {
			for _, n := range most(flights, begin, seconds, wanted(i)) {
				want += float64(n)
			}
			ms := v.Seconds(begin, begin.Add(time.Duration(seconds)*time.Second))
			got += sums(ms, func(m node.MetricNode) float64 { return float64(m.InFlightMax) })
			average += sums(ms, node.MetricNode.InFlightAvg)
		}
		n := float64(seconds * len(views))
		t.Logf("%s: %.2f at most, and shown %.2f (%.1f%%); on average %.3f", name, want/n, got/n, 100*got/want-100, average/n)
		if got < want*(1-tolerance) || got > want*(1+tolerance) {
			t.Errorf("%s: %.2f at most in a second, and shown %.2f", name, want/n, got/n)
		}
	}
	all := func(int) func(*flight) bool { return func(*flight) bool { return true } }
	compare("the process", tolerance, []collector.View{c.Tree().View()}, all)
	compare("inbound", tolerance, []collector.View{c.Inbound()}, all)
	compare("an entrance", tolerance, []collector.View{c.Tree().Children()[0].View()}, all)
	var list, byOrigin []collector.View
	for i := range resources {
		list = append(list, c.Resource(names[i]).View())
		byOrigin = append(byOrigin, c.Resource(names[i]).Origin("1"))
	}
	compare("a resource", tolerance, list, func(i int) func(*flight) bool { return func(f *flight) bool { return f.resource == i } })
	compare("an origin", tolerance, byOrigin, func(i int) func(*flight) bool {
		return func(f *flight) bool { return f.resource == i && f.origin == 1 }
	})
	var leaves float64
	for i := range resources {
		for k := range origins {
			leaves += sums(c.Resource(names[i]).Origin(fmt.Sprint(k)).Seconds(begin, begin.Add(time.Duration(seconds)*time.Second)),
				func(m node.MetricNode) float64 { return float64(m.InFlightMax) })
		}
	}
	t.Logf("the sum of what leaves had at most: %.2f", leaves/float64(seconds))
}

// What 150 leaves have in flight together at most is seen, though no leaf knows it: the sum of what each has at most is seven
// times as much.
func TestTheMostOfManyLeavesIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { load(t, 20, 0.05) })
}

// The same in real time, where looks are not for nothing.
func TestTheMostOfManyLeavesIsSeenReally(t *testing.T) {
	if *really == 0 {
		t.Skip("needs -really")
	}
	load(t, int(*really/time.Second), 0.05)
}
