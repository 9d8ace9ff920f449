package push

import (
	"context"
	"math"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/node"
)

// How seconds are read from the log.
const (
	lookback = collector.DefaultRetireAfter // before them: rows that tell who was idle
	together = 60                           // the most in a request
	rate     = 100_000                      // the most samples in a second
	stale    = time.Minute                  // after which retention may have deleted what is being read
)

// fromLog sends the seconds that only the log has: those of earlier processes, and those of this process that have left the history,
// up to the middle of it. It reports false if ctx ended before.
func (p *Pusher) fromLog(ctx context.Context) bool {
	if p.file == nil {
		return true
	}
	// The log is read up to the middle of the history: nearer to its beginning a slow server would let seconds leave the history while
	// they are sent, and the log would have to be read again for a few seconds at a time.
	for first := p.line.First(); ; { // sending takes its time, too
		to := first
		if p.at.Next >= first {
			p.pass(p.sent, true)
			oldest := p.line.Oldest()
			to = min(p.line.After(oldest, int64(p.stats.History()/time.Second)/2), p.opts.Log.Written())
			if p.at.Next >= min(oldest, to) {
				return true
			}
		}
		if !p.sendLogged(ctx, to) {
			return false
		}
	}
}

// sendLogged sends the logged seconds before to, one request after the other. The seconds that an earlier process may have sent go
// first and alone: a server that has them refuses the request that they are in. Every request has whole seconds of one process, and
// pauses as long as it took, so that the server has at least half of its time for others. Memory is bounded by one request. After one
// that took long it stops, so that the log is opened anew. It reports false if ctx ended before.
func (p *Pusher) sendLogged(ctx context.Context, to int64) bool {
	p.countCut(to)
	x := splitter{sender: p.sender, done: p.batch.add}
	rows := seconds.NewFiller(p.opts.Namespace, p.opts.Log.Runs(), p.selection(0), p.at.Next, math.MaxInt, &x)
	var until int64 // the second before which a request ends
	begin := func() {
		// What is in doubt is sent as it was sent before: the same seconds, in as many parts, so that what a server has of it is refused in
		// the same requests.
		run, end := p.opts.Log.Runs().At(p.at.Next)
		x.Labelled, x.parts, until = NewLabelled(nil, run.Labels[p.file.id]), 1, min(end, to)
		if p.at.InDoubt() {
			until, x.parts = min(until, p.at.Doubt), p.at.Parts
		}
	}
	begin()
	send := func(before int64) bool {
		n, _, _ := rows.Buffered()
		x.one = n > 1
		p.batch = batch{to: before, logged: true}
		rows.Flush()
		x.finish()
		if x.more == nil { // nobody knows under which labels its process would have sent it
			p.batch.requests, p.batch.lost = nil, true
			if p.line.Count(p.at.Next, before) > 0 {
				p.error("the process that counted these seconds did not push them, and its labels are not known; they are not sent",
					"from", time.Unix(p.at.Next, 0).UTC(), "to", time.Unix(before, 0).UTC())
			}
		}
		samples := 0
		for _, r := range p.batch.requests {
			r.doubt = p.at.InDoubt()
			samples += r.samples
		}
		began := time.Now()
		if samples > 0 {
			p.save(before, x.parts)
		}
		if !p.send(ctx) {
			return false
		}
		pace := time.Duration(samples) * time.Second / rate
		background.Sleep(ctx, min(max(time.Since(began), pace), time.Second))
		begin()
		return p.at.Next >= to || time.Since(began) < stale
	}
	ok := true
	p.opts.Log.Logged(p.at.Next-int64(lookback/time.Second), to, func(resource string, m *node.MetricNode) bool {
		at := m.Start.Unix()
		for ok && at >= until {
			ok = send(until)
		}
		n, samples, last := rows.Buffered()
		if full := n >= together || 2*samples >= p.opts.MaxSamples; ok && full && at > last && !p.at.InDoubt() {
			ok = send(at)
		}
		if ok {
			rows.Add(resource, m)
		} else {
			p.row = at
		}
		return ok
	})
	for ok && p.at.Next < to {
		ok = send(until)
	}
	return ok || ctx.Err() == nil
}

// countCut passes over the seconds that the log does not have any more: those before its first row, and those from a row on that it has
// had.
func (p *Pusher) countCut(to int64) {
	from, oldest := p.at.Next, p.at.Next
	if p.row >= from {
		from, oldest = p.row, to
	} else if _, first := p.opts.Log.Runs().At(0); first == from {
		return // the log begins with the first call of the first process
	}
	p.opts.Log.Logged(0, to, func(_ string, m *node.MetricNode) bool {
		oldest = m.Start.Unix()
		return false
	})
	if oldest <= from {
		return
	}
	p.error("the metric log does not have seconds any more that were not sent", "from", time.Unix(from, 0).UTC(), "to", time.Unix(oldest, 0).UTC())
	p.pass(from, false) // there was nothing in them
	p.pass(min(oldest, to), true)
}
