package push

import (
	"context"
	"math"
	"time"

	"github.com/windowstat/windowstat/internal/bare"

	"github.com/windowstat/windowstat/collector"
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

// fromLog sends the seconds that only the log has: those of earlier processes, and those of this process that have left the
// history, up to the middle of it. It reports false if ctx ended before.
func (p *Pusher) fromLog(ctx context.Context) bool {
	if p.opts.Log == nil {
		return true
	}
	first, history := p.resources.First(), int64(p.stats.History()/time.Second)
	if p.next < first {
		for p.next < first {
			if !p.sendLogged(ctx, p.next, first) {
				return false
			}
		}
		p.mu.Lock()
		p.skip(p.place.begin)
		p.mu.Unlock()
	}
	for { // sending takes its time, too
		oldest := p.open() - history
		if p.next >= oldest {
			return true
		}
		from, to := p.unix(p.next), min(p.unix(oldest+history/2), p.opts.Log.Written())
		if from >= to {
			return true
		}
		if !p.sendLogged(ctx, from, to) {
			return false
		}
	}
}

// sendLogged sends the logged seconds in [from, to), Unix times, one request after the other. The seconds that an earlier
// process may have sent go first and alone: a server that has them refuses the request that they are in. Every request has whole
// seconds of one process, and pauses as long as it took, so that the server has at least half of its time for others. Memory is
// bounded by one request. After one that took long it stops, so that the log is opened anew. It reports false if ctx ended before.
func (p *Pusher) sendLogged(ctx context.Context, from, to int64) bool {
	p.countCut(from, to)
	s := splitter{p: p}
	rows := seconds.NewFiller(p.opts.Namespace, "", from, math.MaxInt, &s)
	rows.Select(&p.opts.Selection)
	var until int64 // the second before which a request ends
	begin := func() {
		var labels map[string]string
		labels, until = p.place.labels(from, to)
		if from < p.place.doubt {
			until = min(until, p.place.doubt)
		}
		s.labels = newLabels(labels)
	}
	begin()
	send := func(before int64) bool {
		n, _, _ := rows.Buffered()
		s.begins(n > 1)
		rows.Flush()
		s.finish()
		p.batch = batch{to: p.index(before), seconds: int64(n), requests: p.batch.all[:s.n], all: p.batch.all}
		samples := 0
		for _, r := range p.batch.requests {
			r.mayHave = from < p.place.doubt
			samples += r.samples
		}
		from = before
		began := time.Now()
		if samples > 0 && !p.sendPaced(ctx, samples) {
			return false
		}
		p.mu.Lock()
		p.settle()
		p.mu.Unlock()
		begin()
		return from >= to || time.Since(began) < stale
	}
	ok := true
	p.opts.Log.Logged(from-int64(lookback/time.Second), to, func(resource string, m *node.MetricNode) bool {
		at := m.Start.Unix()
		for ok && at >= until {
			ok = send(until)
		}
		n, samples, last := rows.Buffered()
		if full := n >= together || 2*samples >= p.opts.MaxSamples; ok && full && at > last && from >= p.place.doubt {
			ok = send(at)
		}
		if ok {
			rows.Add(resource, m)
		} else {
			p.place.row = at
		}
		return ok
	})
	for ok && from < to {
		ok = send(until)
	}
	return ok || ctx.Err() == nil
}

// sendPaced sends the batch, and pauses. What the server refuses is lost: it is too old, as a rule.
func (p *Pusher) sendPaced(ctx context.Context, samples int) bool {
	refused := func() int64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.total.refused
	}
	p.save(p.batch.to)
	before, began := refused(), time.Now()
	if !p.send(ctx) {
		return false
	}
	if refused() > before {
		p.mu.Lock()
		p.total.lost += p.batch.seconds
		p.mu.Unlock()
		p.batch.seconds = 0
	}
	pace := time.Duration(samples) * time.Second / rate
	sleep(ctx, min(max(time.Since(began), pace), time.Second))
	return true
}

// countCut counts the seconds that the log does not have any more. Those before its first row were cut if some were sent
// before: a log begins with the first row of the first process. Likewise if it has had a row of them.
func (p *Pusher) countCut(from, to int64) {
	oldest := from
	switch {
	case p.place.row >= from:
		from, oldest = p.place.row, to
	case len(p.place.Runs) == 0 || from <= p.place.Runs[0].From:
		return
	}
	p.opts.Log.Logged(0, to, func(_ string, m *node.MetricNode) bool {
		oldest = m.Start.Unix()
		return false
	})
	if oldest <= from {
		return
	}
	p.opts.Logger.Error("the metric log does not have seconds any more that were not sent", "url", bare.URL(p.opts.URL),
		"from", time.Unix(from, 0).UTC(), "to", time.Unix(oldest, 0).UTC())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.lost += oldest - from
}
