package sentinellog

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Rows of random numbers are unpacked as they were packed, in ascending order, also if they are inserted in any order.
// A second row of a second is added to the first one.
func TestPackedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		h, truth := newHistory(0), map[int64]row{}
		for range r.IntN(400) {
			n := row{
				at: 1_700_000_000 + r.Int64N(500), pass: r.Int64N(1 << (1 + r.IntN(39))), block: r.Int64N(3),
				exception: r.Int64N(3), occupied: r.Int64N(2), concurrency: r.Int64N(4) * r.Int64N(1000),
			}
			n.complete = n.pass
			if r.IntN(2) == 0 {
				n.complete = r.Int64N(1 << 20)
			}
			if n.complete > 0 {
				n.rt = r.Int64N(5000)
			}
			h.add("a", n)
			sum, ok := truth[n.at]
			if ok {
				sum.add(n)
				n = sum
			}
			truth[n.at] = n
		}
		s := h.series["a"]
		if s == nil {
			continue
		}
		last, n := int64(0), 0
		for i := range s.chunks {
			for _, got := range s.chunks[i].rows(nil) {
				if got != truth[got.at] || got.at <= last {
					t.Fatalf("%+v after %d, want %+v", got, last, truth[got.at])
				}
				last = got.at
				n++
			}
		}
		if n != len(truth) || len(h.present) != n {
			t.Fatalf("%d rows in %d seconds, want %d", n, len(h.present), len(truth))
		}
	}
}

// A sum adds what adds up. The average response time of a sum is weighted by the completions.
func TestSumOfRows(t *testing.T) {
	a := row{at: 1, pass: 1, block: 2, complete: 3, exception: 1, occupied: 1, rt: 10, concurrency: 4}
	a.add(row{at: 1, pass: 10, block: 20, complete: 1, exception: 1, rt: 31, concurrency: 3})
	want := row{
		at: 1, pass: 11, block: 22, complete: 4, exception: 2, occupied: 1, rt: 15, rest: 1, concurrency: 4,
	}
	if a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	if m := a.record(); m.AvgRT() != 15250*time.Microsecond {
		t.Errorf("average response time %v", m.AvgRT())
	}
}

// Numbers that cannot be counts of calls are no row. An average response time is dropped if it is none.
func TestInvalidNumbers(t *testing.T) {
	for _, r := range []metriclog.Row{
		{Pass: -1},
		{Block: maxCount + 1},
		{Success: -5},
		{Concurrency: -1},
	} {
		if n, ok := newRow(&r); ok {
			t.Errorf("%+v is the row %+v", r, n)
		}
	}
	for _, r := range []metriclog.Row{
		{Pass: 1, RT: 7 * time.Millisecond}, // Java logs the sum if no call completed
		{Pass: 1, Success: 1, RT: -time.Millisecond},
		{Pass: 1, Success: 1 << 30, RT: 1 << 55},
	} {
		if n, ok := newRow(&r); !ok || n.rt != 0 || n.pass != 1 {
			t.Errorf("%+v: %+v, %t", r, n, ok)
		}
	}
}

// A process that writes late gets a delay from the first second that no consumer has seen. Each second of its log is
// exported once, whatever the position of a consumer is.
func TestDelay(t *testing.T) {
	p := newProcess(metriclog.Log{App: "a"}, false, 0)
	add := func(second, sealed int64) {
		p.export(sealed)
		p.add("r", row{at: second, pass: 1}, sealed, 3)
	}
	add(50, 40) // punctual
	add(71, 100)
	add(70, 100) // read later, because it is in another file
	add(50, 100) // in a second that consumers have seen
	add(75, 120)
	add(100, 200)
	for _, x := range []struct{ line, end int64 }{
		{40, 40},
		{69, 69},
		{70, 70},
		{71, 70},
		{102, 70},
		{103, 70},
		{104, 71},
		{108, 75},
		{109, 75},
		{122, 75},
		{123, 75},
		{124, 76},
		{147, 99},
		{148, 100},
		{149, 100},
		{202, 100},
		{203, 100},
		{204, 101},
	} {
		if got := p.end(x.line); got != x.end {
			t.Errorf("second %d of the line ends with %d, want %d", x.line, got, x.end)
		}
	}
	for line, last := int64(0), int64(-1); line < 300; line++ {
		end := p.end(line)
		if end < last || end > last+1 {
			t.Errorf("second %d of the line has %d seconds", line, end-last)
		}
		last = end
	}
	if p.late != 5 || p.lost != 1 {
		t.Errorf("%d late rows and %d lost ones", p.late, p.lost)
	}
}

// A process has a bounded number of resources. Rows of further ones are lost, and idle ones make way after an hour.
func TestResourcesAreBounded(t *testing.T) {
	p := newProcess(metriclog.Log{App: "a"}, false, 0)
	for i := range int64(maxResources + 10) {
		p.add(strconv.FormatInt(i, 10), row{at: 100, pass: 1}, 50, 1)
	}
	p.add("0", row{at: 101, pass: 1}, 50, 1)
	if len(p.series) != maxResources || p.lost != 10 {
		t.Errorf("%d resources, %d rows are lost", len(p.series), p.lost)
	}
	p.drop(102 + maxIdle)
	p.add("new", row{at: 102 + maxIdle, pass: 1}, 102+maxIdle, 1)
	if len(p.series) != 1 || p.lost != 10 {
		t.Errorf("%d resources, %d rows are lost", len(p.series), p.lost)
	}
}
