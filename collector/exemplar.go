package collector

import (
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Exemplar is one call that stands for those of about its response time: the way from a histogram to a trace.
type Exemplar struct {
	TraceID string
	RT      time.Duration
	// At is when the call ended.
	At time.Time
}

// maxTraceID is how long the id of a trace may be, in bytes; that of W3C has 32.
const maxTraceID = 64

// validTraceID reports whether an id is short enough, and text.
func validTraceID(id string) bool { return len(id) <= maxTraceID && utf8.ValidString(id) }

// keepExemplar keeps the call that has just ended as the latest of its bucket, if it has the id of a trace.
func (r *Resource) keepExemplar(id string, rt time.Duration) {
	if id == "" || !validTraceID(id) {
		return
	}
	bucket, _ := slices.BinarySearch(r.c.bounds, rt) // the first with a bound that is not below
	r.exemplars(true)[bucket].Store(&Exemplar{TraceID: id, RT: rt, At: r.c.now()})
}

// Exemplars are the latest calls with a trace of the resource, at most one for each classic bucket of its histogram,
// the quickest first.
func (r *Resource) Exemplars() (list []Exemplar) {
	if r == nil {
		return nil
	}
	all := r.now().exemplars(false)
	for i := range all {
		if x := all[i].Load(); x != nil {
			list = append(list, *x)
		}
	}
	return list
}

// exemplars are those of the buckets, nil if there are none and none are wanted.
func (r *Resource) exemplars(wanted bool) []atomic.Pointer[Exemplar] {
	if wanted && r.traced.Load() == nil {
		list := make([]atomic.Pointer[Exemplar], len(r.c.bounds)+1)
		r.traced.CompareAndSwap(nil, &list)
	}
	return loaded(&r.traced)
}
