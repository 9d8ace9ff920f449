package node_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// event is one thing that happened, as the oracle remembers it.
type event struct {
	at      time.Duration // when it counted: never before the event before it
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

// schedule drives a statistic and the oracle with the same random events: bursts, gaps, late stamps, batches, calls
// that overlap, readings of everything. It is the body of the test and of the fuzz target.
func schedule(t *testing.T, random *rand.Rand, buckets int) {
	r := newRig(t, node.Options{SampleCount: buckets})
	o := &oracle{buckets: int64(buckets)}
	length := time.Second / time.Duration(buckets)
	type flying struct {
		call    *node.Call
		entered time.Duration
		n       int64
	}
	var calls []flying
	var now, open time.Duration // open: start of the bucket that the statistic is in
	records := map[int64]node.MetricNode{}
	counted := func(at time.Duration) time.Duration { // where an event with this stamp counts
		open = max(open, at/length*length)
		return max(at, open)
	}
	for range 60 + random.IntN(300) {
		switch random.IntN(12) {
		case 0:
			now += time.Duration(random.Int64N(int64(3 * time.Second)))
		case 1:
			now = now/length*length + length - time.Duration(random.IntN(2)) // onto a boundary, or just before it
		case 2:
			if random.IntN(10) == 0 {
				now += time.Duration(random.Int64N(int64(150 * time.Second)))
			}
		default:
			now += time.Duration(random.Int64N(int64(40 * ms)))
		}
		at := now
		if random.IntN(5) == 0 {
			at -= time.Duration(random.Int64N(int64(time.Second))) // a stamp read some time ago
			at = max(at, 0)
		}
		n := int64(1)
		if random.IntN(4) == 0 {
			n += random.Int64N(50)
		}
		switch k := random.IntN(10); {
		case k < 4:
			c := r.Enter(at, n)
			calls = append(calls, flying{&c, at, n})
			o.events = append(o.events, event{at: counted(at), pass: n, balance: 1})
		case k < 7 && len(calls) > 0:
			i := random.IntN(len(calls))
			c := calls[i]
			calls = append(calls[:i], calls[i+1:]...)
			e := event{at: counted(at), done: c.n, rt: max(at-c.entered, 0), balance: -1}
			failed := random.IntN(3) == 0
			if failed {
				e.failed = c.n
			}
			c.call.Exit(at, failed)
			o.events = append(o.events, e)
		case k < 8:
			r.Block(at, n)
			o.events = append(o.events, event{at: counted(at), block: n})
		default:
			counted(now)
			r.Seal(now)
			present := int64(now / time.Second)
			for i := max(0, present-65); i <= present; i++ {
				m, ok := r.Second(r.zero + i)
				if ok != (i < present) && i > present-60 {
					t.Fatalf("second %d at %v: readable %t", i, now, ok)
				}
				if !ok {
					continue
				}
				if want := o.second(i); m != want {
					t.Fatalf("second %d at %v:\n got %+v\nwant %+v", i, now, m, want)
				}
				if before, ok := records[i]; ok && before != m {
					t.Fatalf("second %d changed from %+v to %+v", i, before, m)
				}
				records[i] = m
			}
			end := now/length*length + length
			if got, want := r.Window(now).Counts, o.counts(end-time.Second, end); got != want {
				t.Fatalf("window at %v:\n got %+v\nwant %+v", now, got, want)
			}
			end = now/time.Second*time.Second + time.Second
			if got, want := r.Minute(now).Counts, o.counts(end-time.Minute, end); got != want {
				t.Fatalf("minute at %v:\n got %+v\nwant %+v", now, got, want)
			}
			var h node.Histogram
			s := r.Snapshot(now, &h)
			if want := o.counts(-1, now+1); s.Total != want || s.InFlight != int64(len(calls)) {
				t.Fatalf("total at %v:\n got %+v, %d in flight\nwant %+v, %d", now, s.Total, s.InFlight, want, len(calls))
			}
			var buckets int64
			for _, n := range h.Native() {
				buckets += n
			}
			if buckets+h.Zero() != s.Total.Complete || h.Sum() != s.Total.RTSum {
				t.Fatalf("histogram of %d with sum %v, completes %d", buckets+h.Zero(), h.Sum(), s.Total.Complete)
			}
		}
	}
}

func TestAgainstOracle(t *testing.T) {
	for seed := range uint64(60) {
		for _, buckets := range []int{1, 2, 10} {
			schedule(t, rand.New(rand.NewPCG(seed, 7)), buckets)
		}
	}
}

func FuzzAgainstOracle(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(1))
	f.Fuzz(func(t *testing.T, a, b uint64, buckets uint8) {
		divisors := []int{1, 2, 4, 5, 10, 20}
		schedule(t, rand.New(rand.NewPCG(a, b)), divisors[int(buckets)%len(divisors)])
	})
}
