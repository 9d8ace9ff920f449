package node_test

import (
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// watched is a rig with several leaves that are looked at, each in the view of all and in one of its own half.
type watched struct {
	*rig
	leaves []*node.Statistic
	list   []*node.Watched
	all    *node.View
	halves [2]*node.View
}

func newWatched(t *testing.T, n int) *watched {
	r := newRig(t, node.Options{})
	w := &watched{rig: r, all: node.NewView(r.shape, 0)}
	for i := range w.halves {
		w.halves[i] = node.NewView(r.shape, 0)
	}
	for i := range n {
		s := node.New(r.shape, 0)
		w.all.Add(s)
		w.halves[i%2].Add(s)
		w.leaves = append(w.leaves, s)
		w.list = append(w.list, node.NewWatched(s, []*node.View{w.all, w.halves[i%2]}))
	}
	r.shape.Watch(w.list, false)
	return w
}

// call makes a call of a leaf, from one reading to another, and looks before it ends.
func (w *watched) call(leaf int, from, to time.Duration) {
	c := w.leaves[leaf].Enter(w.at(from), 1)
	w.shape.Look(w.at(to))
	c.Exit(w.at(to), false)
}

func most(t *testing.T, v *node.View, index int64) int64 {
	t.Helper()
	m, ok := v.Second(index)
	if !ok {
		t.Fatalf("second %d cannot be read", index)
	}
	if all := v.AppendSeconds(nil, index-2, index+1); all[len(all)-1] != m {
		t.Errorf("one by one %+v, together %+v", m, all[len(all)-1])
	}
	return m.InFlightMax
}

// Leaves that take turns have one call in flight together, not one each; those that meet have as many as meet.
func TestLooksSeeWhatLeavesHaveTogether(t *testing.T) {
	w := newWatched(t, 6)
	for i := range 6 {
		w.call(i, time.Duration(i)*100*ms, time.Duration(i)*100*ms+50*ms)
	}
	var calls []func(leap.Reading, bool) int64
	for i := range 4 {
		at := w.at(1200*ms + time.Duration(i)*10*ms)
		c := w.leaves[i].Enter(at, 1)
		calls = append(calls, c.Exit)
		w.shape.Look(at)
	}
	for i, exit := range calls {
		exit(w.at(1300*ms+time.Duration(i)*10*ms), false)
	}
	w.open(3 * time.Second)
	for i, want := range []int64{1, 4} {
		if got := most(t, w.all, w.zero+int64(i)); got != want {
			t.Errorf("second %d: %d in flight at most, want %d", i, got, want)
		}
		if got := most(t, w.halves[0], w.zero+int64(i)); got != (want+1)/2 {
			t.Errorf("second %d: half the leaves had %d in flight at most, want %d", i, got, (want+1)/2)
		}
	}
	w.open(100 * time.Second) // out of the minute, and in the history
	w.call(0, 100*time.Second, 100*time.Second+ms)
	if got := most(t, w.all, w.zero+1); got != 4 {
		t.Errorf("later: %d in flight at most", got)
	}
}

// A call that ends looks while it is still in flight: afterwards one is missing.
func TestACallLooksBeforeItEnds(t *testing.T) {
	w := newWatched(t, 2)
	var calls [2]node.Call
	for i := range calls {
		w.open(time.Duration(100+i) * ms)
		calls[i] = w.leaves[i].Begin()
	}
	for i := range calls {
		w.open(time.Duration(300+i) * ms)
		calls[i].End(false)
	}
	w.open(2 * time.Second)
	if got := most(t, w.all, w.zero); got != 2 {
		t.Errorf("%d in flight at most, want 2", got)
	}
}

// Without looks it is what is surely so, and nothing beyond.
func TestWithoutLooksTheMostIsWhatIsSure(t *testing.T) {
	r := newRig(t, node.Options{})
	v := node.NewView(r.shape, 0)
	var leaves [3]*node.Statistic
	for i := range leaves {
		leaves[i] = node.New(r.shape, 0)
		v.Add(leaves[i])
	}
	in := func(leaf int, from, to time.Duration) {
		c := leaves[leaf].Enter(r.at(from), 1)
		c.Exit(r.at(to), false)
	}
	in(0, 0, 300*ms) // one after the other: one at most
	in(1, 300*ms, 600*ms)
	in(2, 600*ms, 900*ms)
	c0, c1 := leaves[0].Enter(r.at(1000*ms), 1), leaves[1].Enter(r.at(1010*ms), 1) // two for nearly all of the second
	c0.Exit(r.at(1980*ms), false)
	c1.Exit(r.at(1990*ms), false)
	d0, d1 := leaves[0].Enter(r.at(2900*ms), 1), leaves[2].Enter(r.at(2910*ms), 1) // two at its end
	d0.Exit(r.at(3010*ms), false)
	d1.Exit(r.at(3020*ms), false)
	r.open(5 * time.Second)
	for i, want := range []int64{1, 2, 2, 2, 0} {
		if got := most(t, v, r.zero+int64(i)); got != want {
			t.Errorf("second %d: %d in flight at most, want %d", i, got, want)
		}
	}
}

// More leaves than one look is at are looked at in turns, and all are counted.
func TestLooksInPortions(t *testing.T) {
	const n = 1300
	w := newWatched(t, n)
	var calls []func(leap.Reading, bool) int64
	for i := range n {
		c := w.leaves[i].Enter(w.at(100*ms), 1)
		calls = append(calls, c.Exit)
	}
	for i := range 6 {
		w.shape.Look(w.at(100*ms + time.Duration(i)*ms))
	}
	for _, exit := range calls {
		exit(w.at(110*ms), false)
	}
	w.open(time.Second)
	if got := most(t, w.all, w.zero); got != n {
		t.Errorf("%d in flight at most, want %d", got, n)
	}
}

// Looks, readers and leaves that come and go meet.
func TestLooksWhileLeavesComeAndGo(t *testing.T) {
	line := leap.NewTimeline(leap.Clock{})
	shape, err := node.NewShape(line, node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := node.NewView(shape, line.Now())
	var mu sync.Mutex
	var list []*node.Watched
	var stats []*node.Statistic
	add := func() {
		s := node.New(shape, line.Now())
		v.Add(s)
		list, stats = append(list, node.NewWatched(s, []*node.View{v})), append(stats, s)
		shape.Watch(list, false)
	}
	for range 20 {
		add()
	}
	end := time.Now().Add(1500 * ms)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := g; time.Now().Before(end); i++ {
				mu.Lock()
				s := stats[i%len(stats)]
				mu.Unlock()
				c := s.Begin()
				c.End(false)
			}
		})
	}
	wg.Go(func() {
		for time.Now().Before(end) {
			mu.Lock()
			add()
			list = append([]*node.Watched(nil), list[1:]...)
			shape.Watch(list, true)
			mu.Unlock()
			open := line.At(line.Now()).Index
			for _, m := range v.AppendSeconds(nil, open-3, open) {
				if m.InFlightMax > 4 {
					t.Errorf("%+v", m)
				}
			}
			time.Sleep(ms)
		}
	})
	wg.Wait()
}
