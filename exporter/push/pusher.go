package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/internal/redact"
	"github.com/windowstat/windowstat/leap"
)

// Pusher sends the sealed seconds of a Collector to a server. Create it with [New]. It is safe for concurrent use, but
// Run or Start must be called only once. Recording never waits for a Pusher.
//
// A Pusher sends one request at a time as long as a second fits into one request. If a second has more than MaxSamples
// samples, its series are divided among up to sixteen concurrent requests, by a hash of their names. The next seconds
// are sent when all requests are settled. The samples of a series therefore arrive in order, and one position suffices.
// Unsent seconds wait in the Collector's history, so the queue takes no extra memory. Seconds that have left the
// history, or whose process has ended, wait in the metric log. The Pusher encodes one [batch] at a time.
type Pusher struct {
	source  seconds.Source
	line    *seconds.Line
	streams []seconds.Stream // the resources first
	file    *positionFile    // nil without a log
	// archived means that the streams read all seconds, also those that have left the history and those of earlier
	// processes.
	archived bool
	*sender
	unpublish func() // removes the metrics

	// Used only by the goroutine of Run.
	batch batch
	row   int64 // Unix time of the row at which reading the log stopped

	at position // guarded by sender.mu; written only by Run
}

// New returns a Pusher for all seconds from the current one on, and for the seconds that earlier processes left in the
// log. The error names every invalid option.
func New(c *collector.Collector, o Options) (*Pusher, error) {
	err := o.Check()
	o.defaults()
	if c == nil {
		err = errors.Join(err, &collector.OptionError{Package: "push", Err: errors.New("no Collector")})
	} else if o.Interval > c.History()/2 {
		wrong := fmt.Errorf("%v; at most half of the history of %v is allowed", o.Interval, c.History())
		err = errors.Join(err, &collector.OptionError{Package: "push", Field: "Interval", Err: wrong})
	}
	if err != nil {
		return nil, err
	}
	streams := []seconds.Stream{seconds.NewResources(c, o.Namespace, nil)}
	if o.Sampler != nil {
		streams = append(streams, o.Sampler.Stream())
	}
	p := newPusher(c, streams, o)
	if o.Log != nil && slices.ContainsFunc(seconds.Names(o.Namespace, true), p.selection(0).Has) {
		if p.file, err = newPositionFile(&o, o.Log.StateFile); err != nil {
			return nil, err
		}
	}
	p.unpublish = c.Publish(p.metrics()...)
	return p, nil
}

// NewArchived returns a Pusher for seconds that other programs counted and logged, such as the seconds of package
// sentinellog. It sends all seconds from the current one on; after a restart it continues at the position of the
// previous process. The streams must read all seconds that the source keeps. The options Log and Sampler must be nil.
// The error names every invalid option.
func NewArchived(source seconds.Archive, streams []seconds.Stream, o Options) (*Pusher, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.defaults()
	p := newPusher(source, streams, o)
	var err error
	if p.file, err = newPositionFile(&o, source.StateFile); err != nil {
		return nil, err
	}
	p.archived = true
	p.unpublish = source.Publish(p.metrics()...)
	return p, nil
}

// newPusher returns a Pusher without a position file. It begins with the open second.
func newPusher(source seconds.Source, streams []seconds.Stream, o Options) *Pusher {
	p := &Pusher{
		source: source, line: seconds.NewLine(source), sender: newSender(o, source.History()/10), streams: streams,
	}
	source.Seal()
	p.at.Next = p.line.Open()
	return p
}

// SetInstance replaces the label instance, for a service that learns its port after New. It must be called before Run.
func (p *Pusher) SetInstance(instance string) {
	p.opts.Labels = maps.Clone(p.opts.Labels)
	p.opts.Labels["instance"] = instance
}

// Close removes the metrics of a Pusher that never ran.
func (p *Pusher) Close() { p.unpublish() }

// Start runs Run in a new goroutine. The returned function cancels the context of Run, waits for Run to return, and
// returns its error. It may be called several times.
func (p *Pusher) Start() (stop func() error) { return background.Start(p.Run) }

