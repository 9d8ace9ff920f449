package exporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/limitfile"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/exporter/sentinellog"
	"github.com/windowstat/windowstat/exporter/verify"
)

// Exporter is a Collector with its exporters. Create it with [New]. The fields are the parts, for programs that serve
// or read a part themselves; a part that is off is nil. Do not change the fields. An Exporter is safe for concurrent
// use.
type Exporter struct {
	Collector *collector.Collector // nil with Options.Disabled, and so are Seconds and Live
	Metrics   http.Handler         // the page /metrics
	Seconds   *prom.Seconds        // the page /metrics/seconds
	Live      *live.Page           // the page /live/; nil with Options.Sentinel
	Log       *metriclog.Writer    // nil without Options.Log.Dir
	Limits    *limitfile.Watcher   // nil without Options.LimitsFile; Reload reads the file immediately, as on SIGHUP

	Sentinel *sentinellog.Follower // nil without Options.Sentinel.Dir

	pushers []*push.Pusher // without a configured label instance
	parts   []part         // started by Run
	handler http.Handler
	options Options
	ran     atomic.Bool
	ready   atomic.Bool // Run is in progress and its context is not canceled
}

// New creates the Collector and all exporters in order: it reads the last second of the log, then creates the
// Collector, limits, log, sampler, pushes and pages. New starts no goroutine, listens on no port and sends nothing. It
// locks the log for this process. The error names every invalid option (see [Options.Check]); in that case nothing
// stays open.
func New(o Options) (*Exporter, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Disabled {
		return newDisabled(o), nil
	}
	x, err := build(o)
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	x.handler = x.mux()
	return x, nil
}

// build creates the parts in order.
func build(given Options) (x *Exporter, err error) {
	o := given.filled()
	x = &Exporter{options: o}
	var errs []error
	try := func(field string, err error) bool {
		errs = append(errs, prefixed(field, err)...)
		return err == nil
	}
	// Read the last second of the log before the Collector is created. The Collector starts after it, so no second has
	// two values.
	logged := o.Log.Dir != ""
	if logged {
		o.Collector.After, err = metriclog.Last(o.Log)
		try("Log", err)
	}
	if x.Collector, err = collector.New(o.Collector); !try("Collector", err) {
		return x, errors.Join(errs...)
	}
	c := x.Collector
	if o.LimitsFile != "" {
		if x.Limits, err = limitfile.Watch(c, o.LimitsFile, o.Logger); try("LimitsFile", err) {
			x.parts = append(x.parts, x.Limits)
		}
	}
	// Lock the log only if all other options are valid: a process that cannot run must not block others.
	if logged && len(errs) == 0 {
		if x.Log, err = metriclog.New(c, o.Log); try("Log", err) {
			o.Seconds.Log = x.Log
			x.parts = append(x.parts, x.Log)
		}
	}
	if o.Sampler.Gatherer != nil {
		if o.Seconds.Sampler, err = sampler.New(c, o.Sampler); try("Sampler", err) {
			x.parts = append(x.parts, o.Seconds.Sampler)
		}
	}
	followed := o.Sentinel.Dir != ""
	if followed && len(errs) == 0 {
		if x.Sentinel, err = sentinellog.New(c, o.Sentinel); try("Sentinel", err) {
			x.parts = append(x.parts, x.Sentinel)
		}
	}
	for i, options := range o.Push {
		options.Sampler = o.Seconds.Sampler
		if x.Log != nil {
			options.Log = x.Log
		}
		p, err := x.push(options)
		if try(fmt.Sprintf("Push[%d]", i), err) {
			x.parts = append(x.parts, p)
			if given.Push[i].Labels["instance"] == "" {
				x.pushers = append(x.pushers, p)
			}
		}
	}
	gap := verify.Gap{Searcher: metriclog.Searcher{Dir: o.Log.Dir, App: o.App}, Namespace: o.Namespace}
	for i, options := range o.Verify {
		if k, err := verify.New(c, gap, options); try(fmt.Sprintf("Verify[%d]", i), err) {
			x.parts = append(x.parts, k)
		}
	}
	if x.Sentinel != nil {
		x.Seconds, err = x.Sentinel.Seconds(o.Seconds)
	} else {
		x.Seconds, err = prom.NewSeconds(c, o.Seconds)
	}
	try("Seconds", err)
	x.Metrics, err = prom.Handler(c, o.Metrics)
	try("Metrics", err)
	if !followed {
		if x.Live, err = live.New(c, o.Live); try("Live", err) {
			x.parts = append(x.parts, x.Live)
		}
	}
	return x, errors.Join(errs...)
}

// push returns a Pusher of the seconds of Sentinel's logs, or of the Collector.
func (x *Exporter) push(o push.Options) (*push.Pusher, error) {
	if x.Sentinel != nil {
		return x.Sentinel.Push(o)
	}
	return push.New(x.Collector, o)
}

// Close releases the files of the log of an Exporter that never ran.
func (x *Exporter) Close() error {
	if x.Live != nil {
		x.Live.Close()
	}
	if x.Sentinel != nil {
		return x.Sentinel.Close()
	}
	if x.Log != nil {
		return x.Log.Close()
	}
	return nil
}

// part is a component that runs in the background. Its Run returns after ctx is canceled and the last open second is
// written or sent.
type part interface {
	Run(context.Context) error
}

var errRan = errors.New("exporter: Run, Start or Serve was called before; an Exporter runs once")

// Run samples, writes, pushes and follows the limits file until ctx is canceled. It then waits for calls in flight (see
// [Options].Drain) and for the end of the second, which takes about a second at most, writes and sends that second, and
// closes the log. Run can be called only once, and all goroutines that it starts have ended when it returns. The error
// lists the data that could not be written or sent.
func (x *Exporter) Run(ctx context.Context) error {
	if x.ran.Swap(true) {
		return errRan
	}
	if x.options.Disabled {
		return x.runDisabled(ctx)
	}
	// The parts continue after ctx is canceled, until no call is in flight.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	errs := make([]error, len(x.parts))
	var all sync.WaitGroup
	for i, p := range x.parts {
		all.Go(func() { errs[i] = p.Run(running) })
	}
	x.ready.Store(ctx.Err() == nil)
	<-ctx.Done()
	x.ready.Store(false)
	x.drain()
	cancel() // all parts wait for the same second
	all.Wait()
	x.Seconds.Save(context.WithoutCancel(ctx))
	if x.Sentinel != nil {
		errs = append(errs, x.Sentinel.Close())
	}
	return errors.Join(errs...)
}

// drain waits up to Options.Drain until no call is in flight, so that their completions count in the last second. It
// sleeps before the first check, because a server that shuts down with the same context may start more calls.
func (x *Exporter) drain() {
	inFlight := func(r *collector.Resource) bool { return r.InFlight() > 0 }
	for end := time.Now().Add(x.options.Drain); time.Now().Before(end); {
		time.Sleep(drainPoll)
		if !slices.ContainsFunc(x.Collector.Resources(), inFlight) {
			return
		}
	}
}

// drainPoll is the interval at which Run checks for calls in flight.
const drainPoll = 5 * time.Millisecond

// Start calls Run in a goroutine. Stop cancels it, waits for its end and returns its error. Stop may be called several
// times.
func (x *Exporter) Start() (stop func() error) { return background.Start(x.Run) }
