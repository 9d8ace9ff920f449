package top

import (
	"fmt"
	"maps"
	"time"
)

// How much is kept of a target.
const (
	// minute is how many seconds a peak is about.
	minute = 60
	// maxKept is how many seconds are kept, which is what a service keeps by default, and maxValues of how many resources in all
	// of them: a minute of 10,000, the default of a Collector.
	maxKept   = 600
	maxValues = 600_000
)

// target is one of the services that are watched, with its last seconds. It belongs to the goroutine that draws; that of a request, one at a
// time, see asking, has what is said to be for it, and may look at newest.
//
// Seconds are kept as they came: a map of resources for each second. So a resource costs nothing before it came and after it went,
// a second is dropped as a whole, and the table of any second is read from one map.
type target struct {
	name    string
	seconds map[int64]map[string]values // what each resource did, and inbound
	newest  int64                       // the last finished second, 0 while there is none
	asking  bool                        // a request is under way
	state   answer                      // the last answer, without its samples
	away    time.Time                   // since when requests fail; zero if they succeed

	// For the goroutine of a request.
	endpoint *Endpoint
	kept     int64  // maximum number of seconds
	alarms   bool   // request the trouble of the service
	all      bool   // the page does not know all metrics, and is asked for what it has
	past     metric // the next one whose past is to be read, one each time; metrics if there is none
	window   int64  // how many seconds of it
}

// newTarget makes a target of which so many seconds are wanted at most.
func newTarget(e *Endpoint, kept int64) *target {
	return &target{name: e.Name(), endpoint: e, kept: kept, seconds: map[int64]map[string]values{}}
}

// take takes an answer. A target that is away keeps its seconds: they are shown until the others go on without it.
func (t *target) take(a answer, now time.Time) {
	switch {
	case a.err == nil:
		t.away = time.Time{}
		t.add(a.samples, a.newest)
	case t.away.IsZero():
		t.away = now
	}
	a.samples = nil
	t.state = a
}

// add adds the samples of an answer up to the second newest, and drops what is too old or too much.
func (t *target) add(samples []sample, newest int64) {
	if newest < t.newest-minute { // the clock of the endpoint was set back
		clear(t.seconds)
		t.newest = 0
	}
	t.newest = max(t.newest, newest)
	if t.seconds[t.newest] == nil {
		t.seconds[t.newest] = map[string]values{} // also if nothing was counted
	}
	for _, s := range samples {
		if s.unix > t.newest || s.unix <= t.newest-maxKept {
			continue
		}
		second := t.seconds[s.unix]
		if second == nil {
			second = map[string]values{}
			t.seconds[s.unix] = second
		}
		v, there := second[s.resource]
		if !there {
			v = unknown
		}
		v[s.metric] = s.value
		second[s.resource] = v
	}
	// Back from the newest second, until there are enough of them or of what they have.
	oldest, all := t.newest, 0
	for t.newest-oldest < maxKept && all <= maxValues {
		all += len(t.seconds[oldest])
		oldest--
	}
	maps.DeleteFunc(t.seconds, func(unix int64, _ map[string]values) bool { return unix <= oldest })
}

// maxBehind is how many seconds a target may be behind the others until they go on without it.
const maxBehind = 3

// latest returns the last second that all targets have except those that are too far behind, and the last one of any. Targets are
// requested at the same time and answer at different ones, so a sum is of a second that all have had time for; one that is away falls
// behind, and is waited for no longer than one that is slow.
func latest(targets []*target) (all, last int64) {
	for _, t := range targets {
		last = max(last, t.newest)
	}
	all = last
	for _, t := range targets {
		if last-t.newest <= maxBehind {
			all = min(all, t.newest)
		}
	}
	return all, last
}

// trouble returns what is wrong with the target, empty if nothing is; last is the last second of any, and past one that is shown in its
// place if it is not 0.
func (t *target) trouble(last, past int64, now time.Time) string {
	switch err := t.state.err; {
	case past > 0 && t.newest > 0 && t.seconds[past] == nil:
		return "NOT KNOWN OF THIS SECOND " + t.name
	case err != nil && t.newest == 0:
		return fmt.Sprintf("NO SECONDS %s: %v", t.name, err)
	case err != nil:
		return fmt.Sprintf("AWAY %v %s: %v", now.Sub(t.away).Round(time.Second), t.name, err)
	case last-t.newest > maxBehind && t.newest > 0:
		return fmt.Sprintf("BEHIND %ds %s", last-t.newest, t.name)
	}
	return ""
}
