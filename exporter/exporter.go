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
	"github.com/windowstat/windowstat/exporter/verify"
)

// Exporter is a Collector with its ways out. It must be made with [New]. The fields are the parts, for programs that serve or
// read one themselves; nil is a part that is not there. They are not to be changed. It is safe for concurrent use.
type Exporter struct {
	Collector *collector.Collector
	Metrics   http.Handler       // the page /metrics
	Seconds   *prom.Seconds      // the page /metrics/seconds
	Live      *live.Page         // the page /live/
	Log       *metriclog.Writer  // nil without Options.Log.Dir
	Limits    *limitfile.Watcher // nil without Options.LimitsFile; Reload reads the file now, as on SIGHUP

	pushers []*push.Pusher // without a label instance that was given
	parts   []part         // that run
	handler http.Handler
	options Options
	ran     atomic.Bool
	ready   atomic.Bool // it runs, and was not told to end
}

// New makes the Collector and all ways out, in order: what an earlier process has logged, the Collector after it, limits,
// log, sampler, pushes, pages. Nothing listens, runs or is sent yet; the log is this process's from now on. The error names
// every option that is wrong, see [Options.Check]; then nothing is left open.
func New(o Options) (*Exporter, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	x, err := build(o)
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	x.handler = x.mux()
	return x, nil
}

// build makes the parts in order.
func build(given Options) (x *Exporter, err error) {
	o := given.filled()
	x = &Exporter{options: o}
	var errs []error
	try := func(field string, err error) bool {
		errs = append(errs, within(field, err)...)
		return err == nil
	}
	// The last second of the log comes before the Collector, whose first second is behind it: so no second has two values.
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
	// The log is taken when nothing else is wrong: a process that is not to run must not keep others from it.
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
	for i, options := range o.Push {
		options.Sampler = o.Seconds.Sampler
		if x.Log != nil {
			options.Log = x.Log
		}
		if p, err := push.New(c, options); try(fmt.Sprintf("Push[%d]", i), err) {
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
	x.Seconds, err = prom.NewSeconds(c, o.Seconds)
	try("Seconds", err)
	x.Metrics, err = prom.Handler(c, o.Metrics)
	try("Metrics", err)
	x.Live, err = live.New(c, o.Live)
	try("Live", err)
	return x, errors.Join(errs...)
}

// Close gives back what New took, for an Exporter that never ran: the log's files.
func (x *Exporter) Close() error {
	if x.Live != nil {
		x.Live.Close()
	}
	if x.Log != nil {
		return x.Log.Close()
	}
	return nil
}

// part is what runs until its context ends, and then deals with the second that was open.
type part interface {
	Run(context.Context) error
}

var errRan = errors.New("exporter: Run, Start or Serve was called before; an Exporter runs once")

// Run samples, writes, pushes and follows the limits until ctx ends; it starts nothing that outlives it, and runs once. Then
// it waits for calls in flight, see [Options].Drain, and for the end of the second, at most about a second; it writes and
// sends that second, and closes the log. The error says what could not be written or sent then.
func (x *Exporter) Run(ctx context.Context) error {
	if x.ran.Swap(true) {
		return errRan
	}
	// The parts go on until calls in flight have ended, which is after ctx has.
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
	cancel() // all of them wait for the same second
	all.Wait()
	x.Seconds.Save(context.WithoutCancel(ctx))
	return errors.Join(errs...)
}

// drain waits for the calls in flight: their completions belong into the last second. It looks after a moment, in which a server
// that the same context ends may still have begun some.
func (x *Exporter) drain() {
	inFlight := func(r *collector.Resource) bool { return r.InFlight() > 0 }
	for end := time.Now().Add(x.options.Drain); time.Now().Before(end); {
		time.Sleep(drainPoll)
		if !slices.ContainsFunc(x.Collector.Resources(), inFlight) {
			return
		}
	}
}

// drainPoll is how often Run looks whether calls are in flight.
const drainPoll = 5 * time.Millisecond

// Start is Run in a goroutine. stop ends it, waits for it and returns its error; it may be called several times.
func (x *Exporter) Start() (stop func() error) { return background.Start(x.Run) }
