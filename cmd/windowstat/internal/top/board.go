package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// minute is how many seconds a peak is about.
	minute = 60
	// maxKept is how many seconds are kept, which is what a service keeps by default, and maxSeconds how many of all resources
	// together; but a minute of each.
	maxKept    = 600
	maxSeconds = 300_000
)

// keep returns how many seconds are kept of so many resources.
func keep(resources int) int64 {
	return int64(min(max(maxSeconds/max(resources, 1), minute), maxKept))
}

// maxResources is how many resources are kept: twice the default of a Collector.
const maxResources = 20_000

// board is the last seconds of all resources of a service.
type board struct {
	rows    map[string]*row
	inbound *row               // all inbound traffic; nil if there was none
	newest  int64              // the last finished second, 0 while there is none
	known   map[int64]struct{} // the seconds of which something is known
	left    int                // values of the last answer that did not fit
}

// row is the last seconds of a resource, or of the total.
type row struct {
	name    string
	shown   string // the name, cleaned
	seconds []second
}

func newBoard() *board { return &board{rows: map[string]*row{}, known: map[int64]struct{}{}} }

// add adds the samples of an answer up to the second newest, and drops what is too old.
func (b *board) add(samples []sample, newest int64) {
	kept := keep(len(b.rows))
	if newest < b.newest-minute { // the clock of the endpoint was set back
		*b = *newBoard()
	}
	b.newest, b.left = max(b.newest, newest), 0
	b.known[newest] = struct{}{}
	for _, s := range samples {
		if s.unix > b.newest || s.unix <= b.newest-kept {
			continue
		}
		r := b.row(s.resource)
		if r == nil {
			b.left++
			continue
		}
		b.known[s.unix] = struct{}{}
		r.second(s.unix).values[s.metric] = s.value
	}
	for unix := range b.known {
		if unix <= b.newest-kept {
			delete(b.known, unix)
		}
	}
	for name, r := range b.rows {
		if r.forget(b.newest, kept) {
			delete(b.rows, name)
		}
	}
	if b.inbound != nil && b.inbound.forget(b.newest, kept) {
		b.inbound = nil
	}
}

// has reports whether anything is known of a second.
func (b *board) has(unix int64) bool {
	_, ok := b.known[unix]
	return ok
}

// row returns the row of a resource or of all inbound traffic, a new one if there is none, nil if there is no room for it.
func (b *board) row(resource string) *row {
	if resource == inbound {
		if b.inbound == nil {
			b.inbound = &row{shown: kindInbound}
		}
		return b.inbound
	}
	r := b.rows[resource]
	if r == nil && len(b.rows) < maxResources {
		r = &row{name: resource, shown: clean(resource)}
		b.rows[resource] = r
	}
	return r
}

// find returns where a second is, or belongs.
func (r *row) find(unix int64) (i int, there bool) {
	if n := len(r.seconds); n == 0 || r.seconds[n-1].unix < unix {
		return n, false
	}
	return slices.BinarySearchFunc(r.seconds, unix, func(s second, unix int64) int { return cmp.Compare(s.unix, unix) })
}

// second returns a second to write to.
func (r *row) second(unix int64) *second {
	i, there := r.find(unix)
	if !there {
		r.seconds = slices.Insert(r.seconds, i, unknown(unix))
	}
	return &r.seconds[i]
}

// forget drops what is too old, and reports whether nothing is left.
func (r *row) forget(newest, kept int64) bool {
	if i, _ := r.find(newest - kept + 1); i > 0 {
		r.seconds = slices.Delete(r.seconds, 0, i)
	}
	return len(r.seconds) == 0
}

// recent reports whether there is anything of the minute that ends with a second.
func (r *row) recent(unix int64) bool {
	i, _ := r.find(unix + 1)
	return i > 0 && r.seconds[i-1].unix > unix-minute
}

// at returns a second of the row; all its values are unknown if there is none.
func (r *row) at(unix int64) (s second, there bool) {
	if i, there := r.find(unix); there {
		return r.seconds[i].told(), true
	}
	return unknown(unix), false
}

// before returns the last second up to one.
func (r *row) before(unix int64) second {
	i, there := r.find(unix)
	if there {
		i++
	}
	if i == 0 {
		return unknown(unix)
	}
	return r.seconds[i-1].told()
}

// peak returns the highest peak of the minute that ends with a second, NaN if none is known.
func (r *row) peak(unix int64) float64 {
	highest := math.NaN()
	first, _ := r.find(unix - minute + 1)
	for i := first; i < len(r.seconds) && r.seconds[i].unix <= unix; i++ {
		if v := r.seconds[i].values[peak]; !(v <= highest) && !math.IsNaN(v) {
			highest = v
		}
	}
	return highest
}

// target is one of the services that are watched.
type target struct {
	name   string
	reader *reader
	*board
	asking bool      // a request is under way
	state  answer    // the last answer, without its samples
	away   time.Time // since when requests fail; zero if they succeed
}

func newTarget(e *Endpoint) *target {
	return &target{name: e.Name(), reader: &reader{endpoint: e, past: every}, board: newBoard()}
}

// take takes an answer.
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

// maxBehind is how many seconds a target that answers may be behind the others until they go on without it.
const maxBehind = 3

// latest returns the last second that all targets have which answer, or if none does, the last one of any; and the last one of any
// that answers.
func latest(targets []*target) (all, any int64) {
	for _, t := range targets {
		if t.away.IsZero() {
			any = max(any, t.newest)
		} else {
			all = max(all, t.newest)
		}
	}
	if any == 0 {
		return all, 0
	}
	all = any
	for _, t := range targets {
		if t.newest > 0 && !t.late(any) {
			all = min(all, t.newest)
		}
	}
	return all, any
}

// late reports whether nobody waits for the target, with the last second of any.
func (t *target) late(last int64) bool { return !t.away.IsZero() || last-t.newest > maxBehind }

// trouble returns what is wrong with the target, empty if nothing is.
func (t *target) trouble(last int64, now time.Time) string {
	switch {
	case t.state.err != nil && t.newest == 0:
		return "NO SECONDS"
	case t.state.err != nil:
		return "AWAY " + now.Sub(t.away).Round(time.Second).String()
	case t.newest > 0 && t.late(last):
		return fmt.Sprintf("BEHIND %ds", last-t.newest)
	case t.left > 0:
		return "TOO MANY RESOURCES: some are left out"
	}
	return ""
}
