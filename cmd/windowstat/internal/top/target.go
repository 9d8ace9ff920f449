package top

import (
	"fmt"
	"maps"
	"time"
)

// Bounds on the history of a target.
const (
	// minute is the number of seconds of a peak.
	minute = 60
	// maxKept is the number of seconds that are kept, which is also the default of a service. maxValues limits the
	// number of resources in all seconds together: a minute of 10,000 resources, the default limit of a Collector.
	maxKept   = 600
	maxValues = 600_000
)

// target is a service with its last seconds. It belongs to the goroutine that draws. The goroutine of a request uses
// the last group of fields, and may read newest. Each target has at most one request at a time, see polling.
//
// The history is a map of resources for each second. So a resource takes no memory before its first and after its last
// second, seconds are dropped as a whole, and the table of a second is read from a single map.
type target struct {
	name    string
	seconds map[int64]map[string]values // numbers of each resource, and of inbound
	newest  int64                       // the last sealed second, or 0
	polling bool                        // a request is running
	state   result                      // the last result, without its samples
	away    time.Time                   // start of the failures, or zero if the last request succeeded

	// The fields of the goroutine of a request.
	endpoint *Endpoint
	kept     int64  // maximum number of seconds
	alarms   bool   // request the trouble of the service
	all      bool   // request all metrics, because the page lacks some
	past     metric // next metric whose past is read; metrics if none is left
	window   int64  // number of seconds of the past
}

// newTarget creates a target that requests at most kept seconds.
func newTarget(e *Endpoint, kept int64) *target {
	return &target{name: e.Name(), endpoint: e, kept: kept, seconds: map[int64]map[string]values{}}
}

// take applies the result of a read. A target that does not respond keeps its seconds. The screen shows them until the
// other targets are too far ahead.
//
// A failed request leaves newest unchanged, so the next successful request also reads the seconds of the failure, as
// far as the service still has them.
func (t *target) take(a result, now time.Time) {
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

// add adds samples up to the second newest, and drops seconds that are too old or exceed the bounds.
//
// Samples of one second may arrive in several reads: first the metrics of the last second, later a single metric of the
// past. Each sample therefore sets one value, and leaves the other values of its resource and second unchanged.
func (t *target) add(samples []sample, newest int64) {
	// A smaller step back may be a leap second or a correction of the clock. The newest second then stays, and new
	// seconds appear when the clock has passed it.
	if newest < t.newest-minute { // the clock of the service was set back
		clear(t.seconds)
		t.newest = 0
	}
	t.newest = max(t.newest, newest)
	if t.seconds[t.newest] == nil {
		t.seconds[t.newest] = map[string]values{} // also without calls
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
	// Keep seconds from the newest one back, up to one of the bounds.
	//
	// The loop stops after the second that exceeds maxValues. That second is kept; the seconds before it are dropped.
	oldest, all := t.newest, 0
	for t.newest-oldest < maxKept && all <= maxValues {
		all += len(t.seconds[oldest])
		oldest--
	}
	maps.DeleteFunc(t.seconds, func(unix int64, _ map[string]values) bool { return unix <= oldest })
}

// maxBehind limits the seconds by which a target may lag. The table leaves out a target that lags more.
const maxBehind = 3

// latest returns the last second of all targets that lag at most maxBehind, and the last second of any target. Requests
// start at the same time and end at different times, so a sum uses a second that all targets have had time to send. A
// target that does not respond lags, and then delays the others no longer.
//
// With three targets at the seconds 100, 98 and 90, last is 100 and all is 98: the target at 90 lags more than
// maxBehind.
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

// trouble describes the failure of a target, or returns "". last is the last second of any target. past is a past
// second on the screen, or 0.
//
// The texts in capitals begin the first lines of the screen:
//
//	NO DATA FOR THIS SECOND  the user went back to a second that the history of the target lacks
//	NO SECONDS               no second has arrived, and the last request failed
//	FAILING 5s               requests have failed for 5 seconds, after an earlier success
//	DELAYED 4s               requests succeed, but the newest second is 4 seconds older than that of another target
func (t *target) trouble(last, past int64, now time.Time) string {
	switch err := t.state.err; {
	case past > 0 && t.newest > 0 && t.seconds[past] == nil:
		return "NO DATA FOR THIS SECOND " + t.name
	case err != nil && t.newest == 0:
		return fmt.Sprintf("NO SECONDS %s: %v", t.name, err)
	case err != nil:
		return fmt.Sprintf("FAILING %v %s: %v", now.Sub(t.away).Round(time.Second), t.name, err)
	case last-t.newest > maxBehind && t.newest > 0:
		return fmt.Sprintf("DELAYED %ds %s", last-t.newest, t.name)
	}
	return ""
}
