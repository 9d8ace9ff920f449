package trouble

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Usual describes the usual seconds of a resource. The zero value means that they are unknown; [Find] then only finds
// resources of which half of the calls fail or are refused.
//
// The numbers come from windows of ten seconds that are spread over the last ten minutes (see [Windows]). They are
// medians where possible, so trouble that has lasted for a few minutes hardly changes them. Callers keep the Usual of a
// resource while it is in trouble.
type Usual struct {
	Known           bool
	Failed, Refused float64       // upper bounds of the shares of the calls
	Average         time.Duration // average response time
	Slowest         time.Duration // slowest call of a second
	Longest         time.Duration // slowest call of all
	calls           int64         // completed calls that the numbers are based on
	passes          regularity
	completions     regularity
}

// regularity describes how regularly events occur.
type regularity struct {
	rate float64 // events per second
	gap  int     // longest number of seconds without an event
}

// silence returns the number of seconds without an event that is unusual: some twenty events are missing, and the
// silence is three times as long as any usual one. Irregular events are never missed within a window, so their silence
// exceeds it.
func (r regularity) silence() int {
	if r.rate <= 0 {
		return math.MaxInt
	}
	return max(minSilence, int(math.Ceil(expectedCalls/r.rate)), gapFactor*r.gap+1)
}

// NewUsual computes the usual numbers from windows of seconds, the newest window first. A window without any call in
// flight or counted is a silence like any other. Windows at the beginning in which nothing passed or nothing ended are
// left out, because they may belong to the silence that Find has to detect.
func NewUsual(windows [][]Second) (u Usual) {
	// Traffic may pause for longer than a window, so a few windows do not show how regular it is. Calls in flight
	// without a completion are suspicious after one window.
	u.passes = newRegularity(windows, 4, func(s Second) int64 { return s.Pass + s.Block })
	u.completions = newRegularity(windows, 1, func(s Second) int64 { return s.Complete })
	var average, slowest []time.Duration
	var all Second
	for _, w := range windows {
		var sum Second
		for _, s := range w {
			sum.Complete, sum.RTSum = sum.Complete+s.Complete, sum.RTSum+s.RTSum
			all.Pass, all.Block = all.Pass+s.Pass, all.Block+s.Block
			all.Complete, all.Exception = all.Complete+s.Complete, all.Exception+s.Exception
			u.Longest = max(u.Longest, s.RTMax)
		}
		if sum.Complete > 0 {
			average = append(average, sum.RTSum/time.Duration(sum.Complete))
			slowest = append(slowest, slowestCall(w))
		}
	}
	u.calls = all.Complete
	u.Known = all.Complete+all.Pass+all.Block > 0
	u.Failed, u.Refused = highestShare(all.Exception, all.Complete), highestShare(all.Block, all.Block+all.Pass)
	u.Average, u.Slowest = median(average), median(slowest)
	return u
}

// highestShare returns an upper bound of the probability of an event that n of all calls had: few calls say little.
func highestShare(n, all int64) float64 {
	return (float64(n) + 2*math.Sqrt(float64(n)) + 1) / float64(max(all, 1))
}

// Windows calls read with the first second and the second after the last of each window that [NewUsual] needs, the
// newest first. The seconds are offsets from the open second, and negative. The distance of the windows shares no
// divisor with minutes, so a job that runs each minute is in some windows and not in others.
func Windows(read func(from, to int64)) {
	for to := int64(-guard); to >= Window-history; to -= distance {
		read(to-Window, to)
	}
}

const (
	guard    = 20  // newest seconds that are not usual, because trouble may have begun in them
	distance = 43  // seconds between the ends of two windows
	history  = 600 // seconds that a Collector keeps
)

// newRegularity returns the regularity of the events that count counts, or the zero value if there are fewer than
// enough windows.
func newRegularity(windows [][]Second, enough int, count func(Second) int64) (r regularity) {
	sumOf := func(w []Second) (sum int64) {
		for _, s := range w {
			sum += count(s)
		}
		return sum
	}
	for len(windows) > 1 && sumOf(windows[0]) == 0 {
		windows = windows[1:]
		if sumOf(windows[0]) > 0 && len(windows) > 1 { // the silence may have begun in this window
			windows = windows[1:]
			break
		}
	}
	var rates []float64
	for _, w := range windows {
		if len(w) == 0 {
			continue
		}
		rates = append(rates, float64(sumOf(w))/float64(len(w)))
		gap := 0
		for _, s := range w {
			if gap++; count(s) > 0 {
				gap = 0
			}
			r.gap = max(r.gap, gap)
		}
	}
	if len(rates) >= enough {
		r.rate = median(rates)
	}
	return r
}

// median sorts a list and returns its median: the lower one of two, and 0 for an empty list.
func median[T cmp.Ordered](list []T) (m T) {
	if len(list) == 0 {
		return m
	}
	slices.Sort(list)
	return list[(len(list)-1)/2]
}
