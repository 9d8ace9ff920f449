package collector

import (
	"iter"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// The dry runs of a name are a second set of quotas in the name's limiter. They check each call that the limits admit,
// in the same way as limits do. A call that the dry runs would refuse uses no quota of the dry runs. It passes anyway,
// so the meters of the limits count it as in flight. The meters of the dry runs count the refused calls in flight
// separately, so that the dry runs can subtract them:
//
//	in flight for a dry run = limiter.quotas inFlight − limiter.dry inFlight
//
// A call that the limits admit changes the counts below. Each column is a decision of the dry runs:
//
//	                           admitted            refused
//	passes of the limits       counted             counted
//	passes of the dry runs     counted             —
//	calls in flight            counted             counted
//	refused calls in flight    —                   counted until the call ends
//	dryCount of the reason     —                   one block

// dryCount counts the calls that a resource's dry runs would have refused for one reason. The reason is the name of a
// dry run, see [Limit.String]. dryCount counts the calls as blocks in a node.Statistic, so that a View can read them
// for each second.
type dryCount struct {
	stat *node.Statistic // nil until a dry run would have refused a call
	*generation
}

// evalDryRuns lets the dry runs of the limiters in list check the call of e, which passes now. The parameter at is the
// start of the open bucket. There are three results:
//
//   - The dry runs admit the call. The quotas of the dry runs count the pass, and evalDryRuns returns nil.
//   - The dry runs would let a prioritized call wait for a later bucket. The quotas of the dry runs count the pass in
//     the later bucket, and evalDryRuns returns nil.
//   - The dry runs would refuse the call. The meters of the dry runs count the call as refused until it ends, and
//     evalDryRuns returns an error that names the dry run.
//
// For the parameter waiting see [quotas.checkConcurrency]. The limiters must be locked.
func evalDryRuns(
	list []*limiter, e *Entry, o *options, now leap.Reading, at time.Duration, waiting int64,
) *BlockedError {
	// Usually there is no dry run, and this check of each limiter is the only cost.
	if !slices.ContainsFunc(list, func(m *limiter) bool { return m.dry.hasRules() }) {
		return nil
	}
	l := e.at.leaf
	refused := checkRules(list, true, at, o, l.origin, waiting)
	if refused == nil {
		eachQuota(list, true, l.origin, func(q *node.Quota) { q.Pass(at, o.n) })
		return nil
	}
	if o.prioritized && refused.Limit.Grade == QPS {
		if bucket, ok := firstBorrowable(l.resource.c, list, true, now, at, o.n, l.origin); ok {
			eachQuota(list, true, l.origin, func(q *node.Quota) { q.Borrow(at, bucket, o.n) })
			return nil
		}
	}
	e.markRefused(list)
	return refused
}

// markRefused counts the call as a call in flight that dry runs would have refused. When the call ends, its reservation
// subtracts the call from this count. If the call has no reservation, markRefused creates one.
func (e *Entry) markRefused(list []*limiter) {
	l := e.at.leaf
	if e.at.reserved == nil {
		r := newReservation(l, list[0])
		e.at = &r.place
	}
	e.at.reserved.dryRefused = true
	for _, m := range list {
		m.dry.enter(l.origin)
	}
}

// afterWait lets the dry runs check the call of e. The call has waited for the borrowed bucket, and the bucket has
// begun.
func afterWait(e *Entry, o *options, list []*limiter) {
	_ = lockAll(list) // lockAll cannot fail: limiters with a call in flight are never dropped
	defer unlockAll(list)
	l := e.at.leaf
	now := l.resource.c.line.Now()
	// Hold cannot fail: a leaf with a call in flight is never retired. Hold returns the open bucket, which may be later
	// than the borrowed bucket.
	bucket := l.Hold(now)
	at := bucket.At()
	bucket.Release()
	if refused := evalDryRuns(list, e, o, now, at, 1); refused != nil {
		list[0].countDry(e, refused, now, o.n)
	}
}

// countDry counts the call of e as n blocks of the dry run refused.Limit. If the call is a batch, n is its size. m is
// the limiter of the resource that records the call, and must be locked.
func (m *limiter) countDry(e *Entry, refused *BlockedError, now leap.Reading, n int64) {
	e.markReserved()
	x := getOrAdd(&m.dryCounts, refused.Limit.String())
	if c := m.c; x.stat == nil {
		// The new statistic begins in the open second. Exporters read only sealed seconds, and list the dry runs
		// before they read. They therefore find the statistic before its first second is read.
		began := c.line.Now()
		x.stat, x.generation = node.New(c.shape, began), &generation{c: c, view: node.NewView(c.shape, began)}
		x.view.Add(x.stat)
	}
	x.stat.Block(now, n)
}

// dryCounts returns a copy of the list dryCounts of the resource's limiter.
func (r *Resource) dryCounts() []labelled[dryCount] {
	m := r.limiterState.Load()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.dryCounts)
}

// dryRun returns the generation for a reason, the name of a dry run. The view of the generation counts the calls that
// this dry run would have refused. If there are no such calls yet, or if the resource is retired, dryRun returns nil.
func (r *Resource) dryRun(reason string) *generation {
	for _, x := range r.dryCounts() {
		if x.value == reason && r.alive() {
			return x.of.generation
		}
	}
	return nil
}

// DryRuns iterates over the dry runs of the resource. It yields the name of each dry run (see [Limit.String]) and a
// View. The blocks in each View are the calls that the dry run would have refused, in total, in windows and in seconds.
// All other numbers of the View are 0. At most 16 names are yielded: the first fifteen dry runs are counted separately,
// and all later ones share [Other]. A dry run that is in force is always listed, even if its count is 0. While DryRuns
// copies the list, calls under the limits and dry runs of the resource wait.
func (r *Resource) DryRuns() iter.Seq2[string, View] {
	return func(yield func(string, View) bool) {
		if r == nil {
			return
		}
		r := r.now()
		for _, x := range r.dryCounts() {
			if !yield(x.value, r.c.absent(func() *generation { return r.now().dryRun(x.value) })) {
				return
			}
		}
	}
}
