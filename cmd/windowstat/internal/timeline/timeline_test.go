package timeline

import (
	"testing"

	"github.com/windowstat/windowstat/collector"
)

// Held returns the number of calls in the ring while calls are added, merged, and replayed.
func TestWindowKnowsWhatItHolds(t *testing.T) {
	w, counted := New(11), new(countedCalls)
	w.From, w.Counter = 1000, counted
	holds := func() (n int) {
		for _, calls := range w.seconds {
			n += len(calls)
		}
		return n
	}
	check := func(when string) {
		t.Helper()
		if got := holds(); w.held != got {
			t.Errorf("%s: %d calls are held, want %d", when, w.held, got)
		}
	}
	for i := range 3 * crowd {
		w.Add(Call{At: (1000 + int64(i%7)) * Nanos, Duration: int64(i), N: 1})
		w.Add(Call{At: 1008 * Nanos, Duration: Unknown, Name: int32(i % 5), N: 1}) // alike
	}
	check("full")
	if n := len(*w.slot(1008)); n >= 3*crowd {
		t.Errorf("%d calls that are alike are held", n)
	}
	for second := int64(1000); second <= 1009; second++ {
		if err := w.Until(second); err != nil {
			t.Fatal(err)
		}
		check("ended")
	}
	if w.held != 0 || *counted != 2*3*crowd {
		t.Errorf("at the end %d calls are held, and %d were taken out, want %d", w.held, *counted, 2*3*crowd)
	}
}

// countedCalls is a counter of the calls that begin.
type countedCalls int64

func (n *countedCalls) Begin(c *Call) *collector.Entry { *n += countedCalls(c.N); return nil }
func (n *countedCalls) Block(*Call)                    {}
func (n *countedCalls) End(Completion)                 {}
func (n *countedCalls) Over(int64) error               { return nil }
