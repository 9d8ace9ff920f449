package node_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// event is one thing that happened, as the oracle remembers it.
type event struct {
	at      time.Duration // when it counted, on the line: never before the event before it
	pass    int64
	block   int64
	done    int64
	failed  int64
	rt      time.Duration
	balance int64 // change of what is in flight
}

// oracle remembers every event and answers by looking at all of them.
type oracle struct {
	events  []event
	buckets int64 // in a second
}

// counts is the sum of what happened in [from, to).
func (o *oracle) counts(from, to time.Duration) node.Counts {
	var c node.Counts
	for _, e := range o.events {
		if e.at < from || e.at >= to {
			continue
		}
		c.Pass += e.pass
		c.Block += e.block
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

// quantile is the response time of rank ceil(q*n) in [from, to).
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

func (o *oracle) second(i int64) node.MetricNode {
	start, end := time.Duration(i)*time.Second, time.Duration(i+1)*time.Second
	m := node.MetricNode{Start: epoch.Add(start), Counts: o.counts(start, end)}
	var flying int64
	for _, e := range o.events {
		if e.at >= end {
			break
		}
		if e.at >= start {
			m.InFlightMax = max(m.InFlightMax, flying)
		}
		flying += e.balance
		if e.at >= start {
			m.InFlightMax = max(m.InFlightMax, flying)
		}
	}
	m.InFlight = flying
	m.InFlightMax = max(m.InFlightMax, flying)
	length := time.Second / time.Duration(o.buckets)
	for to := start + length; to <= end; to += length {
		m.PassPeak = max(m.PassPeak, o.counts(to-time.Second, to).Pass)
	}
	return m
}

// position follows where on the line a statistic is, as the line says: the oracle's only use of the real thing.
type position struct {
	r      *rig
	length time.Duration
	open   time.Duration // line time at which the open bucket starts, since second zero
	end    time.Duration // reading at which it ends
}

// counted is when, on the line, an event counts that was stamped at the reading at.
func (p *position) counted(at time.Duration) time.Duration {
	if at >= p.end {
		second := p.r.line.At(at)
		base := time.Duration(p.r.zero) * time.Second
		line := second.Line(at) - base
		p.open = line / p.length * p.length
		p.end = second.Reading(base + p.open + p.length)
		return line
	}
	return p.open
}

// schedule drives a statistic and the oracle with the same random events: bursts, gaps, late stamps, batches, calls
// that overlap, steps of the wall clock, readings of everything. It is the body of the test and of the fuzz target.
func schedule(t *testing.T, random *rand.Rand, buckets int, steps bool) {
	r := newRig(t, node.Options{SampleCount: buckets})
	o := &oracle{buckets: int64(buckets)}
	length := time.Second / time.Duration(buckets)
	p := &position{r: r, length: length, end: length}
	type flying struct {
		call    *node.Call
		entered time.Duration
		n       int64
	}
	var calls []flying
	records := map[int64]node.MetricNode{}
	var h node.Histogram
	for range 60 + random.IntN(300) {
		switch random.IntN(12) {
		case 0:
			r.now += time.Duration(random.Int64N(int64(3 * time.Second)))
		case 1:
			r.now = r.now/length*length + length - time.Duration(random.IntN(2)) // onto a boundary, or just before it
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
		at := r.now
		if random.IntN(5) == 0 {
			at = max(at-time.Duration(random.Int64N(int64(time.Second))), 0) // a stamp read some time ago
		}
		n := int64(1)
		if random.IntN(4) == 0 {
			n += random.Int64N(50)
		}
		switch k := random.IntN(10); {
		case k < 4:
			c := r.Enter(at, n)
			calls = append(calls, flying{&c, at, n})
			o.events = append(o.events, event{at: p.counted(at), pass: n, balance: 1})
		case k < 7 && len(calls) > 0:
			i := random.IntN(len(calls))
			c := calls[i]
			calls = append(calls[:i], calls[i+1:]...)
			failed := random.IntN(3) == 0
			c.call.Exit(at, failed)
			e := event{at: p.counted(at), done: c.n, rt: max(at-c.entered, 0), balance: -1}
			if failed {
				e.failed = c.n
			}
			o.events = append(o.events, e)
		case k < 8:
			r.Block(at, n)
			o.events = append(o.events, event{at: p.counted(at), block: n})
		default:
			p.counted(r.now)
			r.Seal(r.now)
			present := int64(p.open / time.Second)
			for i := max(0, present-65); i <= present; i++ {
				m, ok := r.Second(r.zero + i)
				name, fresh := r.line.Name(r.zero + i)
				if ok != (i < present && fresh) && i > present-60 {
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
				if m != want {
					t.Fatalf("second %d of %d:\n got %+v\nwant %+v", i, present, m, want)
				}
				if before, ok := records[i]; ok && before != m {
					t.Fatalf("second %d changed from %+v to %+v", i, before, m)
				}
				records[i] = m
			}
			end := p.open + length
			w := r.Window(r.now)
			if want := o.counts(end-time.Second, end); w.Counts != want || r.PassQPS(r.now) != float64(want.Pass) {
				t.Fatalf("window at %v:\n got %+v\nwant %+v", p.open, w.Counts, want)
			}
			var most int64
			for back := range buckets {
				want := o.counts(end-time.Duration(back+1)*length, end-time.Duration(back)*length)
				if got := r.Bucket(r.now, back); got != want {
					t.Fatalf("bucket %d back at %v:\n got %+v\nwant %+v", back, p.open, got, want)
				}
				most = max(most, want.Complete)
			}
			if w.MaxComplete != most {
				t.Fatalf("most completions in a bucket: %d, want %d", w.MaxComplete, most)
			}
			end = time.Duration(present+1) * time.Second
			if got, want := r.Minute(r.now).Counts, o.counts(end-time.Minute, end); got != want {
				t.Fatalf("minute at %v:\n got %+v\nwant %+v", p.open, got, want)
			}
			from := max(0, present-1-random.Int64N(59))
			to := from + random.Int64N(present-from+1)
			begin, until := time.Duration(from)*time.Second, time.Duration(to)*time.Second
			want := o.counts(begin, until)
			if got, whole := r.Sum(r.zero+from, r.zero+to); got != want || !whole {
				t.Fatalf("sum of seconds %d to %d:\n got %+v (%t)\nwant %+v", from, to, got, whole, want)
			}
			if !r.Histogram(r.zero+from, r.zero+to, &h) || h.Count() != want.Complete || h.Sum() != want.RTSum {
				t.Fatalf("histogram of seconds %d to %d: %d with sum %v, want %+v", from, to, h.Count(), h.Sum(), want)
			}
			for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
				checkQuantile(t, &h, q, o.quantile(q, begin, until))
			}
			s := r.Snapshot(r.now, &h)
			if want := o.counts(-1, end); s.Total != want || s.InFlight != int64(len(calls)) || r.InFlight() != s.InFlight {
				t.Fatalf("total at %v:\n got %+v, %d in flight\nwant %+v, %d", p.open, s.Total, s.InFlight, want, len(calls))
			}
			if h.Count() != s.Total.Complete || h.Sum() != s.Total.RTSum {
				t.Fatalf("histogram of %d with sum %v, total %+v", h.Count(), h.Sum(), s.Total)
			}
			checkQuantile(t, &h, 0.95, o.quantile(0.95, -1, end))
		}
	}
}

// checkQuantile checks that an estimate is in the bucket of the true value, and exact at both ends.
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
	for seed := range uint64(60) {
		for _, buckets := range []int{1, 2, 10} {
			schedule(t, rand.New(rand.NewPCG(seed, 7)), buckets, seed%2 == 1)
		}
	}
}

func FuzzAgainstOracle(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(1), false)
	f.Add(uint64(1), uint64(2), uint8(4), true)
	f.Fuzz(func(t *testing.T, a, b uint64, buckets uint8, steps bool) {
		divisors := []int{1, 2, 4, 5, 10, 20}
		schedule(t, rand.New(rand.NewPCG(a, b)), divisors[int(buckets)%len(divisors)], steps)
	})
}
