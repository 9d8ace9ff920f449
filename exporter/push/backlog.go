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

// Constants for reading seconds from the log.
const (
	lookback        = collector.DefaultRetireAfter // earlier rows to read, which show idle resources
	maxBatchSeconds = 60                           // maximum number of seconds in a request
	maxRate         = 100_000                      // maximum number of samples sent in a second
	staleAfter      = time.Minute                  // retention may delete the files being read after this time
)

// fromLog sends the seconds that only the log has: the seconds of earlier processes, and the seconds of this process
// that have left the history, up to the middle of the history. It returns false if ctx ended first.
func (p *Pusher) fromLog(ctx context.Context) bool {
	if p.file == nil || p.archived {
		return true
	}
	// Read the log up to the middle of the history. If reading stopped closer to the oldest second of the history, a
	// slow server would let more seconds leave the history during the sending, and the log would be read again for a
	// few seconds at a time.
	for first := p.line.First(); ; { // repeat, because more seconds leave the history during the sending
		to := first
		if p.at.Next >= first {
			p.expire(0)
			oldest := p.line.Oldest()
			to = min(p.line.After(oldest, p.line.History()/2), p.opts.Log.Written())
			if p.at.Next >= min(oldest, to) {
				return true
			}
		}
		if !p.sendLogged(ctx, to) {
			return false
		}
	}
}

// sendLogged sends the logged seconds before to, one request after the other. It first sends the seconds that an
// earlier process may have sent, in separate requests, because a server that has them refuses the whole request. Each
// request contains whole seconds of one process. After each request sendLogged pauses for as long as the request took,
// so the server has at least half of its time for other clients. Memory is bounded by one request. sendLogged returns
// after a slow request, so that the caller opens the log again. It returns false if ctx ended first.
func (p *Pusher) sendLogged(ctx context.Context, to int64) bool {
	p.countCut(to)
	x := splitter{sender: p.sender, done: p.batch.add}
	rows := seconds.NewFiller(p.opts.Namespace, p.opts.Log.Runs(), p.selection(0), p.at.Next, math.MaxInt, &x)
	var until int64 // first second after the request
	begin := func() {
		// Resend the seconds in doubt as they were sent before: the same seconds in the same number of parts. A server
		// that has some of them then refuses exactly the same requests.
		run, end := p.opts.Log.Runs().At(p.at.Next)
		x.Labelled, x.parts, until = NewLabelled(nil, run.Labels[p.file.id]), 1, min(end, to)
		if p.at.InDoubt() {
			until, x.parts = min(until, p.at.UnackedTo), p.at.Parts
		}
	}
	begin()
	send := func(before int64) bool {
		n, _, _ := rows.Buffered()
		x.whole = n > 1
		p.batch = batch{to: before, logged: true}
		rows.Flush()
		x.finish()
		if x.more == nil { // the labels of the process are unknown
			p.batch.requests, p.batch.lost = nil, true
			if p.line.Count(p.at.Next, before) > 0 {
				p.error("cannot send seconds of a process that did not push to this URL: its labels are unknown",
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
		pace := time.Duration(samples) * time.Second / maxRate
		background.Sleep(ctx, min(max(time.Since(began), pace), time.Second))
		begin()
		return p.at.Next >= to || time.Since(began) < staleAfter
	}
	ok := true
	p.opts.Log.Logged(p.at.Next-int64(lookback/time.Second), to, func(resource string, m *node.MetricNode) bool {
		at := m.Start.Unix()
		for ok && at >= until {
			ok = send(until)
		}
		n, samples, last := rows.Buffered()
		if full := n >= maxBatchSeconds || 2*samples >= p.opts.MaxSamples; ok && full && at > last && !p.at.InDoubt() {
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

// countCut skips the seconds that the log no longer has, and counts them as lost. These are the seconds before its
// first row, and the seconds after the row at which reading stopped if that row was deleted.
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
	p.error("the metric log no longer has some unsent seconds",
		"from", time.Unix(from, 0).UTC(), "to", time.Unix(oldest, 0).UTC())
	p.pass(from, false) // these seconds are empty
	p.pass(min(oldest, to), true)
}
