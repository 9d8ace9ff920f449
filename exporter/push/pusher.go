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

// Pusher sends the sealed seconds of a Collector to a server. It must be made with [New]. It is safe for concurrent use, but Run or
// Start must be called once. Recording never waits for it.
//
// A pusher sends one request at a time as long as a second fits into one. When a second has more than MaxSamples, its series are
// divided by a hash of their names among up to sixteen requests that are sent beside each other. The next seconds are sent when all of
// them are settled, so the samples of a series arrive in order, and there is one position. Seconds wait in the Collector's history
// until they are sent, so the queue takes no extra memory, and in the metric log when they have left that, or their process has
// ended. What is encoded at a time is one [batch].
type Pusher struct {
	stats   *collector.Collector
	line    *seconds.Line
	streams []seconds.Stream // the resources first
	file    *positionFile    // nil without a log
	*sender
	unpublish func() // removes the metrics

	// Of Run alone.
	batch batch
	sent  int64 // the second before which an earlier process has sent the names of seconds of this one
	row   int64 // Unix time of a row that the log had when reading it stopped

	at position // guarded by the sender's mu; Run alone changes it
}

// New makes a Pusher for all seconds from the present one on, and for those that an earlier process left in the log. The error names
// every invalid option.
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
	p := &Pusher{
		stats: c, line: seconds.NewLine(c), sender: newSender(o, c.History()/10),
		streams: []seconds.Stream{seconds.NewResources(c, o.Namespace, nil)},
	}
	if o.Sampler != nil {
		p.streams = append(p.streams, o.Sampler.Stream())
	}
	c.Seal()
	p.at.Next = p.line.Open()
	if o.Log != nil && slices.ContainsFunc(seconds.Names(o.Namespace, true), p.selection(0).Has) {
		if p.file, err = newPositionFile(&o); err != nil {
			return nil, err
		}
	}
	p.unpublish = c.Publish(p.metrics()...)
	return p, nil
}

// SetInstance replaces the label instance, for a service that learns its port after New. It must be called before Run.
func (p *Pusher) SetInstance(instance string) {
	p.opts.Labels = maps.Clone(p.opts.Labels)
	p.opts.Labels["instance"] = instance
}

// Close removes the metrics of a Pusher that never ran.
func (p *Pusher) Close() { p.unpublish() }

// Start runs Run in a new goroutine. The returned stop cancels its context, waits for it, and returns its error; it may be
// called several times.
func (p *Pusher) Start() (stop func() error) { return background.Start(p.Run) }

// Run sends each second some tenth of a second after its end, until ctx ends. Then it waits for the open second, at most about a
// second, and sends what is left until Drain has passed. The error says what could not be sent then. With a log, the next process
// sends that, and it is no error.
func (p *Pusher) Run(ctx context.Context) error {
	defer p.unpublish()
	defer p.client.CloseIdleConnections()
	line := p.stats.Timeline()
	if p.file != nil {
		p.resume()
	}
	// Seconds are sealed, and idle resources retired, also while a server is away.
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
		default: // it sends still
		}
	}
	last, stopped := line.At(line.Now()), time.Now() // before the wait, which may be long
	close(sealed)
	sending.Wait() // for the requests that are being sent
	return p.drain(last, stopped)
}

// push sends the seconds before open that were not sent, until ctx ends.
func (p *Pusher) push(ctx context.Context, open int64) {
	for ctx.Err() == nil {
		if len(p.batch.requests) == 0 { // all of it was sent
			if !p.fromLog(ctx) {
				return
			}
			p.pass(p.line.Oldest(), true) // what is before it is no longer in the history
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

// pass moves the position on, and counts the seconds up to there as sent, or as lost. It returns how many they are.
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

// Each pusher begins at an offset of its own behind the end of a second. What has to be done at once for all resources is done then,
// the log, the live page and the gathering of sampled series, and neither the pushers of a process nor those of a fleet begin together.
// What is left of a second is for a distant server.
const (
	minOffset = 50 * time.Millisecond
	maxOffset = 150 * time.Millisecond
)

// drain sends what is left, the last second included, which was open when Run was stopped. The wait for a request that was being sent
// counts towards Drain, but at least one second is left for sending.
func (p *Pusher) drain(last leap.Second, stopped time.Time) error {
	line := p.stats.Timeline()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	end := p.line.Unix(last.Index + 1)
	for p.line.Sealed(p.streams) < end { // streams may need a moment longer
		if !background.Sleep(ctx, min(max(last.End.Sub(line.Now()), 10*time.Millisecond), leap.MaxSecond)) {
			break
		}
	}
	ctx, cancel = context.WithTimeout(context.Background(), max(p.opts.Drain-time.Since(stopped), time.Second))
	defer cancel()
	p.push(ctx, end)
	return p.abandon(end)
}

// abandon counts what was not settled before the second end. Requests that were sent may have arrived. With a log what is in it is left
// to the next process.
func (p *Pusher) abandon(end int64) (err error) {
	logged, rest := int64(0), p.batch.requests
	if p.file != nil {
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
	p.at.Settle(min(logged, end)) // by the next process
	p.mu.Unlock()
	if unknown > 0 {
		err = fmt.Errorf("push: whether %d samples arrived at %s is unknown", unknown, redact.URL(p.opts.URL))
	}
	lost := p.pass(end, true)
	p.batch = batch{}
	if next < min(end, logged) {
		p.log.Log(slog.LevelWarn, "seconds could not be sent; they are in the metric log, and the next process sends them",
			"from", time.Unix(next, 0).UTC(), "not_in_the_log", lost)
	}
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("push: %d seconds could not be sent to %s in %v", lost, redact.URL(p.opts.URL), p.opts.Drain))
	}
	return err
}
