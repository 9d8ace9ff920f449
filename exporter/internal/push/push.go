package push

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/internal/bare"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/leap"
)

// Encoder encodes the bodies of requests.
type Encoder interface {
	seconds.Sink
	// Samples returns the number of samples in the body so far.
	Samples() int
	// Body returns the finished body. It is valid until Reset.
	Body() ([]byte, error)
	// Reset starts a new body.
	Reset()
}

// Format is how requests are encoded.
type Format struct {
	// Name is the value of the label way in the self-metrics.
	Name string
	// Header is sent with every request.
	Header http.Header
	// New makes an Encoder.
	New func() Encoder
}

// Pusher sends the sealed seconds of a Collector to a server. Seconds wait in the Collector's history until they are sent, so
// the queue takes no extra memory, and in the metric log when they have left that, or their process has ended. It publishes
// metrics about itself until Run has returned. It is safe for concurrent use, but Run must be called once.
type Pusher struct {
	stats     *collector.Collector
	resources *seconds.Resources
	streams   []seconds.Stream // the resources first
	batch     batch
	place     place
	*sender
	next      int64  // index of the first second to send; guarded by the sender's mu
	unpublish func() // removes the metrics
}

// New makes a Pusher. The error names every invalid option.
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
			errs = append(errs, fmt.Errorf("unknown metric %.70q", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var at place
	if o.Log != nil && seconds.NewFiller(o.Namespace, "", 0, 1, nil).Select(&o.Selection) {
		if at, err = newPlace(&o, f.Name); err != nil {
			return nil, err
		}
	} else {
		out.opts.Log = nil
	}
	p := &Pusher{
		stats: c, sender: out, resources: resources, place: at,
		streams: append([]seconds.Stream{resources}, o.Streams...),
		next:    c.Seal().Open,
	}
	p.unpublish = c.Publish(p.metrics()...)
	return p, nil
}

// Run sends each second when it is sealed, until ctx ends. Then it waits for the open second, at most about a second, and sends
// what is left until Drain has passed. The error says what could not be sent then. With a log, the next process sends that, and
// it is no error.
func (p *Pusher) Run(ctx context.Context) error {
	defer p.unpublish()
	defer p.client.CloseIdleConnections()
	line := p.stats.Timeline()
	ended := make(chan stopTime, 1)
	context.AfterFunc(ctx, func() { ended <- stopTime{line.At(line.Now()), time.Now()} })
	if !p.resume(ctx) {
		return nil // the next process finds everything in the log
	}
	if p.place.lock != nil {
		defer func() { _ = p.place.lock.Close() }()
	}
	for ctx.Err() == nil {
		now := line.Now()
		open := line.At(now)
		// At the end of a multiple of the interval.
		every := int64(p.opts.Interval / time.Second)
		wait := open.End.Sub(now) + time.Duration(every-1-open.Index%every)*time.Second
		if !sleep(ctx, wait) {
			break
		}
		p.push(ctx, p.sealed())
	}
	return p.drain(<-ended)
}

// stopTime is when the context of Run ended.
type stopTime struct {
	second leap.Second
	at     time.Time
}

// drain sends what is left, the second that was open at stop included. The wait for a request that was being sent counts
// towards Drain, but at least one second is left for sending.
func (p *Pusher) drain(stop stopTime) error {
	line := p.stats.Timeline()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	for p.sealed() <= stop.second.Index { // streams may need a moment longer
		if !sleep(ctx, max(stop.second.End.Sub(line.Now()), 10*time.Millisecond)) {
			break
		}
	}
	ctx, cancel = context.WithTimeout(context.Background(), max(p.opts.Drain-time.Since(stop.at), time.Second))
	defer cancel()
	p.push(ctx, stop.second.Index+1)
	return p.abandon(stop.second.Index + 1)
}

// abandon counts what was not settled before the second end. Of a batch only the request that was being sent may have arrived.
func (p *Pusher) abandon(end int64) (err error) {
	if p.place.lock != nil {
		return p.leave(end)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := p.batch.requests
	if len(rest) > 0 && rest[0].mayHave {
		p.total.unconfirmed += int64(rest[0].samples)
		err = fmt.Errorf("whether %d samples arrived at %s is unknown", rest[0].samples, bare.URL(p.opts.URL))
		if len(rest) == 1 {
			p.settle()
		}
	}
	if left := end - p.next; left > 0 {
		p.total.lost += left
		lost := fmt.Errorf("%d seconds could not be sent to %s in %v", left, bare.URL(p.opts.URL), p.opts.Drain)
		if err != nil {
			lost = fmt.Errorf("%w; %w", lost, err)
		}
		err = lost
	}
	p.next, p.batch.requests = max(p.next, end), nil
	return err
}

// leave leaves what was not settled before the second end to the next process. What the log does not have is lost.
func (p *Pusher) leave(end int64) error {
	to := p.next
	if len(p.batch.requests) > 0 {
		to = p.batch.to
	}
	p.save(to)
	left := end - p.next
	if left <= 0 {
		return nil
	}
	lost := max(p.unix(end)-max(p.unix(p.next), p.opts.Log.Written()), 0)
	p.opts.Logger.Warn("seconds could not be sent; they are in the metric log, and the next process sends them", "url", bare.URL(p.opts.URL),
		"from", time.Unix(p.unix(p.next), 0).UTC(), "not_in_the_log", lost)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.lost += lost
	p.next, p.batch.requests = end, nil
	if lost > 0 {
		return fmt.Errorf("%d seconds could not be sent to %s in %v, and are not in the metric log", lost, bare.URL(p.opts.URL), p.opts.Drain)
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

// open returns the second that is open now, and seals nothing.
func (p *Pusher) open() int64 {
	line := p.stats.Timeline()
	return line.At(line.Now()).Index
}

// sealed seals all seconds that are over, and returns the one before which all can be sent.
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
		if len(p.batch.requests) == 0 { // all of it was sent
			if !p.fromLog(ctx) {
				return // ctx ended
			}
			from := p.expire()
			if from >= open {
				break
			}
			if !p.encode(from, min(open, from+p.batchSeconds(from))) {
				p.fail(errStuck)
				break // until the next interval
			}
			p.save(p.batch.to)
		}
		if !p.send(ctx) {
			return // ctx ended
		}
		p.mu.Lock()
		p.settle()
		p.mu.Unlock()
	}
	p.save(p.next)
}

// errStuck is a mistake in a stream.
var errStuck = errors.New("a stream has no more seconds")

// settle counts the seconds of the batch. mu must be held.
func (p *Pusher) settle() {
	p.total.seconds += p.batch.seconds
	p.next = max(p.next, p.batch.to)
}

// expire drops the seconds that are no longer in the history, and returns the first one to send. A batch that was encoded is
// not dropped.
func (p *Pusher) expire() int64 {
	oldest := p.open() - int64(p.stats.History()/time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next < oldest {
		p.total.lost += oldest - p.next
		p.next = oldest
	}
	return p.next
}

// batchSeconds is the most seconds in a batch: a few requests. With a position it is one request, unless one second has more:
// what a killed process may have sent the next one sends again, and a server that has some of it refuses all of it, but for the
// newest second.
func (p *Pusher) batchSeconds(from int64) int64 {
	var second seconds.Size
	for i, stream := range p.streams {
		second = second.Add(stream.Size(p.selection(i), from))
	}
	requests := 8
	if p.place.lock != nil {
		requests = 1
	}
	return max(seconds.Size{Samples: requests * p.opts.MaxSamples, Bytes: 64 << 20}.Fit(second), 1)
}

// selection returns what is sent of a stream: the Selection of the resources, which are the first stream, and everything of the
// others.
func (p *Pusher) selection(stream int) *seconds.Selection {
	if stream == 0 {
		return &p.opts.Selection
	}
	return new(seconds.Selection)
}

// Close removes the metrics of a Pusher that never ran.
func (p *Pusher) Close() { p.unpublish() }

// SetInstance sets the label instance, for a service that learns its port after New. It must be called before Run.
func (p *Pusher) SetInstance(instance string) {
	p.opts.Labels = maps.Clone(p.opts.Labels)
	p.opts.Labels["instance"] = instance
}
