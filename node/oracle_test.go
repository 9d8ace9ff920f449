package node_test

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// event is one event in the list of the oracle.
type event struct {
	at      time.Duration // line time at which the event counts, since second zero; events are in this order
	pass    int64
	block   int64
	done    int64
	code    node.Code // code of the completed calls
	failed  int64
	borrow  int64 // borrowed passes; pass includes them
	rt      time.Duration
	balance int64         // change of the calls in flight
	stripe  int           // stripe whose balance changes
	when    time.Duration // reading of this change: stamp of an entry, start of a loan's bucket, or clock at an exit
}

// oracle keeps every event of one statistic and computes each result from all of these events.
type oracle struct {
	events []event
	inside []*inside
	split  bool // the statistic counts response times by code
	spells
}

// inside is a period in which one call is certainly in flight. It begins when Enter, Resume or Loan.Call returns the
// call, and ends at the stamp of the exit. The test takes this stamp before it calls Exit.
type inside struct{ from, to time.Duration }

// stillInside is the value of inside.to for a call that has not exited.
const stillInside = math.MaxInt64

// counts returns the sum of the events in [from, to).
func (o *oracle) counts(from, to time.Duration) node.Counts {
	var c node.Counts
	for _, e := range o.events {
		if e.at < from || e.at >= to {
			continue
		}
		c.Pass += e.pass
		c.Block += e.block
		c.OccupiedPass += e.borrow
		c.Exception += e.failed
		if e.done > 0 {
			if c.Complete == 0 || e.rt < c.RTMin {
				c.RTMin = e.rt
			}
			c.RTMax = max(c.RTMax, e.rt)
			c.RTSum += e.rt * time.Duration(e.done)
			c.Complete += e.done
		}
	}
	return c
}

// quantile returns the q-quantile of the response times in [from, to). If there are n response times, this is the
// response time at position ceil(q*n) in ascending order.
func (o *oracle) quantile(q float64, from, to time.Duration) time.Duration {
	var rts []time.Duration
	for _, e := range o.events {
		if e.at >= from && e.at < to {
			for range e.done {
				rts = append(rts, e.rt)
			}
		}
	}
	if len(rts) == 0 {
		return 0
	}
	slices.Sort(rts)
	return rts[max(int(math.Ceil(q*float64(len(rts)))), 1)-1]
}

// level is a number of calls in flight, and its maximum in a second.
type level struct{ now, most int64 }

func (l *level) add(n int64, inSecond bool) {
	before := l.now
	if l.now += n; inSecond {
		l.most = max(l.most, before, l.now)
	}
}

// inFlight examines the time [start, end). It returns the calls in flight at the end of this time, and their maximum in
// this time. It also returns the highest maximum of a single stripe in this time, and the sum of the maxima of all
// stripes.
func (o *oracle) inFlight(start, end time.Duration) (all level, highest, sum int64) {
	var stripes [1 + 16]level
	for _, e := range o.events {
		if e.at >= end {
			break
		}
		all.add(e.balance, e.at >= start)
		stripes[e.stripe].add(e.balance, e.at >= start)
	}
	all.add(0, true)
	for i := range stripes {
		stripes[i].add(0, true)
		highest, sum = max(highest, stripes[i].most), sum+stripes[i].most
	}
	return all, highest, sum
}

// oracles holds the oracles of several statistics that one view reads.
type oracles struct {
	list    []*oracle
	buckets int64 // number of buckets in a second
	slewed  bool  // seconds may be slewed
}

// maxInFlight returns the maximum in flight in [start, end), for all oracles together. A call counts as in flight from
// the stamp of its entry until its exit is recorded.
func (o *oracles) maxInFlight(start, end time.Duration) (most int64) {
	var all []event
	var flying int64
	for _, x := range o.list {
		own, _, _ := x.inFlight(start, end)
		began, _, _ := x.inFlight(start, start)
		most, flying = max(most, own.most), flying+began.now
		for _, e := range x.events {
			if e.at >= start && e.at < end {
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(b.balance, a.balance))
	})
	most = max(most, flying)
	for _, e := range all {
		flying += e.balance
		most = max(most, flying)
	}
	return most
}

