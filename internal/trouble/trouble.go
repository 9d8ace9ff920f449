// Package trouble finds the resources of a service that need attention now, ranks them, and describes them in words. It
// is the only rule for this decision: the live page, windowstat top and the report print its results.
//
// [Find] compares the last ten seconds of a resource with its usual seconds ([Usual]). It finds, worst first:
//
//	kind      condition
//	Hanging   calls are in flight, and no call ends; or the oldest call is far older than calls usually get
//	Stopped   no call passes, although calls usually pass all the time
//	Failing   more than twice the usual share of calls fails
//	Refusing  more than twice the usual share of calls is refused
//	Slow      response times are at least twice as long as usual
//
// A healthy service has no trouble: a resource that always fails one call in ten is not failing, a burst every ten
// seconds does not stop between two bursts, and a single slow second is not slow. The price is that small problems
// remain invisible: four failed calls, one failed call in a hundred, a slowdown by less than five milliseconds, or slow
// calls of a resource that is called in one second of ten.
package trouble

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The thresholds. The alerts state the same numbers, and a test of package dashboards compares them.
const (
	// Window is the number of seconds that Find evaluates.
	Window = 10
	// OldAge is the minimum age of a hanging call, if other calls of its resource continue to end.
	OldAge = 10 * time.Second
	// AgeFactor is the multiple of the usual longest response time that this call must also have.
	AgeFactor = 3
	// MinCalls is the minimum number of failed or refused calls in a window, and MinShare their minimum share of all
	// calls.
	MinCalls = 5
	MinShare = 0.01
	// Factor multiplies the usual share of failed or refused calls, or the usual average response time. Smaller numbers
	// are not trouble.
	Factor = 2
)

const (
	unknownShare  = 0.5                  // MinShare while the usual share is unknown
	deviations    = 3                    // standard deviations of the number of failed or refused calls
	slowestFactor = 4                    // multiple of the usual slowest call of a second; it varies more than averages
	noiseCalls    = 20                   // with n calls, the factors of response times are higher by noiseCalls / n
	minUsualCalls = 30                   // with fewer calls, usual response times are unknown
	frequentCalls = 50                   // with fewer calls in a window, the slowest calls of its seconds are random
	minSlowdown   = 5 * time.Millisecond // a smaller increase is no trouble
	minSilence    = 2                    // seconds without an event that are trouble at the earliest
	gapFactor     = 3                    // multiple of the longest usual silence
	expectedCalls = 20                   // calls that usually occur in a silence that is trouble
	retrySeconds  = 2                    // seconds whose calls are compared with the usual ones
)

// Kind is a kind of trouble. A higher kind is worse.
type Kind int

// The kinds of trouble.
const (
	None Kind = iota
	Slow
	Refusing
	Failing
	Stopped
	Hanging
)

// Second holds the counts of a resource in one second.
type Second struct {
	Pass, Block, Complete, Exception int64
	InFlight                         int64 // when the second ended
	RTSum                            time.Duration
	RTMax                            time.Duration // 0 if unknown
}

// Current describes a resource now.
type Current struct {
	// Seconds are the last seconds, oldest first, at most Window.
	Seconds []Second
	// InFlight is the number of calls in flight.
	InFlight int64
	// Oldest is the age of the oldest of these calls, or 0 if unknown.
	Oldest time.Duration
}

// Trouble describes one kind of trouble of a resource.
type Trouble struct {
	Kind  Kind
	Calls int64   // Hanging: calls in flight. Failing, Refusing: failed or refused calls of the window
	Of    int64   // Failing, Refusing: all calls of the window
	Usual float64 // Stopped: calls that usually pass per second
	// Hanging: age of the oldest call, or time without a completion. Stopped: length of the silence.
	Age time.Duration
	// Slow: the multiple of the usual response time. Failing: the multiple of the usual calls, or 0 unless it is high.
	Times    float64
	Slowest  bool    // Slow: Times compares the slowest calls of the seconds, not the averages
	severity float64 // compares troubles of the same kind
}

// Compare orders troubles, the worst first.
func Compare(a, b Trouble) int {
	return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(b.severity, a.severity))
}

// Severity compares troubles of the same kind: a number of calls, or a multiple of the usual response time.
func (t Trouble) Severity() float64 { return t.severity }

// Find returns the trouble of a resource, the worst first, or nil. It allocates nothing for a resource without trouble.
func Find(u *Usual, c Current) (list []Trouble) {
	var sum Second
	for _, s := range c.Seconds {
		sum.Pass, sum.Block = sum.Pass+s.Pass, sum.Block+s.Block
		sum.Complete, sum.Exception = sum.Complete+s.Complete, sum.Exception+s.Exception
		sum.RTSum += s.RTSum
	}
	if t := hanging(u, &c); t.Kind != None {
		list = append(list, t)
	} else if t := stopped(u, &c); t.Kind != None {
		list = append(list, t)
	}
	if excessive(sum.Exception, sum.Complete, u.Failed, u.Known) {
		list = append(list, Trouble{
			Kind: Failing, Calls: sum.Exception, Of: sum.Complete, Times: retries(u, &c),
			severity: float64(sum.Exception),
		})
	}
	if excessive(sum.Block, sum.Block+sum.Pass, u.Refused, u.Known) {
		list = append(list, Trouble{
			Kind: Refusing, Calls: sum.Block, Of: sum.Block + sum.Pass, severity: float64(sum.Block),
		})
	}
	// A resource that hangs is slow as well, which says nothing more.
	if t := slow(u, &c, sum); t.Kind != None && (len(list) == 0 || list[0].Kind != Hanging) {
		list = append(list, t)
	}
	slices.SortFunc(list, Compare)
	return list
}

