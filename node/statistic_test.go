package node_test

import (
	"math"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

func TestCountsLandInTheirSecond(t *testing.T) {
	r := newRig(t, node.Options{})
	r.call(100*ms, 20*ms, false)
	r.Block(200*ms, 1)
	r.call(200*ms, 900*ms, true) // enters in second 0, completes in second 1
	r.Block(2500*ms, 3)
	batch := r.Enter(2600*ms, 4)
	batch.Exit(2650*ms, true, 0)
	r.Seal(4 * time.Second)

	want := []node.MetricNode{
		{
			Counts:   node.Counts{Pass: 2, Block: 1, Complete: 1, RTSum: 20 * ms, RTMin: 20 * ms, RTMax: 20 * ms},
			InFlight: 1, InFlightMax: 1, InFlightMaxUpper: 1, InFlightTime: 820*ms - rest(200*ms), PassPeak: 2,
		},
		{
			Counts:      node.Counts{Complete: 1, Exception: 1, RTSum: 900 * ms, RTMin: 900 * ms, RTMax: 900 * ms},
			InFlightMax: 1, InFlightMaxUpper: 1, InFlightTime: 100*ms + rest(200*ms),
		},
		{
			Counts: node.Counts{
				Pass: 4, Block: 3, Complete: 4, Exception: 4, RTSum: 200 * ms, RTMin: 50 * ms, RTMax: 50 * ms,
			},
			InFlightMax: 1, InFlightMaxUpper: 1, InFlightTime: 50 * ms, PassPeak: 4,
		},
		{PassPeak: 4},
	}
	for i, w := range want {
		w.Start = epoch.Add(time.Duration(i) * time.Second)
		if got := r.second(t, int64(i)); got != w {
			t.Errorf("second %d:\n got %+v\nwant %+v", i, got, w)
		}
	}
	if _, ok := r.Second(r.zero + 4); ok {
		t.Error("the open second can be read")
	}
	if _, ok := r.Second(r.zero - 1); ok {
		t.Error("a second from before the beginning can be read")
	}
}

func TestWindowAndMinute(t *testing.T) {
	r := newRig(t, node.Options{})
	r.pass(0, 5)
	r.pass(500*ms, 7)
	r.pass(30*time.Second, 100)
	for _, tc := range []struct {
		at             time.Duration
		window, minute int64
	}{
		{30 * time.Second, 100, 112},
		{30499 * ms, 100, 112},
		{30999 * ms, 100, 112},
		{31 * time.Second, 0, 112}, // the bucket that starts at 30 s is exactly 1 s old, so it is out of the window
		{59999 * ms, 0, 112},
		{60 * time.Second, 0, 100},
		{89999 * ms, 0, 100},
		{90 * time.Second, 0, 0},
		{1000 * time.Second, 0, 0},
	} {
		if got := r.Window(tc.at).Pass; got != tc.window {
			t.Errorf("window at %v holds %d passes, want %d", tc.at, got, tc.window)
		}
		if got := r.Minute(tc.at).Pass; got != tc.minute {
			t.Errorf("minute at %v holds %d passes, want %d", tc.at, got, tc.minute)
		}
	}
	// The ring has two buckets for each second. The window has 12 passes from 0.5 s until just before 1 s, 7 from 1 s
	// until just before 1.5 s, and none from then on.
	for at, want := range map[time.Duration]int64{
		500 * ms: 12, 999 * ms: 12, 1000 * ms: 7, 1499 * ms: 7, 1500 * ms: 0,
	} {
		r := newRig(t, node.Options{})
		r.pass(0, 5)
		r.pass(500*ms, 7)
		if got := r.Window(at).Pass; got != want {
			t.Errorf("window at %v holds %d passes, want %d", at, got, want)
		}
	}
}

func TestIdleIsZero(t *testing.T) {
	r := newRig(t, node.Options{})
	for _, at := range []time.Duration{0, 10 * time.Second, time.Hour} {
		var h node.Histogram
		s := r.Snapshot(at, &h)
		last := s.Last
		last.Start = time.Time{}
		s.Last = node.MetricNode{}
		if (s != node.Snapshot{}) || last != (node.MetricNode{}) || h.Count() != 0 ||
			!r.Window(at).Idle() || !r.Minute(at).Idle() {
			t.Errorf("an idle statistic at %v reads %+v, %+v", at, s, last)
		}
		if avg := r.Window(at).AvgRT(); avg != 0 {
			t.Errorf("average of nothing is %v", avg)
		}
	}
}

func TestSnapshot(t *testing.T) {
	r := newRig(t, node.Options{})
	r.call(900*ms, 10*ms, false)
	r.call(1500*ms, 20*ms, true)
	r.call(1600*ms, 40*ms, false)
	r.call(2100*ms, 30*ms, false)
	open := r.Enter(2200*ms, 1)
	defer open.Exit(0, false, 0)

	var h node.Histogram
	s := r.Snapshot(2300*ms, &h)
	total := node.Counts{Pass: 5, Complete: 4, Exception: 1, RTSum: 100 * ms, RTMin: 10 * ms, RTMax: 40 * ms}
	if s.Total != total || s.InFlight != 1 {
		t.Errorf("total %+v with %d in flight, want %+v with 1", s.Total, s.InFlight, total)
	}
	if s.Last != r.second(t, 1) || s.Last.Pass != 2 {
		t.Errorf("last complete second %+v", s.Last)
	}
	if s.Peak != 2 {
		t.Errorf("peak %d, want 2", s.Peak)
	}
	if h.Count() != 4 || h.Sum() != 100*ms {
		t.Errorf("histogram of %d with sum %v", h.Count(), h.Sum())
	}
	if avg := s.Total.AvgRT(); avg != 25*ms {
		t.Errorf("average %v", avg)
	}
}

// Calendar seconds hide a burst across their boundary. Here, 60 passes in the last tenth of a second and 60 passes in
// the first tenth of the next second are 120 passes within 200 ms.
func TestPeakShowsABurstAcrossABoundary(t *testing.T) {
	for _, buckets := range []int{2, 10} {
		r := newRig(t, node.Options{SampleCount: buckets})
		r.pass(4950*ms, 60)
		r.pass(5050*ms, 60)
		r.Seal(8 * time.Second)
		for i, want := range map[int64]int64{3: 0, 4: 60, 5: 120, 6: 0, 7: 0} {
			// The 60 passes of second 5 are in the first bucket of this second. No slide of second 6 contains this
			// bucket.
			if got := r.second(t, i).PassPeak; got != want {
				t.Errorf("%d buckets: peak of second %d is %d, want %d", buckets, i, got, want)
			}
		}
		if a, b := r.second(t, 4).Pass, r.second(t, 5).Pass; a != 60 || b != 60 {
			t.Errorf("%d buckets: aligned seconds hold %d and %d", buckets, a, b)
		}
	}
}

// The second after a burst is idle, but the sliding windows that end in this idle second contain passes of the burst.
func TestPeakOfTheIdleSecondAfter(t *testing.T) {
	r := newRig(t, node.Options{SampleCount: 10})
	r.pass(50*ms, 3)
	r.pass(950*ms, 8)
	r.Seal(100 * time.Second)
	for i, want := range []int64{11, 8, 0, 0} {
		if got := r.second(t, int64(i)).PassPeak; got != want {
			t.Errorf("peak of second %d is %d, want %d", i, got, want)
		}
	}
}

func TestInFlight(t *testing.T) {
	r := newRig(t, node.Options{})
	a := r.Enter(100*ms, 1)
	b := r.Enter(200*ms, 5) // a batch is one call in flight
	c := r.Enter(300*ms, 1)
	a.Exit(400*ms, false, 0)
	b.Exit(2500*ms, false, 0)
	d := r.Enter(2600*ms, 1)
	c.Exit(130*time.Second, false, 0)
	d.Exit(131*time.Second, true, 0)
	r.Seal(140 * time.Second)
	for _, tc := range []struct{ second, end, most int64 }{
		{0, 2, 3}, {1, 2, 2}, {2, 2, 2}, {3, 2, 2}, {100, 2, 2}, {129, 2, 2}, {130, 1, 2}, {131, 0, 1}, {132, 0, 0},
	} {
		if m := r.second(t, tc.second); m.InFlight != tc.end || m.InFlightMax != tc.most {
			t.Errorf("second %d: %d in flight, at most %d; want %d and %d",
				tc.second, m.InFlight, m.InFlightMax, tc.end, tc.most)
		}
	}
}

func TestExitTwiceCountsOnce(t *testing.T) {
	r := newRig(t, node.Options{})
	c := r.Enter(0, 1)
	for range 3 {
		c.Exit(10*ms, true, 0)
	}
	var none node.Call
	none.Exit(leap.Reading(10*ms), true, 0)
	s := r.Snapshot(20*ms, nil)
	if s.InFlight != 0 || s.Total.Complete != 1 || s.Total.Exception != 1 {
		t.Errorf("%+v", s)
	}
}

// Events are recorded with stamps in or before a sealed second that was already read. The events count in the open
// second, and the sealed second does not change.
func TestSealedSecondsDoNotChange(t *testing.T) {
	r := newRig(t, node.Options{})
	r.call(900*ms, 50*ms, false)
	r.Seal(1 * time.Second)
	before := r.second(t, 0)
	r.call(990*ms, 0, false)
	c := r.Enter(100*ms, 1)
	c.Exit(200*ms, true, 0)
	r.Block(-time.Hour, 1)
	r.Seal(2 * time.Second)
	if after := r.second(t, 0); after != before {
		t.Errorf("second 0 changed from %+v to %+v", before, after)
	}
	if m := r.second(t, 1); m.Pass != 2 || m.Complete != 2 || m.Exception != 1 || m.Block != 1 {
		t.Errorf("second 1 holds %+v", m)
	}
}

// If no goroutine uses the statistic for two minutes, one more call makes all seconds before this call readable.
func TestNothingIsLostWithoutReaders(t *testing.T) {
	r := newRig(t, node.Options{})
	r.pass(500*ms, 3)
	r.pass(125*time.Second, 5)
	for i, want := range map[int64]int64{0: 3, 1: 0, 60: 0, 119: 0, 124: 0} {
		if got := r.second(t, i).Pass; got != want {
			t.Errorf("second %d holds %d, want %d", i, got, want)
		}
	}
	// A second whose record was dropped cannot be read. Such a second must not look idle.
	r.pass(181*time.Second, 7)
	r.Seal(182 * time.Second)
	for i := range int64(182) {
		m, ok := r.Second(r.zero + i)
		if certain := i > 121; certain && !ok {
			t.Errorf("second %d cannot be read within the minute", i)
		}
		if want := map[int64]int64{0: 3, 125: 5, 181: 7}[i]; ok && m.Pass != want {
			t.Errorf("second %d holds %d, want %d", i, m.Pass, want)
		}
	}
}

func TestOlderReadingsUseTheOpenWindow(t *testing.T) {
	r := newRig(t, node.Options{})
	r.pass(10*time.Second, 5)
	if got := r.Window(3 * time.Second).Pass; got != 5 {
		t.Errorf("a reader with an older reading gets %d, want the open window's 5", got)
	}
	if got := r.Snapshot(0, nil).Total.Pass; got != 5 {
		t.Errorf("a reader with an older reading gets %d in total", got)
	}
}

func TestExtremeArguments(t *testing.T) {
	r := newRig(t, node.Options{})
	for _, n := range []int64{0, -1, math.MinInt64} {
		c := r.Enter(0, n)
		c.Exit(0, false, 0)
		r.Block(0, n)
	}
	c := r.Enter(500*ms, 1)
	c.Exit(400*ms, false, 0) // the negative response time counts as 0
	s := r.Snapshot(600*ms, nil)
	if want := (node.Counts{Pass: 4, Block: 3, Complete: 4}); s.Total != want || s.InFlight != 0 {
		t.Errorf("%+v, want %+v", s.Total, want)
	}
	// Enter reduces huge batches to 2^32-1 calls. The sum of huge response times stops at the largest int64.
	r = newRig(t, node.Options{})
	for range 3 {
		c := r.Enter(math.MinInt64/2, math.MaxInt64)
		c.Exit(1000*time.Hour, false, 0)
		r.Block(0, 1<<40)
	}
	total := r.Snapshot(1000*time.Hour, nil).Total
	all := int64(3 * math.MaxUint32)
	if total.Pass != all || total.Complete != all || total.RTSum != math.MaxInt64 || total.Block != 3<<40 {
		t.Errorf("%+v", total)
	}
	// The latest possible reading opens the last possible second.
	r.Enter(math.MaxInt64, 1)
	r.Seal(math.MaxInt64)
}

func TestOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		o    node.Options
		want int // number of errors
	}{
		"zero":                {node.Options{}, 0},
		"ten buckets":         {node.Options{SampleCount: 10}, 0},
		"no bounds":           {node.Options{Bounds: []time.Duration{}}, 0},
		"negative buckets":    {node.Options{SampleCount: -2}, 1},
		"do not divide":       {node.Options{SampleCount: 3}, 1},
		"a negative history":  {node.Options{History: -1}, 1},
		"a long history":      {node.Options{History: time.Hour}, 0},
		"no history":          {node.Options{History: time.Minute}, 0},
		"history too short":   {node.Options{History: 59 * time.Second}, 1},
		"history too long":    {node.Options{History: 3601 * time.Second}, 1},
		"half a second more":  {node.Options{History: 90500 * ms}, 1},
		"histograms":          {node.Options{Histograms: 10 * time.Minute}, 0},
		"histograms too long": {node.Options{Histograms: 601 * time.Second}, 1},
		"histograms short":    {node.Options{Histograms: 59 * time.Second}, 1},
		"half a histogram":    {node.Options{Histograms: 90500 * ms}, 1},
		"no such histograms":  {node.Options{Histograms: -time.Minute}, 1},
		"too many buckets":    {node.Options{SampleCount: 1000}, 1},
		"most buckets":        {node.Options{SampleCount: 500}, 0},
		"bounds":              {node.Options{Bounds: []time.Duration{0, 5, 5, 4}}, 3},
		"many bounds":         {node.Options{Bounds: make([]time.Duration, 65)}, 66},
	} {
		_, err := node.NewConfig(leap.NewTimeline(leap.Clock{}), tc.o)
		if got := errorCount(err); got != tc.want {
			t.Errorf("%s: %d errors, want %d: %v", name, got, tc.want, err)
		}
	}
}

