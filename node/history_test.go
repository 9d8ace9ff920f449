package node_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// A second stays readable and unchanged until it is older than the history, even if it is older than a minute.
func TestHistory(t *testing.T) {
	r := newRig(t, node.Options{History: 5 * time.Minute})
	want := map[int64]node.MetricNode{}
	for i := range int64(1000) {
		at := time.Duration(i) * time.Second
		if i%3 != 0 && (i < 400 || i > 470) {
			r.call(at, time.Duration(i)*ms/10, i%7 == 0)
		}
		if i == 100 {
			r.pass(at, 3) // these calls stay in flight
		}
		r.Seal(at + time.Second)
		want[i] = r.second(t, i)
		for _, back := range []int64{0, 1, 59, 60, 61, 150, 299, 300} {
			if got, ok := r.Second(r.zero + i - back); ok != (i-back >= 0) || ok && got != want[i-back] {
				t.Fatalf("at %d: second %d was %+v and is %+v (%t)", i, i-back, want[i-back], got, ok)
			}
		}
		if _, ok := r.Second(r.zero + i - 302); ok && (i < 400 || i > 780) {
			t.Fatalf("at %d: second %d can be read", i, i-302)
		}
	}
}

// Seconds can be read in any order, while later seconds are added and old ones are dropped. Each reader gets the same
// records.
func TestHistoryIsReadInAnyOrder(t *testing.T) {
	const history = 200
	r := newRig(t, node.Options{History: history * time.Second})
	random := rand.New(rand.NewPCG(5, 2))
	want := map[int64]node.MetricNode{}
	for i := range int64(3000) {
		if at := time.Duration(i) * time.Second; random.IntN(3) > 0 && i%700 > 60 {
			r.call(at, time.Duration(random.IntN(1000))*ms/1000, false)
		}
		r.Seal(time.Duration(i+1) * time.Second)
		want[i] = r.second(t, i)
		for range random.IntN(4) {
			if i%500 < 250 { // for 250 s, which is longer than the history, only the newest second is read
				break
			}
			from := max(i-random.Int64N(history), 0)
			to := min(from+1+random.Int64N(9), i+1)
			for _, got := range r.view.AppendSeconds(nil, r.zero+from, r.zero+to) {
				if got != want[from] {
					t.Fatalf("at %d: second %d was %+v and is %+v", i, from, want[from], got)
				}
				from++
			}
			if from != to {
				t.Fatalf("at %d: second %d is missing", i, from)
			}
		}
	}
}

