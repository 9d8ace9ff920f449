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

// fromLog sends the seconds of a shard that only the log has: those of earlier processes, and those of this process that have left
// the history, up to the middle of it. It reports false if ctx ended before.
func (p *Pusher) fromLog(ctx context.Context, s *shard) bool {
	if p.positions == nil {
		return true
	}
	if first := p.line.First(); s.Next < first {
		for s.Next < first {
			if !p.sendLogged(ctx, s, s.Next, first) {
				return false
			}
		}
		p.mu.Lock()
		p.lose(first, s.sent)
		p.move(s, s.sent)
		p.mu.Unlock()
	}
	history := int64(p.stats.History() / time.Second)
	for { // sending takes its time, too
		oldest := p.line.Oldest()
		if s.Next >= oldest {
			return true
		}
		to := min(p.line.After(oldest, history/2), p.opts.Log.Written())
		if s.Next >= to {
			return true
		}
		if !p.sendLogged(ctx, s, s.Next, to) {
			return false
		}
	}
}

// sendLogged sends the logged seconds of a shard in [from, to), one request after the other. The seconds that an earlier process may
// have sent go first and alone: a server that has them refuses the request that they are in. Every request has whole seconds of one
// process, and pauses as long as it took, so that the server has at least half of its time for others. Memory is bounded by one
// request. After one that took long it stops, so that the log is opened anew. It reports false if ctx ended before.
func (p *Pusher) sendLogged(ctx context.Context, s *shard, from, to int64) bool {
	p.countCut(s, from, to)
	x := splitter{sender: p.sender}
	rows := seconds.NewFiller(p.opts.Namespace, p.opts.Log.Runs(), from, math.MaxInt, &x)
	rows.Select(p.selection(0, s.slots))
	doubt := s.InDoubt()
	var until int64 // the second before which a request ends
	known := false
	begin := func() {
		var labels map[string]string
		labels, until = p.opts.Log.Runs().Labels(p.positions.id, from)
		known, until = labels != nil, min(until, to)
		if doubt = s.InDoubt(); doubt {
			until = min(until, s.Doubt)
		}
		x.labels = newLabels(labels)
	}
	begin()
	send := func(before int64) bool {
		n, _, _ := rows.Buffered()
		x.one = n > 1
		p.encoding.Lock()
		rows.Flush()
		s.batch = batch{to: before, requests: x.finish(), logged: true}
		p.encoding.Unlock()
		if !known {
			p.loseUnknown(from, before, s)
		}
		samples := 0
		for _, r := range s.batch.requests {
			r.doubt = doubt
			samples += r.samples
		}
		from = before
		began := time.Now()
		if samples > 0 && !p.sendPaced(ctx, s, samples) {
			return false
		}
		p.passed(s)
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
		if full := n >= together || 2*samples >= p.opts.MaxSamples; ok && full && at > last && !doubt {
			ok = send(at)
		}
		if ok {
			rows.Add(resource, m)
		} else {
			s.row = at
		}
		return ok
	})
	for ok && from < to {
		ok = send(until)
	}
	return ok || ctx.Err() == nil
}

// loseUnknown drops the batch of a shard, because nobody knows under which labels its process would have sent it.
func (p *Pusher) loseUnknown(from, to int64, s *shard) {
	s.batch.requests, s.batch.lost = nil, true
	if p.line.Count(from, to) > 0 {
		p.error("the process that counted these seconds did not push them, and its labels are not known; they are not sent",
			"from", time.Unix(from, 0).UTC(), "to", time.Unix(to, 0).UTC())
	}
}

// sendPaced sends the batch of a shard, and pauses. What the server refuses is lost: it is too old, as a rule.
func (p *Pusher) sendPaced(ctx context.Context, s *shard, samples int) bool {
	p.save(s, s.batch.to)
	began := time.Now()
	if !p.send(ctx, s) {
		return false
	}
	pace := time.Duration(samples) * time.Second / rate
	background.Sleep(ctx, min(max(time.Since(began), pace), time.Second))
	return true
}

// countCut counts the seconds that the log does not have any more: those before its first row, and those from a row on that it has
// had.
func (p *Pusher) countCut(s *shard, from, to int64) {
	oldest := from
	if s.row >= from {
		from, oldest = s.row, to
	} else if p.opts.Log.Runs().First() == from {
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose(from, oldest)
}