// hanging finds calls in flight that do not end: either all of them, because no call has ended for a while, or some of
// them, because the oldest is far older than calls usually get.
func hanging(u *Usual, c *Current) (t Trouble) {
	if c.InFlight == 0 || !u.Known {
		return t
	}
	silence := silentSeconds(c.Seconds, func(s Second) bool { return s.Complete == 0 && s.InFlight > 0 })
	all := silence >= u.completions.silence()
	some := u.Longest > 0 && c.Oldest >= max(OldAge, AgeFactor*u.Longest)
	if !all && !some {
		return t
	}
	age := max(c.Oldest, time.Duration(silence)*time.Second)
	return Trouble{Kind: Hanging, Calls: c.InFlight, Age: age, severity: float64(c.InFlight)}
}

// stopped finds a silence that is too long for the usual number of passes.
func stopped(u *Usual, c *Current) (t Trouble) {
	silence := silentSeconds(c.Seconds, func(s Second) bool { return s.Pass == 0 && s.Block == 0 })
	if !u.Known || silence < u.passes.silence() {
		return t
	}
	age := time.Duration(silence) * time.Second
	return Trouble{Kind: Stopped, Usual: u.passes.rate, Age: age, severity: u.passes.rate}
}

// silentSeconds counts the silent seconds at the end of list.
func silentSeconds(list []Second, silent func(Second) bool) (n int) {
	for n < len(list) && silent(list[len(list)-1-n]) {
		n++
	}
	return n
}

// excessive reports whether n of all calls are far more than usual: more than twice the usual number and its random
// variation, and more than a few calls.
func excessive(n, all int64, usualShare float64, known bool) bool {
	if !known {
		return n >= MinCalls && float64(n) >= unknownShare*float64(all)
	}
	usual := usualShare * float64(all)
	return n >= MinCalls+int64(Factor*usual+deviations*math.Sqrt(usual)+MinShare*float64(all))
}

// retries returns the multiple of the usual calls in the last seconds, or 0 if it is below Factor. Clients that retry
// failed calls cause a high one. The multiple is also 0 for a resource that is usually idle in some seconds, because a
// burst would be compared with an average.
func retries(u *Usual, c *Current) float64 {
	last := c.Seconds[max(0, len(c.Seconds)-retrySeconds):]
	if u.passes.rate == 0 || u.passes.gap > 0 || len(last) == 0 {
		return 0
	}
	sum := int64(0)
	for _, s := range last {
		sum += s.Pass + s.Block
	}
	if times := float64(sum) / float64(len(last)) / u.passes.rate; times >= Factor {
		return times
	}
	return 0
}

// slow compares the average response time of the window, and the slowest calls of its seconds, with the usual ones. The
// average leaves out the slowest second of the window, because a short delay of the whole process is not trouble. The
// slowest calls count if most seconds of the window have one. So outliers are ignored.
func slow(u *Usual, c *Current, sum Second) Trouble {
	worst := slowestSecond(c.Seconds)
	rest := Second{Complete: sum.Complete - worst.Complete, RTSum: sum.RTSum - worst.RTSum}
	times := func(rt, usual time.Duration, factor float64) float64 {
		x := float64(rt) / float64(usual)
		if usual == 0 || x < factor+noiseCalls/float64(rest.Complete) || rt-usual < minSlowdown {
			return 0
		}
		return x
	}
	if rest.Complete < MinCalls || u.calls < minUsualCalls {
		return Trouble{}
	}
	average := times(rest.RTSum/time.Duration(rest.Complete), u.Average, Factor)
	slowest := 0.0
	if sum.Complete >= frequentCalls {
		slowest = times(slowestCall(c.Seconds), u.Slowest, slowestFactor)
	}
	switch {
	case average > 0:
		return Trouble{Kind: Slow, Times: average, severity: average}
	case slowest > 0:
		return Trouble{Kind: Slow, Times: slowest, Slowest: true, severity: slowest}
	}
	return Trouble{}
}

// slowestSecond returns the second with the highest average response time, or the zero value without completed calls.
func slowestSecond(list []Second) (worst Second) {
	highest := -1.0
	for _, s := range list {
		if s.Complete == 0 {
			continue
		}
		if average := float64(s.RTSum) / float64(s.Complete); average > highest {
			worst, highest = s, average
		}
	}
	return worst
}

// slowestCall returns the median of the slowest calls of the seconds, over seconds with completions. It returns the
// lower one of two medians.
func slowestCall(list []Second) time.Duration {
	var rts [Window]time.Duration
	n := 0
	for _, s := range list[:min(len(list), Window)] {
		if s.Complete > 0 {
			rts[n] = s.RTMax
			n++
		}
	}
	if n == 0 {
		return 0
	}
	slices.Sort(rts[:n])
	return rts[(n-1)/2]
}