func TestExtremeQuantilesAndResponseTimes(t *testing.T) {
	for _, rts := range [][]time.Duration{
		{1<<61 - 1<<56 + 1, 1 << 61},
		{math.MaxInt64 - 3e17 - 33, math.MaxInt64},
		{0, math.MaxInt64},
	} {
		r := newRig(t, node.Options{})
		for _, rt := range rts {
			r.call(0, rt, false)
		}
		var h node.Histogram
		r.Snapshot(0, &h)
		for q := 0.0; q <= 1; q += 0.05 {
			if got := h.Quantile(q); got < rts[0] || got > rts[1] {
				t.Errorf("quantile %v of %v is %d", q, rts, got)
			}
		}
	}
	for _, tc := range []struct{ from, to, want time.Duration }{
		{math.MaxInt64, math.MinInt64, 0},
		{math.MinInt64, math.MaxInt64, math.MaxInt64},
		{-1, math.MaxInt64, math.MaxInt64},
		{5, 5, 0},
	} {
		r := newRig(t, node.Options{})
		c := r.Enter(tc.from, 1)
		c.Exit(tc.to, false, 0)
		if got := r.Snapshot(0, nil).Total.RTSum; got != tc.want {
			t.Errorf("from %d to %d is %d", tc.from, tc.to, got)
		}
	}
}

func TestHistogramAdd(t *testing.T) {
	var sum, h node.Histogram
	sum.Add(&h) // both histograms are empty
	for i := range 3 {
		r := newRig(t, node.Options{})
		r.call(0, time.Duration(i+1)*ms, false)
		r.Snapshot(0, &h)
		sum.Add(&h)
	}
	if sum.Count() != 3 || sum.Sum() != 6*ms || sum.Quantile(0) != ms || sum.Quantile(1) != 3*ms {
		t.Errorf("%d response times, sum %v, from %v to %v", sum.Count(), sum.Sum(), sum.Quantile(0), sum.Quantile(1))
	}
	r := newRig(t, node.Options{Bounds: []time.Duration{ms}})
	r.Snapshot(0, &h)
	defer func() {
		if recover() == nil {
			t.Error("histograms with different bounds were added")
		}
	}()
	sum.Add(&h)
}

// errorCount returns the number of errors that are joined in err.
func errorCount(err error) int {
	if err == nil {
		return 0
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		n := 0
		for _, e := range joined.Unwrap() {
			n += errorCount(e)
		}
		return n
	}
	if wrapped, ok := err.(interface{ Unwrap() error }); ok {
		return errorCount(wrapped.Unwrap())
	}
	return 1
}
