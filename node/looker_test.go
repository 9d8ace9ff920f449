package node

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
)

func newLooked(t *testing.T) (shape *Shape, now *time.Duration) {
	now = new(time.Duration)
	shape, err := NewShape(leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return *now },
		Wall: func() time.Time { return time.Unix(1_700_000_000, 0).Add(*now) },
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return shape, now
}

// A look that began before a second ended, and comes after somebody has read the second, does not change it.
func TestASecondThatWasReadIsClosedForLooks(t *testing.T) {
	shape, _ := newLooked(t)
	v := NewView(shape, 0)
	first := v.Since()
	read := func() int64 {
		var most [1]int64
		v.sawFrom(first, most[:])
		return most[0]
	}
	v.inFlight = 3
	v.see(first)
	if got := read(); got != 3 {
		t.Fatalf("saw %d", got)
	}
	v.inFlight = 5
	v.see(first)
	if got := read(); got != 3 {
		t.Errorf("saw 3, and then %d", got)
	}
	v.see(first + 1)
	v.inFlight = 7
	v.see(first) // late
	v.see(first + 2)
	if got := read(); got != 3 {
		t.Errorf("later: saw 3, and then %d", got)
	}
}

// A call that leaves one leaf while a look goes on, and one that enters another, are not in flight together.
func TestALookSeesNoMoreThanThereWas(t *testing.T) {
	shape, _ := newLooked(t)
	a, b := New(shape, 0), New(shape, 0)
	one := a.Enter(0, 1)
	inA, inB := a.cameIn(), b.cameIn()
	two := b.Enter(0, 1) // it goes from leaf to leaf with the look
	one.Exit(0, false)
	if n := a.stayed(inA) + b.stayed(inB); n != 0 {
		t.Errorf("saw %d", n)
	}
	two.Exit(0, false)
	if n := b.stayed(inB); n != -1 {
		t.Errorf("%d have stayed of none", n)
	}
}

// What a leaf told goes with it, and goes over to other views.
func TestLeavesTakeBackWhatTheyTold(t *testing.T) {
	shape, _ := newLooked(t)
	all, other, third := NewView(shape, 0), NewView(shape, 0), NewView(shape, 0)
	var leaves [2]*Statistic
	var list []*Watched
	for i := range leaves {
		leaves[i] = New(shape, 0)
		list = append(list, NewWatched(leaves[i], []*View{all, other}))
		leaves[i].Enter(0, 1)
	}
	look := func() {
		shape.looker.next.Store(0)
		shape.Look(0)
	}
	check := func(what string, want ...int64) {
		t.Helper()
		for i, v := range []*View{all, other, third} {
			if v.inFlight != want[i] {
				t.Errorf("%s: view %d has %d in flight, want %d", what, i, v.inFlight, want[i])
			}
		}
	}
	shape.Watch(list, false)
	look()
	check("at first", 2, 2, 0)
	list[1].SetViews([]*View{all, third})
	look()
	check("with another view", 2, 1, 1)
	shape.Watch(list[1:], true)
	look()
	check("without the first", 1, 0, 1)
	shape.Watch(nil, true)
	look()
	check("without any", 0, 0, 0)
}
