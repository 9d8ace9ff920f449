package push

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/leap"
)

// Encoder writes the bodies of requests.
type Encoder interface {
	seconds.Sink
	// Samples is how many there are in the body so far.
	Samples() int
	// Body is the finished body. It is good until Reset.
	Body() ([]byte, error)
	// Reset begins a new body.
	Reset()
}

// Format is what the ways out that push differ in.
type Format struct {
	// Name is the value of the label way in the self-metrics.
	Name string
	// Header is for all requests.
	Header http.Header
	// New makes an Encoder.
	New func() Encoder
}

// Pusher sends the sealed seconds of a Collector to a server. The seconds wait in the Collector's history until they are
// sent: that is the queue, and it takes no memory of its own. From New until Run has returned it publishes metrics about
// itself. It is safe for concurrent use, but Run runs once.
type Pusher struct {
	stats   *collector.Collector
	streams []seconds.Stream
	batch   batch
	*sender
	next     int64  // index of the first second that was not dealt with; the sender's mu guards it
	withdraw func() // takes the metrics away
}

// New makes a Pusher. The error names every option that is wrong.
func New(c *collector.Collector, o Options, f Format) (*Pusher, error) {
	o.defaults()
	err := o.check(c)
	if c == nil {
		err = errors.Join(errors.New("no Collector"), err)
	}
	if err != nil {
		return nil, err
	}
	out, err := newSender(o, f, c.History()/10)
	if err != nil {
		return nil, err
	}
	resources := seconds.NewResources(c, o.Namespace, nil)
	var errs []error
	for _, name := range o.Selection.Metrics {
		if !resources.Knows(name) {
			errs = append(errs, fmt.Errorf("there is no metric %.70q", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p := &Pusher{
		stats: c, sender: out,
		streams: append([]seconds.Stream{resources}, o.Streams...),
		next:    c.Seal().Open,
	}
	p.withdraw = c.Publish(p.metrics()...)
	return p, nil
}

// Run sends each second when it is sealed, until ctx ends. Then it waits for the second that is open, at most about a
// second, and sends everything that is left, as long as Drain allows. The error says what could not be sent then.
func (p *Pusher) Run(ctx context.Context) error {
	defer p.withdraw()
	defer p.client.CloseIdleConnections()
	line := p.stats.Timeline()
	ended := make(chan ending, 1)
	context.AfterFunc(ctx, func() { ended <- ending{line.At(line.Now()), time.Now()} })
	for ctx.Err() == nil {
		now := line.Now()
		open := line.At(now)
		// The end of a multiple of the interval, so that all of them are sent alike.
		every := int64(p.opts.Interval / time.Second)
		wait := open.End.Sub(now) + time.Duration(every-1-open.Index%every)*time.Second
		if !sleep(ctx, wait) {
			break
		}
		p.push(ctx, p.sealed())
	}
	return p.drain(<-ended)
}

// ending is when Run was told to end.
type ending struct {
	second leap.Second
	at     time.Time
}

// drain sends what is left, the second included in which Run was told to end. What it takes to wait for a request that
// was on its way then is part of Drain, but for a second that there always is.
func (p *Pusher) drain(e ending) error {
	line := p.stats.Timeline()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	for p.sealed() <= e.second.Index { // streams may take a moment longer
		if !sleep(ctx, max(e.second.End.Sub(line.Now()), 10*time.Millisecond)) {
			break
		}
	}
	ctx, cancel = context.WithTimeout(context.Background(), max(p.opts.Drain-time.Since(e.at), time.Second))
	defer cancel()
	p.push(ctx, e.second.Index+1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := e.second.Index + 1 - p.next; left > 0 {
		p.total.lost += left
		return fmt.Errorf("%d seconds could not be sent to %s in %v", left, p.opts.URL, p.opts.Drain)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sealed is the second before which all are sealed.
func (p *Pusher) sealed() int64 {
	open := p.stats.Seal().Open
	for _, stream := range p.streams {
		open = stream.Sealed(open)
	}
	return open
}

// push sends the seconds before open that were not sent, until ctx ends.
func (p *Pusher) push(ctx context.Context, open int64) {
	for ctx.Err() == nil {
		if p.batch.to <= p.next { // it is dealt with
			from := p.expire()
			if from >= open {
				return
			}
			p.encode(from, min(open, from+p.most()))
		}
		if !p.send(ctx) {
			return // ctx ended
		}
		p.mu.Lock()
		p.total.seconds += p.batch.to - p.next
		p.next = p.batch.to
		p.mu.Unlock()
	}
}

// expire gives up the seconds that are no longer in the history, and returns the first that is to be sent. A batch that
// was made is not given up: it is in memory.
func (p *Pusher) expire() int64 {
	oldest := p.stats.Seal().Open - int64(p.stats.History()/time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next < oldest {
		p.total.lost += oldest - p.next
		p.next = oldest
	}
	return p.next
}

// most is how many seconds are sent together when there are many: a few requests' worth.
func (p *Pusher) most() int64 {
	var second seconds.Size
	for i, stream := range p.streams {
		second = second.Add(stream.Size(p.selection(i)))
	}
	const requests = 8
	return max(seconds.Size{Samples: requests * p.opts.MaxSamples, Bytes: 64 << 20}.Fit(second), 1)
}

// selection is what is sent of a stream: of the resources, which are the first, what was selected, and all of the others.
func (p *Pusher) selection(stream int) *seconds.Selection {
	if stream == 0 {
		return &p.opts.Selection
	}
	return new(seconds.Selection)
}

// Close takes the metrics of a Pusher away that never ran.
func (p *Pusher) Close() { p.withdraw() }

// SetInstance sets the label instance, for a service that learns its port after New. It must be called before Run.
func (p *Pusher) SetInstance(instance string) {
	p.opts.Labels = maps.Clone(p.opts.Labels)
	p.opts.Labels["instance"] = instance
}