// The record of a busy second takes at most 28 bytes in the history. (The two histories that the test compares have the
// same number of histograms.)
func TestHistoryIsSmall(t *testing.T) {
	const leaves, seconds = 50, 600
	heap := func(history time.Duration) int64 {
		var list []*rig
		for range leaves {
			r := newRig(t, node.Options{History: history})
			for i := range 60 + seconds {
				for n := range 5 {
					r.call(time.Duration(i)*time.Second+time.Duration(n*150)*ms, time.Duration(3+n*n)*ms, n == 3)
				}
			}
			list = append(list, r)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(list)
		return int64(m.HeapAlloc)
	}
	without := heap(time.Minute)
	if each := float64(heap(11*time.Minute)-without) / (leaves * seconds); each > 28 {
		t.Errorf("%.1f bytes for each second", each)
	} else {
		t.Logf("%.1f bytes for each second", each)
	}
}

// [node.Options].Histograms affects only histograms. The histogram of a second can be read for the configured time, and
// at most two seconds longer.
func TestHistogramsAreKeptForTheConfiguredTime(t *testing.T) {
	const kept = 150
	random := rand.New(rand.NewPCG(3, 1))
	short := newRig(t, node.Options{History: 5 * time.Minute})
	long := newRig(t, node.Options{History: 5 * time.Minute, Histograms: kept * time.Second})
	rts := map[int64][]time.Duration{} // response times by second
	for i := range int64(700) {
		at := time.Duration(i) * time.Second
		for range random.IntN(4) {
			rt := time.Duration(random.IntN(900)) * ms
			rts[i] = append(rts[i], rt)
			at += ms
			short.call(at, rt, false)
			long.call(at, rt, false)
		}
		now := time.Duration(i+1) * time.Second
		short.Seal(now)
		long.Seal(now)
		if a, b := short.view.Minute(short.at(now)), long.view.Minute(long.at(now)); a != b {
			t.Fatalf("at %d: the minute is %+v and %+v", i, a, b)
		}
		if a, b := short.view.Snapshot(short.at(now), nil), long.view.Snapshot(long.at(now), nil); a != b {
			t.Fatalf("at %d: the snapshot is %+v and %+v", i, a, b)
		}
		if i%10 != 0 {
			continue
		}
		a := short.view.AppendSeconds(nil, short.zero, short.zero+i+1)
		if b := long.view.AppendSeconds(nil, long.zero, long.zero+i+1); !slices.Equal(a, b) {
			t.Fatalf("at %d: %d and %d seconds, or different ones", i, len(a), len(b))
		}
		from := max(i+1-kept, 0)
		hs := make([]node.Histogram, i+1-from)
		if known := long.view.Histograms(long.zero+from, hs); known > long.zero+from {
			t.Fatalf("at %d: histograms exist from %d on", i, known-long.zero)
		}
		for k := range hs {
			if second := from + int64(k); hs[k].Count() != int64(len(rts[second])) {
				t.Fatalf("at %d: second %d has %d, want %d", i, second, hs[k].Count(), len(rts[second]))
			}
		}
		var h node.Histogram
		if gone := from - 3; gone >= 0 && long.view.Histogram(long.zero+gone, long.zero+gone+1, &h) {
			t.Fatalf("at %d: second %d has a histogram", i, gone)
		}
	}
}

// An idle statistic drops no histograms. A delayed reader therefore gets all histograms that the statistic still had
// when it became idle.
func TestHistogramsOfAnIdleResource(t *testing.T) {
	r := newRig(t, node.Options{})
	for i := range 100 {
		r.call(time.Duration(i)*time.Second, ms, false)
	}
	r.Seal(130 * time.Second)
	hs := make([]node.Histogram, 100)
	known := r.view.Histograms(r.zero+20, hs) - r.zero
	calls := int64(0)
	for i := range hs {
		calls += hs[i].Count()
	}
	if known != 40 || calls != 60 {
		t.Errorf("histograms from %d on, %d calls", known, calls)
	}
}

// Histograms can be added even if they have no common cell.
func TestHistogramsOfShortAndLongCallsAddUp(t *testing.T) {
	r := newRig(t, node.Options{})
	r.call(0, ms, false)
	r.call(5*time.Second, 900*ms, false)
	r.Seal(10 * time.Second)
	var short, long node.Histogram
	if !r.view.Histogram(r.zero, r.zero+1, &short) || !r.view.Histogram(r.zero+5, r.zero+6, &long) {
		t.Fatal("the histograms are missing")
	}
	for name, sum := range map[string][2]*node.Histogram{
		"short and long": {&short, &long},
		"long and short": {&long, &short},
	} {
		var h node.Histogram
		h.Add(sum[0])
		h.Add(sum[1])
		if h.Count() != 2 || h.Quantile(.5) > 2*ms || h.Quantile(.99) < 800*ms {
			t.Errorf("%s: %d, %v, %v", name, h.Count(), h.Quantile(.5), h.Quantile(.99))
		}
		if sum[0].Count() != 1 || sum[1].Count() != 1 {
			t.Errorf("%s: %d and %d", name, sum[0].Count(), sum[1].Count())
		}
	}
	short.Add(&long)
	if short.Count() != 2 {
		t.Errorf("%d response times, want 2", short.Count())
	}
}