// Run sends each second about a tenth of a second after its end, until ctx ends. Then it waits for the end of the open
// second, at most about one second, and sends the remaining seconds until Drain has passed. The error reports the
// seconds that were not sent by then. With a log this is not an error, because the next process sends them.
func (p *Pusher) Run(ctx context.Context) error {
	defer p.unpublish()
	defer p.client.CloseIdleConnections()
	line := p.source.Timeline()
	if p.file != nil {
		p.resume()
	}
	// A separate goroutine sends, so that seconds are sealed and idle resources are retired while a server is
	// unreachable.
	sealed := make(chan int64)
	var sending sync.WaitGroup
	sending.Go(func() {
		for open := range sealed {
			p.push(ctx, open)
		}
	})
	offset := minOffset + rand.N(maxOffset-minOffset)
	for ctx.Err() == nil {
		// Sleep until a multiple of the interval ends.
		open, left := line.Current()
		every := int64(p.opts.Interval / time.Second)
		wait := offset + left + time.Duration(every-1-open.Index%every)*time.Second
		if !background.Sleep(ctx, wait) {
			break
		}
		select {
		case sealed <- p.line.Sealed(p.streams):
		default: // the previous push is in progress
		}
	}
	last, stopped := line.At(line.Now()), time.Now() // read before the wait below, which may be long
	close(sealed)
	sending.Wait() // for the requests in progress
	return p.drain(last, stopped)
}

// push sends the unsent seconds before open, until ctx ends.
func (p *Pusher) push(ctx context.Context, open int64) {
	for ctx.Err() == nil {
		if len(p.batch.requests) == 0 { // the batch is settled
			if !p.fromLog(ctx) {
				return
			}
			p.expire(p.line.Oldest()) // older seconds have left the history
			if p.at.Next >= open {
				p.save(0, 0)
				return
			}
			p.next(open)
		}
		if !p.send(ctx) {
			return
		}
		p.save(0, 0)
	}
}

// expire settles the seconds before oldest, and those whose names an earlier process sent. It counts them as lost.
func (p *Pusher) expire(oldest int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.lost += p.at.Expire(p.line, oldest)
}

// pass advances the position to the second to. It counts the seconds in between as sent, or as lost if lost is set, and
// returns their number.
func (p *Pusher) pass(to int64, lost bool) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.line.Count(p.at.Next, to)
	if lost {
		p.total.lost += n
	} else {
		p.total.seconds += n
	}
	p.at.Settle(to)
	return n
}

// Bounds of the random offset between the end of a second and a push. The exporters that process all resources at the
// end of a second (the log, the live page and the sampler) finish before minOffset. The random part spreads the Pushers
// of a process and of a fleet. The rest of the second is left for distant servers.
const (
	minOffset = 50 * time.Millisecond
	maxOffset = 150 * time.Millisecond
)

// drain sends the remaining seconds, including the last one, which was open when Run was stopped. The wait for a
// request in progress counts towards Drain, but at least one second is left for sending.
func (p *Pusher) drain(last leap.Second, stopped time.Time) error {
	line := p.source.Timeline()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	end := p.line.Unix(last.Index + 1)
	if p.archived { // the open second is sealed later, and the next process sends it
		end = p.line.Unix(last.Index)
	}
	for p.line.Sealed(p.streams) < end { // a stream may need more time to seal a second
		if !background.Sleep(ctx, min(max(last.End.Sub(line.Now()), 10*time.Millisecond), leap.MaxSecond)) {
			break
		}
	}
	if p.archived {
		end = min(end, p.line.Sealed(p.streams))
	}
	ctx, cancel = context.WithTimeout(context.Background(), max(p.opts.Drain-time.Since(stopped), time.Second))
	defer cancel()
	p.push(ctx, end)
	return p.abandon(end)
}

// abandon counts the unsettled seconds before end. Samples of requests that were sent count as unconfirmed, because
// they may have arrived. With a log, the seconds in the log are left to the next process.
func (p *Pusher) abandon(end int64) (err error) {
	logged, rest := int64(0), p.batch.requests
	switch {
	case p.archived:
		logged, rest = end, nil
	case p.file != nil:
		logged, rest = p.opts.Log.Written(), nil
	}
	unknown, unsent := 0, len(rest) == 0
	for _, r := range rest {
		if r.doubt {
			unknown += r.samples
		} else {
			unsent = true
		}
	}
	if !unsent {
		p.pass(p.batch.to, false)
	}
	next := p.at.Next
	p.mu.Lock()
	p.total.unconfirmed += int64(unknown)
	p.at.Settle(min(logged, end)) // the next process sends them
	p.mu.Unlock()
	if unknown > 0 {
		err = fmt.Errorf("push: unknown whether %d samples arrived at %s", unknown, redact.URL(p.opts.URL))
	}
	lost := p.pass(end, true)
	p.batch = batch{}
	if next < min(end, logged) {
		p.log.Log(slog.LevelWarn, "cannot send all seconds; the next process sends them from the metric log",
			"from", time.Unix(next, 0).UTC(), "not_in_the_log", lost)
	}
	if lost > 0 {
		late := fmt.Errorf("push: cannot send %d seconds to %s within %v", lost, redact.URL(p.opts.URL), p.opts.Drain)
		err = errors.Join(err, late)
	}
	return err
}
