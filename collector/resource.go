package collector

import (
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// Resource counts the calls of one resource: an endpoint, a query, a client. Get it from [Collector.Resource] and
// keep it. A nil *Resource records nothing and reads as idle. It is safe for concurrent use.
type Resource struct {
	name string
	line *leap.Timeline
	stat *node.Statistic
}

// Name is the name under which the resource is kept, see [CleanName].
func (r *Resource) Name() string {
	if r == nil {
		return ""
	}
	return r.name
}

// Enter records that a call begins: it passed, and is in flight until [Entry.Exit]. It costs one reading of the
// monotonic clock and one atomic addition; Exit costs another reading and a lock that is almost never contended. Both
// allocate only what the resource keeps, when it is first needed.
//
//	e := r.Enter()
//	…
//	e.Exit(err)
func (r *Resource) Enter() Entry {
	if r == nil {
		return Entry{}
	}
	return Entry{call: r.stat.Begin()}
}

// Do records f as one call. An error that f returns is returned, and counts as an exception; so does a panic, which
// goes on, and a runtime.Goexit.
func (r *Resource) Do(f func() error) (err error) {
	e := r.Enter()
	returned := false
	defer func() { e.call.End(!returned || err != nil) }()
	err = f()
	returned = true
	return err
}

// Block records a call that was refused, and so never began.
func (r *Resource) Block() {
	if r != nil {
		r.stat.Block(r.line.Now(), 1)
	}
}

// PassQPS is how many calls passed in the second window, per second: the reading to decide on. The window slides by
// one bucket and ends with the one that is open. It costs one clock reading and a lock, and allocates nothing.
func (r *Resource) PassQPS() float64 {
	if r == nil {
		return 0
	}
	return r.stat.PassQPS(r.line.Now())
}

// Window reads the second window: everything that PassQPS says of passes, of all counts.
func (r *Resource) Window() node.Window {
	if r == nil {
		return node.Window{}
	}
	return r.stat.Window(r.line.Now())
}

// Minute reads the minute window, which ends with the second that is open.
func (r *Resource) Minute() node.Window {
	if r == nil {
		return node.Window{}
	}
	return r.stat.Minute(r.line.Now())
}

// InFlight is how many calls are in flight.
func (r *Resource) InFlight() int64 {
	if r == nil {
		return 0
	}
	return r.stat.InFlight()
}

// Since is the index of the second in which the resource was registered.
func (r *Resource) Since() int64 {
	if r == nil {
		return 0
	}
	return r.stat.Since()
}

// Began is the wall-clock second in which the resource was registered.
func (r *Resource) Began() time.Time {
	if r == nil {
		return time.Time{}
	}
	return r.stat.Began()
}

// Second returns the record of a sealed second, by its index on the timeline. It reports false if the second is not
// sealed for this resource, not known any more, or not to be handed out; see [node.Statistic.Second].
func (r *Resource) Second(index int64) (node.MetricNode, bool) {
	if r == nil {
		return node.MetricNode{}, false
	}
	return r.stat.Second(index)
}

// Histogram sets h to the response times of the sealed seconds with indexes from from to before to. It reports false
// if one of them is not known; see [node.Statistic.Histogram].
func (r *Resource) Histogram(from, to int64, h *node.Histogram) bool {
	if r == nil {
		*h = node.Histogram{}
		return false
	}
	return r.stat.Histogram(from, to, h)
}

// Snapshot reads the resource at the present moment. If h is not nil it is set to the histogram of all response times
// as of the same moment.
func (r *Resource) Snapshot(h *node.Histogram) node.Snapshot {
	if r == nil {
		if h != nil {
			*h = node.Histogram{}
		}
		return node.Snapshot{}
	}
	return r.stat.Snapshot(r.line.Now(), h)
}

// Entry is a call in flight. It must not be copied. Its zero value is no call.
type Entry struct{ call node.Call }

// Exit records that the call ended: its response time, whether it failed (err is not nil), and one less in flight,
// as one change. It may be called from another goroutine than Enter. A second Exit counts nothing.
//
// Deferred as it stands it does not see a panic and counts the call as good; [Resource.Do] does see it.
func (e *Entry) Exit(err error) { e.call.End(err != nil) }