// maxInside examines the second that starts at the reading start. It returns the highest number of calls that were
// inside at the same time (see the type inside).
func (o *oracles) maxInside(start time.Duration) (most int64) {
	var all []*inside
	for _, x := range o.list {
		all = append(all, x.inside...)
	}
	for _, x := range all {
		at := max(x.from, start)
		if at >= start+time.Second {
			continue
		}
		var n int64
		for _, y := range all {
			if y.from <= at && at < y.to {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func (o *oracles) counts(from, to time.Duration) (c node.Counts) {
	for _, x := range o.list {
		c = c.Add(x.counts(from, to))
	}
	return c
}

func (o *oracles) quantile(q float64, from, to time.Duration) time.Duration {
	var all oracle
	for _, x := range o.list {
		all.events = append(all.events, x.events...)
	}
	return all.quantile(q, from, to)
}

// completions returns the number of completions for each code.
func (o *oracles) completions() map[node.Code]int64 {
	all := map[node.Code]int64{0: 0}
	for _, x := range o.list {
		for _, e := range x.events {
			if e.done > 0 {
				all[e.code] += e.done
			}
		}
	}
	return all
}

// rts returns the response times by code. It leaves out statistics that do not count response times by code. A batch of
// n calls adds its response time n times.
func (o *oracles) rts() map[node.Code][]time.Duration {
	all := map[node.Code][]time.Duration{}
	for _, x := range o.list {
		for _, e := range x.events {
			if x.split {
				all[e.code] = append(all[e.code], slices.Repeat([]time.Duration{e.rt}, int(e.done))...)
			}
		}
	}
	maps.DeleteFunc(all, func(_ node.Code, rts []time.Duration) bool { return len(rts) == 0 })
	return all
}

func (o *oracles) second(i int64) node.MetricNode {
	start, end := time.Duration(i)*time.Second, time.Duration(i+1)*time.Second
	m := node.MetricNode{Start: epoch.Add(start), Counts: o.counts(start, end)}
	var before int64
	var late time.Duration
	// bound returns the lower bound of the maximum in flight for several stripes or leaves. If seconds may be slewed,
	// bound leaves out the average, and its result may be lower than the bound in the record.
	bound := func(most, began, ended int64, spent, late time.Duration) int64 {
		average := (spent - late - time.Duration(began)*4096).Seconds()
		if o.slewed {
			average = 0
		}
		return max(most, began, ended, int64(math.Ceil(average)))
	}
	for _, x := range o.list {
		began, _, _ := x.inFlight(start, start)
		before += began.now
		flying, most, sum := x.inFlight(start, end)
		m.InFlight += flying.now
		spent := max(x.within[i], 0) // within is negative only in the last second of a retired statistic
		m.InFlightTime += spent
		late += x.late[i]
		m.InFlightMaxUpper += sum
		m.InFlightMax = max(m.InFlightMax, min(sum, bound(most, began.now, flying.now, spent, x.late[i])))
	}
	m.InFlightMax = min(m.InFlightMaxUpper, bound(m.InFlightMax, before, m.InFlight, m.InFlightTime, late))
	length := time.Second / time.Duration(o.buckets)
	for to := start + length; to <= end; to += length {
		m.PassPeak = max(m.PassPeak, o.counts(to-time.Second, to).Pass)
	}
	return m
}

// position follows the open bucket of a statistic. Only this part of the oracle uses the implementation: the methods of
// position call methods of the timeline.
type position struct {
	r      *rig
	length time.Duration
	open   time.Duration // start of the open bucket, in line time since second zero
	begin  time.Duration // reading at the start of the bucket
	end    time.Duration // reading at the end of the bucket
}

// counted returns the line time at which an event with the given stamp counts. This is the start of the open bucket, or
// the line time of the stamp if the stamp is after the open bucket. In the second case, counted also opens the bucket
// of the stamp.
func (p *position) counted(stamp time.Duration) time.Duration {
	if stamp >= p.end {
		now := leap.Reading(stamp)
		second := p.r.line.At(now)
		base := time.Duration(p.r.zero) * time.Second
		line := second.LineTime(now) - base
		p.open = line / p.length * p.length
		p.begin = time.Duration(second.ReadingAt(base + p.open))
		p.end = time.Duration(second.ReadingAt(base + p.open + p.length))
		return line
	}
	return p.open
}

// subject is a statistic with its own oracle.
type subject struct {
	*node.Statistic
	oracle
	position
	calls   []flying
	loans   []*loan
	lent    int // number of loans whose buckets have begun so far
	retired bool
}

type flying struct {
	call    *node.Call
	entered time.Duration
	n       int64
	stay    *stay
	inside  *inside
}

type loan struct {
	node.Loan
	bucket, entered time.Duration
	n               int64
	passed          bool
	stay            *stay
}

// counted returns the line time at which an event with the given stamp counts. If this event turns the statistic,
// counted first counts each loan whose bucket has begun as a call in flight.
func (s *subject) counted(stamp time.Duration) time.Duration {
	end, from := s.end, s.open+s.length
	when := s.position.counted(stamp)
	if s.end == end {
		return when
	}
	slices.SortStableFunc(s.loans, func(a, b *loan) int { return cmp.Compare(a.bucket, b.bucket) })
	var there bool // whether goTo has reached the open bucket
	goTo := func(begin, to time.Duration) {
		if from != to+s.length {
			s.turnTo(end, from, begin, to)
			end, from = begin+s.length, to+s.length
		}
		there = to == s.open
	}
	for _, l := range s.loans {
		if !l.passed && l.bucket <= s.open {
			begin := s.begin
			if l.bucket < s.open {
				begin = end + l.bucket - from // assumes that skipped seconds had the usual length
				if from == l.bucket+s.length {
					begin = end - s.length
				}
			}
			goTo(begin, l.bucket)
			l.passed = true
			s.lent++
			s.events = append(s.events, event{at: l.bucket, pass: l.n, borrow: l.n, balance: 1, when: begin})
			l.stay = s.addCall(begin, begin)
		}
	}
	if !there {
		goTo(s.begin, s.open)
	}
	return when
}

func (s *subject) record(e event) { s.events = append(s.events, e) }

// track records c as a call in flight. The time in which c is inside (see the type inside) starts at the reading now.
func (s *subject) track(c flying, now time.Duration) {
	c.inside = &inside{now, stillInside}
	s.inside = append(s.inside, c.inside)
	s.calls = append(s.calls, c)
}

// schedule applies the same random events to statistics and to oracles, and compares all results. The events are
// bursts, gaps, late stamps, batches, overlapping calls, borrowed passes, new stripes, steps of the wall clock, and new
// and retired statistics. A test and a fuzz target both call schedule.
func schedule(t *testing.T, random *rand.Rand, buckets, leaves int, steps bool) {
	kept := time.Minute
	if leaves%2 == 0 {
		kept = 150 * time.Second
	}
	r := newRig(t, node.Options{SampleCount: buckets, Histograms: kept})
	length := time.Second / time.Duration(buckets)
	o := &oracles{buckets: int64(buckets), slewed: steps}
	newSubject := func(s *node.Statistic) *subject {
		x := &subject{Statistic: s, position: position{r: r, length: length}}
		if x.split = random.IntN(3) > 0; x.split {
			s.SplitByCode()
		}
		o.list = append(o.list, &x.oracle)
		x.position.counted(r.now) // like the statistic, the oracle starts in the open bucket
		x.spells = newSpells(int64(x.open / time.Second))
		return x
	}
	var subjects []*subject
	view := node.NewView(r.config, 0)
	if leaves == 1 {
		view = r.view
		subjects = append(subjects, newSubject(r.Statistic))
	}
	add := func() {
		s := node.New(r.config, leap.Reading(r.now))
		view.Add(s)
		subjects = append(subjects, newSubject(s))
	}
	w := &witness{records: map[int64]node.MetricNode{}}
	for range 60 + random.IntN(300) {
		switch random.IntN(12) {
		case 0:
			r.now += time.Duration(random.Int64N(int64(3 * time.Second)))
		case 1:
			// Move the clock to the end of the bucket, or to 1 ns before this end.
			r.now = r.now/length*length + length - time.Duration(random.IntN(2))
		case 2:
			if random.IntN(10) == 0 {
				r.now += time.Duration(random.Int64N(int64(150 * time.Second)))
			}
		case 3:
			if steps && random.IntN(4) == 0 {
				r.wall += time.Duration(random.Int64N(int64(2*time.Hour))) - time.Hour
			} else if steps {
				r.wall += time.Duration(random.Int64N(int64(2*time.Second))) - time.Second
			}
		default:
			r.now += time.Duration(random.Int64N(int64(40 * ms)))
		}
		if live(subjects) < leaves && random.IntN(4) == 0 {
			add()
		}
		if live(subjects) > 0 {
			s := subjects[random.IntN(len(subjects))]
			if !s.retired {
				switch random.IntN(20) {
				case 0:
					s.Grow()
				case 1, 2:
					s.Reseed()
				}
				s.act(random, r, leaves > 1, view, w)
			}
		}
		if random.IntN(8) == 0 && len(subjects) > 0 {
			check(t, random, r, o, subjects, view, buckets, steps, w)
		}
	}
}

func live(subjects []*subject) (n int) {
	for _, s := range subjects {
		if !s.retired {
			n++
		}
	}
	return n
}

// act does one random operation on s.
func (s *subject) act(random *rand.Rand, r *rig, retire bool, view *node.View, w *witness) {
	at := r.now
	if random.IntN(5) == 0 {
		at = max(at-time.Duration(random.Int64N(int64(time.Second))), 0) // the stamp is up to a second old
	}
	now := leap.Reading(at)
	n := int64(1)
	if random.IntN(4) == 0 {
		n += random.Int64N(50)
	}
	switch k := random.IntN(12); {
	case k < 4:
		if random.IntN(8) == 0 {
			c := s.Resume(now, n)
			s.record(event{at: s.counted(at), balance: 1, when: at, stripe: c.Stripe()})
			s.track(flying{call: &c, entered: at, n: n, stay: s.addCall(at, s.begin)}, r.now)
			s.addOpen(-rest(at))
			break
		}
		c := s.Enter(now, n)
		s.record(event{at: s.counted(at), pass: n, balance: 1, when: at, stripe: c.Stripe()})
		s.track(flying{call: &c, entered: at, n: n, stay: s.addCall(at, s.begin)}, r.now)
		s.addOpen(-rest(at))
	case k < 7 && len(s.calls) > 0:
		i := random.IntN(len(s.calls))
		c := s.calls[i]
		s.calls = slices.Delete(s.calls, i, i+1)
		failed := random.IntN(3) == 0
		if random.IntN(8) == 0 {
			to := max(c.entered-time.Duration(random.Int64N(int64(2*time.Second))), 0)
			c.call.Backdate(leap.Reading(to))
			s.addOpen(rest(c.entered) - rest(to))
			c.entered = to
		}
		code := node.Code(len(s.events) % 4 * 100) // 0, 100, 200 or 300; 0 means that the call has no code
		c.call.Exit(now, failed, code)
		c.inside.to = at
		e := event{
			at: s.counted(at), done: c.n, code: code, rt: max(at-c.entered, 0),
			balance: -1, when: r.now, stripe: c.call.Stripe(),
		}
		s.removeCall(c.stay, max(at, c.entered))
		s.addOpen(rest(c.entered))
		if failed {
			e.failed = c.n
		}
		s.record(e)
	case k < 8 && random.IntN(2) == 0:
		rt, code := time.Duration(random.Int64N(int64(2*time.Second))), node.Code(len(s.events)%4*100)
		e := event{at: s.counted(at), pass: n, done: n, code: code, rt: rt}
		if random.IntN(3) == 0 {
			e.failed = n
		}
		b := s.Hold(now)
		if b.At() != time.Duration(r.zero)*time.Second+s.open {
			panic("Hold returned another bucket than the open one")
		}
		b.Record(rt, n, e.failed > 0, code)
		s.record(e)
	case k < 8:
		s.Block(now, n)
		s.record(event{at: s.counted(at), block: n})
	case k < 9:
		s.counted(at)
		bucket := s.open + time.Duration(random.IntN(4))*s.length
		l, ok := s.Occupy(now, time.Duration(r.zero)*time.Second+bucket, n)
		if ok != (bucket > s.open) {
			panic("Occupy lends from a bucket that has begun, or does not lend from a later bucket")
		}
		if ok {
			s.loans = append(s.loans, &loan{Loan: l, bucket: bucket, entered: at, n: n})
		}
	case k < 10 && len(s.loans) > 0:
		i := random.IntN(len(s.loans))
		l := s.loans[i]
		s.counted(at)
		if random.IntN(2) == 0 {
			if l.Cancel(now) == l.passed {
				panic("Cancel succeeds after the bucket has begun, or fails before the bucket begins")
			}
			if !l.passed {
				s.loans = slices.DeleteFunc(s.loans, func(x *loan) bool { return x == l })
			}
			break
		}
		c, ok := l.Call(now, leap.Reading(l.entered))
		if ok != l.passed {
			panic("Call fails after the bucket has begun, or succeeds before the bucket begins")
		}
		if ok {
			s.loans = slices.DeleteFunc(s.loans, func(x *loan) bool { return x == l })
			s.track(flying{call: &c, entered: l.entered, n: l.n, stay: l.stay}, r.now)
			s.addOpen(-rest(l.entered))
		}
	case retire && len(s.calls) == 0 && len(s.loans) == 0:
		s.counted(r.now)
		since := int64(s.open/time.Second) - 59
		s.retired = s.Retire(leap.Reading(r.now), r.zero+since)
		if used := s.counts(time.Duration(since)*time.Second, s.open+s.length); s.retired && used != (node.Counts{}) {
			panic("a statistic with recent events was retired")
		}
		if s.retired {
			view.Remove(r.zero + since)
			if s.counts(0, s.open+s.length) != (node.Counts{}) {
				w.forgotten = max(w.forgotten, since)
			}
		}
	}
}

// checkTimesByCode compares the histograms in got with want, which contains all response times by code.
func checkTimesByCode(t *testing.T, got *node.Codes, want map[node.Code][]time.Duration) {
	t.Helper()
	before, codes := -1, 0
	for code, h := range got.Histograms() {
		if int(code) <= before {
			t.Fatalf("the histogram of code %d follows %d", code, before)
		}
		before = int(code)
		codes++
		rts, sum := want[code], time.Duration(0)
		for _, rt := range rts {
			sum += rt
		}
		if h.Count() != int64(len(rts)) || h.Sum() != sum {
			t.Fatalf("code %d: %d calls took %v, want %d and %v", code, h.Count(), h.Sum(), len(rts), sum)
		}
		for bound, n := range h.Classic() {
			for _, rt := range rts {
				if rt <= bound {
					n--
				}
			}
			if n != 0 {
				t.Fatalf("code %d: %d calls too many up to %v", code, n, bound)
			}
		}
		n := h.Zero()
		for _, m := range h.Native() {
			n += m
		}
		if n != h.Count() {
			t.Fatalf("code %d: %d calls in native buckets, want %d", code, n, h.Count())
		}
	}
	if codes != len(want) {
		t.Fatalf("histograms of %d codes, want %d", codes, len(want))
	}
}

// witness keeps earlier results for comparison with later ones.
type witness struct {
	records   map[int64]node.MetricNode
	forgotten int64 // index of a second; the removal of leaves made all earlier seconds unreadable
	h         node.Histogram
	codes     node.Codes
	reported  time.Duration // highest call-seconds of all snapshots so far
}

// check compares all results of the view with the results of the oracles.
func check(
	t *testing.T, random *rand.Rand, r *rig, o *oracles, subjects []*subject, view *node.View,
	buckets int, steps bool, w *witness,
) {
	t.Helper()
	length := time.Second / time.Duration(buckets)
	now := leap.Reading(r.now)
	var open time.Duration
	var inFlight, waiting, waiters int64
	for _, s := range subjects {
		if s.retired {
			continue
		}
		s.counted(r.now)
		if random.IntN(2) == 0 || steps && len(s.loans) > 0 {
			// If s is not sealed here, the view turns s in two steps. The first step turns s to the start of the open
			// second, and loans from the first bucket of this second then become calls. The oracle turns s in one step.
			// With slewed seconds and loans, the results of two steps may differ from the results of one step. In this
			// case, s is therefore always sealed here.
			s.Seal(now)
		}
		open = max(open, s.open)
		inFlight += int64(len(s.calls))
		for _, l := range s.loans {
			if l.passed {
				inFlight++
			} else {
				waiting += l.n
				waiters++
			}
		}
	}
	if live(subjects) == 0 {
		return
	}
	r.line.At(now)
	present := int64(open / time.Second)
	first := view.Since() - r.zero
	for i := max(first, present-65-int64(random.IntN(2))*700); i <= present; i++ {
		m, ok := view.Second(r.zero + i)
		name, fresh := r.line.WallTime(r.zero + i)
		if ok != (i < present && fresh && i >= w.forgotten) && i > present-600 {
			t.Fatalf("second %d of %d: readable %t", i, present, ok)
		}
		if !ok {
			continue
		}
		want := o.second(i)
		if !steps && want.Start != name {
			t.Fatalf("second %d is named %v, want %v", i, name, want.Start)
		}
		want.Start = name
		most := o.maxInFlight(time.Duration(i)*time.Second, time.Duration(i+1)*time.Second)
		if m.InFlightMax > most || m.InFlightMax < want.InFlightMax {
			t.Fatalf("second %d of %d: maximum in flight at least %d, which is not from %d to %d",
				i, present, m.InFlightMax, want.InFlightMax, most)
		}
		if inside := o.maxInside(time.Duration(i) * time.Second); !steps && inside > m.InFlightMaxUpper {
			t.Fatalf("second %d of %d: maximum in flight at most %d, but %d calls were inside",
				i, present, m.InFlightMaxUpper, inside)
		}
		if steps {
			want.InFlightMax = m.InFlightMax
		}
		if m != want {
			t.Fatalf("second %d of %d:\n got %+v\nwant %+v", i, present, m, want)
		}
		if before, ok := w.records[i]; ok && before != m {
			t.Fatalf("second %d changed from %+v to %+v", i, before, m)
		}
		w.records[i] = m
	}
	var appended []node.MetricNode
	since := present - 1 - random.Int64N(700)
	for i := since; i < present; i++ {
		if m, ok := view.Second(r.zero + i); ok {
			appended = append(appended, m)
		}
	}
	if got := view.AppendSeconds(nil, r.zero+since, r.zero+present+10); !slices.Equal(got, appended) {
		for i := range min(len(got), len(appended)) {
			if got[i] != appended[i] {
				t.Fatalf("in a list: %v, single: %v", got[i], appended[i])
			}
		}
		t.Fatalf("%d seconds in a list, %d single ones", len(got), len(appended))
	}

	end := open + length
	win := view.Window(now)
	if want := o.counts(end-time.Second, end); win.Counts != want || view.PassQPS(now) != float64(want.Pass) {
		t.Fatalf("window at %v:\n got %+v\nwant %+v", open, win.Counts, want)
	}
	var most int64
	for back := range buckets {
		want := o.counts(end-time.Duration(back+1)*length, end-time.Duration(back)*length)
		if got := view.Bucket(now, back); got != want {
			t.Fatalf("bucket %d back at %v:\n got %+v\nwant %+v", back, open, got, want)
		}
		most = max(most, want.Complete)
	}
	if win.MaxComplete != most {
		t.Fatalf("most completions in a bucket: %d, want %d", win.MaxComplete, most)
	}
	end = time.Duration(present+1) * time.Second
	minute := view.Minute(now)
	if want := o.counts(end-time.Minute, end); minute.Counts != want {
		t.Fatalf("minute at %v:\n got %+v\nwant %+v", open, minute.Counts, want)
	}
	most = 0
	for i := present - 59; i <= present; i++ {
		most = max(most, o.counts(time.Duration(i)*time.Second, time.Duration(i+1)*time.Second).Complete)
	}
	if minute.MaxComplete != most {
		t.Fatalf("most completions in a second of the minute: %d, want %d", minute.MaxComplete, most)
	}

	from := max(first, w.forgotten, present-1-random.Int64N(int64(r.config.Options().Histograms/time.Second)-1))
	to := from + random.Int64N(max(present-from+1, 1))
	begin, until := time.Duration(from)*time.Second, time.Duration(to)*time.Second
	want := o.counts(begin, until)
	if got, whole := view.Sum(r.zero+from, r.zero+to); got != want || !whole {
		t.Fatalf("sum of seconds %d to %d:\n got %+v (%t)\nwant %+v", from, to, got, whole, want)
	}
	h := &w.h
	if !view.Histogram(r.zero+from, r.zero+to, h) || h.Count() != want.Complete || h.Sum() != want.RTSum {
		t.Fatalf("histogram of seconds %d to %d: %d with sum %v, want %+v", from, to, h.Count(), h.Sum(), want)
	}
	checkCells(t, h)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
		checkQuantile(t, h, q, o.quantile(q, begin, until))
	}
	checkDistributions(t, view, r.zero, from, to, o)
	if _, whole := view.Sum(r.zero+from, r.zero+present+1); whole {
		t.Fatalf("a sum with the open second is reported as complete")
	}

	s := view.SnapshotByCode(now, h, &w.codes)
	if got, want := maps.Collect(w.codes.All()), o.completions(); !maps.Equal(got, want) {
		t.Fatalf("calls by code: %v, want %v", got, want)
	}
	before := -1
	for code := range w.codes.All() {
		if int(code) <= before {
			t.Fatalf("code %d follows %d", code, before)
		}
		before = int(code)
	}
	checkTimesByCode(t, &w.codes, o.rts())
	var split int64 // calls in flight of the statistics that split by code
	for _, x := range subjects {
		if x.split {
			split += int64(len(x.calls))
			for _, l := range x.loans {
				if l.passed {
					split++
				}
			}
		}
	}
	if w.codes.InFlight() != split {
		t.Fatalf("%d calls in flight of statistics that split by code, want %d", w.codes.InFlight(), split)
	}
	var spent time.Duration
	for _, x := range subjects {
		spent += x.totalAt(r.now)
	}
	w.reported = max(w.reported, spent)
	spent = w.reported
	if want := float64(spent/time.Second) + (spent % time.Second).Seconds(); s.InFlightSeconds != want {
		t.Fatalf("calls spent %v s by %v, want %v", s.InFlightSeconds, r.now, want)
	}
	var age time.Duration
	known := true
	for _, x := range subjects {
		// After slewing, the ages of calls with a loan are off by the slewed time.
		known = known && (!steps || x.lent == 0)
		for _, c := range x.calls {
			age += r.now - c.entered
		}
		for _, l := range x.loans {
			if l.passed {
				age += r.now - l.bucket // until Loan.Call returns the call, its age begins with the bucket of the loan
			}
		}
	}
	highest, lowest := age+time.Nanosecond, age-time.Duration(inFlight)*4096-time.Nanosecond
	if known && (s.InFlightElapsed > highest.Seconds() || s.InFlightElapsed < lowest.Seconds()) {
		t.Fatalf("the age of %d calls in flight is %v s at %v, want %v", inFlight, s.InFlightElapsed, r.now, age)
	}
	calls, passes := view.Waiting(now)
	if want := o.counts(-1, end); s.Total != want || s.InFlight != inFlight || view.InFlight() != inFlight ||
		passes != waiting || calls != waiters {
		t.Fatalf("total at %v:\n got %+v, %d in flight, %d waiting\nwant %+v, %d, %d",
			open, s.Total, s.InFlight, passes, want, inFlight, waiting)
	}
	if h.Count() != s.Total.Complete || h.Sum() != s.Total.RTSum {
		t.Fatalf("histogram of %d with sum %v, total %+v", h.Count(), h.Sum(), s.Total)
	}
	checkCells(t, h)
	checkQuantile(t, h, 0.95, o.quantile(0.95, -1, end))
	last, _ := view.Second(r.zero + present - 1)
	peak := s.Peak
	if random.IntN(4) == 0 { // the oracle is slow, so only one peak in four is checked
		peak = 0
		for i := present - 60; i < present; i++ {
			peak = max(peak, o.second(i).PassPeak)
		}
	}
	if s.Peak != peak || s.Last != last {
		t.Fatalf("peak of the minute %d, want %d; last second %+v, want %+v", s.Peak, peak, s.Last, last)
	}
}

// checkDistributions compares three results with the oracles: the histogram of each second in [from, to), the histogram
// of all seconds before from, and the counts of all seconds before from. The view must still have the histograms of
// [from, to) and of all later seconds.
func checkDistributions(t *testing.T, v *node.View, zero, from, to int64, o *oracles) {
	t.Helper()
	hs := make([]node.Histogram, to-from)
	if known := v.Histograms(zero+from, hs); known > zero+from {
		t.Fatalf("histograms exist from second %d on, want %d", known-zero, from)
	}
	for i := range hs {
		begin := time.Duration(from+int64(i)) * time.Second
		want := o.counts(begin, begin+time.Second)
		if h := &hs[i]; h.Count() != want.Complete || h.Sum() != want.RTSum {
			t.Fatalf("histogram of second %d: %d with sum %v, want %+v", from+int64(i), h.Count(), h.Sum(), want)
		}
		checkQuantile(t, &hs[i], 0.99, o.quantile(0.99, begin, begin+time.Second))
	}
	var h node.Histogram
	want := o.counts(-1, time.Duration(from)*time.Second)
	if !v.HistogramBefore(zero+from, &h) || h.Count() != want.Complete || h.Sum() != want.RTSum {
		t.Fatalf("histogram before second %d: %d with sum %v, want %+v", from, h.Count(), h.Sum(), want)
	}
	want.RTMin, want.RTMax = 0, 0
	if got, known := v.CountsBefore(zero + from); !known || got != want {
		t.Fatalf("counts before second %d: %+v (%t), want %+v", from, got, known, want)
	}
	for i := range hs {
		checkCells(t, &h)
		checkCells(t, &hs[i])
		h.Add(&hs[i])
	}
	checkCells(t, &h)
	if want := o.counts(-1, time.Duration(to)*time.Second); h.Count() != want.Complete || h.Sum() != want.RTSum {
		t.Fatalf("histogram before second %d: %d with sum %v, want %+v", to, h.Count(), h.Sum(), want)
	}
}

// checkQuantile checks the estimate of the q-quantile. The parameter want is the true value: the estimate must lie in
// the native bucket of want, and the quantiles 0 and 1 must be exact.
func checkQuantile(t *testing.T, h *node.Histogram, q float64, want time.Duration) {
	t.Helper()
	got := h.Quantile(q)
	if got == want {
		return
	}
	if q <= 0 || q >= 1 || got == 0 || want == 0 || nativeIndex(got) != nativeIndex(want) {
		t.Fatalf("quantile %v is %v, want %v", q, got, want)
	}
}

func TestAgainstOracle(t *testing.T) {
	seeds := uint64(6) // FuzzAgainstOracle tries more
	if testing.Short() {
		seeds = 3 // short mode is for the race detector, and this test has only one goroutine, so it has no races
	}
	for seed := range seeds {
		for _, buckets := range []int{1, 2, 10} {
			for _, leaves := range []int{1, 2, 5} {
				schedule(t, rand.New(rand.NewPCG(seed, 7)), buckets, leaves, seed%2 == 1)
			}
		}
	}
}

func FuzzAgainstOracle(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(1), uint8(1), false)
	f.Add(uint64(202), uint64(260), uint8('/'), uint8(0xf0), true) // a second whose first buckets are slewed
	f.Add(uint64(1), uint64(2), uint8(4), uint8(3), true)
	f.Add(uint64(47), uint64(33), uint8('X'), uint8('@'), false) // a call is resumed in the last nanosecond of a bucket
	// With this input, a reader reads a second before the history and before the first second of a leaf.
	f.Add(uint64(0), uint64(65), uint8(0), uint8(0x13), false)
	f.Fuzz(func(t *testing.T, a, b uint64, buckets, leaves uint8, steps bool) {
		divisors := []int{1, 2, 4, 5, 10, 20}
		schedule(t, rand.New(rand.NewPCG(a, b)), divisors[int(buckets)%len(divisors)], 1+int(leaves)%5, steps)
	})
}

// checkCells checks that the buckets of h add up to its count, even if h was filled before.
func checkCells(t *testing.T, h *node.Histogram) {
	t.Helper()
	sum, last := h.Zero(), int64(0)
	for _, n := range h.Native() {
		sum += n
	}
	if sum != h.Count() {
		t.Fatalf("native buckets hold %d of %d response times", sum, h.Count())
	}
	for bound, n := range h.Classic() {
		if n < last || n > h.Count() {
			t.Fatalf("classic bucket %v holds %d of %d response times, its predecessor %d", bound, n, h.Count(), last)
		}
		last = n
	}
}
