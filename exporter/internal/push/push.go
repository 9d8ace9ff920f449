package push

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/internal/walk"
	"github.com/windowstat/windowstat/leap"
)

// Encoder writes the bodies of requests.
type Encoder interface {
	exporter.Sink
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
// sent: that is the queue, and it takes no memory of its own. It is safe for concurrent use, but Run runs once.
type Pusher struct {
	stats   *collector.Collector
	streams []exporter.Stream
	batch   batch
	*sender
	next int64 // index of the first second that was not dealt with; the sender's mu guards it
}

// checkNamespace is that of all ways out.
func checkNamespace(name string) error { return walk.CheckNamespace(name) }

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
	resources := exporter.NewResources(c, o.Namespace, nil)
	var errs []error
	for _, name := range o.Selection.Metrics {
		if !resources.Knows(name) {
			errs = append(errs, fmt.Errorf("there is no metric %.70q", name))
		}
	}
	return &Pusher{
		stats: c, sender: out,
		streams: append([]exporter.Stream{resources}, o.Streams...),
		next:    c.Seal().Open,
	}, errors.Join(errs...)
}

// Run sends each second when it is sealed, until ctx ends. Then it waits for the second that is open, at most about a
// second, and sends everything that is left, as long as Drain allows. The error says what could not be sent then.
func (p *Pusher) Run(ctx context.Context) error {
	defer p.client.CloseIdleConnections()
	line := p.stats.Timeline()
	told := make(chan ending, 1)
	context.AfterFunc(ctx, func() { told <- ending{line.At(line.Now()), time.Now()} })
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
	return p.drain(<-told)
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
		p.stat.lost += left
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
		p.stat.seconds += p.batch.to - p.next
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
		p.stat.lost += oldest - p.next
		p.next = oldest
	}
	return p.next
}

// most is how many seconds are sent together when there are many: a few requests' worth.
func (p *Pusher) most() int64 {
	var second exporter.Size
	for i, stream := range p.streams {
		second = second.Add(stream.Size(p.selection(i)))
	}
	const requests = 8
	return max(exporter.Size{Samples: requests * p.opts.MaxSamples, Bytes: 64 << 20}.Fit(second), 1)
}

// selection is what is sent of a stream: of the resources, which are the first, what was selected, and all of the others.
func (p *Pusher) selection(stream int) *exporter.Selection {
	if stream == 0 {
		return &p.opts.Selection
	}
	return new(exporter.Selection)
}

// Self implements exporter.Source.
func (p *Pusher) Self(yield func(name string, value float64, labels ...string)) {
	open := p.stats.Seal().Open
	p.mu.Lock()
	s, next := p.stat, p.next
	p.mu.Unlock()
	way := p.format.Name
	yield(exporter.PushLag, float64(max(open-next, 0)), way)
	yield(exporter.PushSeconds, float64(s.seconds), way)
	yield(exporter.PushSamples, float64(s.samples), way)
	yield(exporter.PushBytes, float64(s.bytes), way)
	yield(exporter.PushRetries, float64(s.retries), way)
	yield(exporter.PushRefused, float64(s.refused), way)
	yield(exporter.PushLost, float64(s.lost), way)
	if !s.succeeded.IsZero() {
		yield(exporter.PushSucceeded, float64(s.succeeded.UnixMilli())/1000, way)
	}
}
