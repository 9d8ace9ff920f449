package push

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"sync"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// shard is some of the series, by their hash slots, and how far the server has them. Its requests are sent one after the other.
// Shards that wait and have come equally far are merged and divided as the size of a second asks, so that a request has about
// MaxSamples.
type shard struct {
	seconds.Position // guarded by the sender's mu; what is in doubt an earlier process may have sent, or this one is sending
	slots            seconds.Slots
	busy             bool  // its seconds are being sent; guarded, too
	batch            batch // this and what follows is of whom its seconds are sent by
	sent             int64 // the second before which an earlier process has sent the names of seconds of this one
	row              int64 // Unix time of a row that the log had when reading it stopped
}

// maxShards is how many requests are on the way at a time, at most: a slot for each.
const maxShards = 16

// ready returns the shards whose seconds before open are to be sent now, marked as busy. They are divided anew first.
func (p *Pusher) ready(open int64) (list []*shard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.divide(open)
	for _, s := range p.shards {
		if !s.busy && (s.Next < open || len(s.batch.requests) > 0) {
			s.busy = true
			list = append(list, s)
		}
	}
	return list
}

// divide divides the slots of the shards that wait among as many as have a request for all their seconds before open. Holds mu.
func (p *Pusher) divide(open int64) {
	waits := func(s *shard) bool { return !s.busy && len(s.batch.requests) == 0 && !s.InDoubt() }
	byNext := map[int64][]*shard{}
	for _, s := range p.shards {
		if waits(s) {
			byNext[s.Next] = append(byNext[s.Next], s)
		}
	}
	for next, group := range byNext {
		all := seconds.Slots(0)
		for _, s := range group {
			all |= s.slots
		}
		n := 1 // what only the log has is read once
		if next >= p.line.Oldest() {
			size := p.size(all, next).Samples * int(p.line.Count(next, open))
			n = min(max((size+p.opts.MaxSamples-1)/p.opts.MaxSamples, 1), bits.OnesCount16(uint16(all)))
		}
		if n == len(group) {
			continue
		}
		row := group[0].row
		p.shards = slices.DeleteFunc(p.shards, func(s *shard) bool { return slices.Contains(group, s) })
		for i := range n {
			p.shards = append(p.shards, &shard{Position: seconds.Position{Next: next}, slots: part(all, i, n), row: row})
		}
	}
}

// part returns one of n parts of the slots, which have one each at least.
func part(all seconds.Slots, i, n int) (slots seconds.Slots) {
	seen, count := 0, bits.OnesCount16(uint16(all))
	for bit := seconds.Slots(1); bit != 0; bit <<= 1 {
		if all&bit != 0 {
			if seen*n/count == i {
				slots |= bit
			}
			seen++
		}
	}
	return slots
}

// push sends the seconds of a shard before open that were not sent: as many as fit into a request. It reports false if ctx ended
// before, or there is nothing to send.
func (p *Pusher) push(ctx context.Context, s *shard, open int64) bool {
	defer p.rest(s)
	if len(s.batch.requests) == 0 { // all of it was sent
		if !p.fromLog(ctx, s) {
			return false
		}
		from := p.expire(s)
		if from >= open {
			p.save(s, 0)
			return false
		}
		p.encode(s, from, min(open, p.fit(s, from)))
		p.save(s, s.batch.to)
	}
	if !p.send(ctx, s) {
		return false
	}
	p.passed(s)
	p.save(s, 0)
	return true
}

// pushAll sends the seconds before open, each shard in a goroutine, until all shards have them or ctx ends.
func (p *Pusher) pushAll(ctx context.Context, open int64, sending *sync.WaitGroup) {
	for _, s := range p.ready(open) {
		sending.Go(func() {
			if p.push(ctx, s, open) && ctx.Err() == nil {
				p.pushAll(ctx, open, sending) // those that are behind are divided anew
			}
		})
	}
}

// rest lets a shard wait.
func (p *Pusher) rest(s *shard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.busy = false
}

// passed counts the batch of a shard: everything in it was settled.
func (p *Pusher) passed(s *shard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.batch.lost {
		p.lose(s.Next, s.batch.to)
	}
	p.move(s, s.batch.to)
}

// move moves a shard on, and counts the seconds that all of them have sent. Holds mu.
func (p *Pusher) move(s *shard, to int64) {
	before := p.slowest()
	s.Settle(to)
	after := p.slowest()
	p.total.seconds += p.line.Count(before, after)
	for _, x := range p.lost {
		p.total.seconds -= p.line.Count(max(before, x.from), min(after, x.to))
	}
	p.lost = slices.DeleteFunc(p.lost, func(x span) bool { return x.to <= after })
}

// slowest is the first second that some shard has not sent. Holds mu.
func (p *Pusher) slowest() int64 {
	next := p.shards[0].Next
	for _, s := range p.shards[1:] {
		next = min(next, s.Next)
	}
	return next
}

// span is the seconds in [from, to).
type span struct{ from, to int64 }

// lose counts the seconds in [from, to) as lost, those once that several shards lose, and returns how many they are. Holds mu.
func (p *Pusher) lose(from, to int64) (n int64) {
	at := from
	for _, x := range p.lost {
		if x.to > at && x.from < to {
			n += p.line.Count(at, x.from)
			at = x.to
		}
	}
	n += p.line.Count(at, to)
	p.total.lost += n
	if from < to {
		p.lost = append(p.lost, span{from, to})
		slices.SortFunc(p.lost, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		joined := p.lost[:1]
		for _, x := range p.lost[1:] {
			if last := &joined[len(joined)-1]; x.from <= last.to {
				last.to = max(last.to, x.to)
			} else {
				joined = append(joined, x)
			}
		}
		p.lost = joined
	}
	return n
}

// expire drops the seconds of a shard that are no longer in the history, and returns the first one to send.
func (p *Pusher) expire(s *shard) int64 {
	oldest := p.line.Oldest()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Next < oldest {
		p.lose(s.Next, oldest)
		p.move(s, oldest)
	}
	return s.Next
}

// size is the size of a second of some slots.
func (p *Pusher) size(slots seconds.Slots, from int64) (second seconds.Size) {
	for i, stream := range p.streams {
		second = second.Add(stream.Size(p.selection(i, slots), from))
	}
	return second
}

// fit returns the second before which a request ends that begins with from: it has one second at least, and whole ones, because a
// request that is sent again after a kill is refused as a whole by a server that has some of it.
func (p *Pusher) fit(s *shard, from int64) int64 {
	most := seconds.Size{Samples: p.opts.MaxSamples, Bytes: 64 << 20}
	return p.line.After(from, max(most.Fit(p.size(s.slots, from)), 1))
}

// selection returns what is sent of a stream: the selection of the resources, which are the first stream, and everything of the
// others.
func (p *Pusher) selection(stream int, slots seconds.Slots) *seconds.Selection {
	selection := seconds.Selection{}
	if stream == 0 {
		selection = p.opts.selection()
		if p.noHistograms.Load() {
			selection.Histogram = seconds.None
		}
	}
	selection.Slots = slots
	return &selection
}
