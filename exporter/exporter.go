package exporter

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/limitfile"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/remote"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/exporter/vmpush"
)

// Exporter is a Collector with its ways out. It must be made with [New]. The fields are the parts, for whoever serves or
// reads one himself; nil is a part that is not there. They are not to be changed. It is safe for concurrent use.
type Exporter struct {
	Collector *collector.Collector
	Metrics   http.Handler       // the page /metrics
	Seconds   *prom.Seconds      // the page /metrics/seconds
	Live      *live.Page         // the page /live/
	Log       *metriclog.Writer  // nil without Options.Log.Dir
	Limits    *limitfile.Watcher // nil without Options.LimitsFile; Reload reads the file now, as on SIGHUP

	sampler *sampler.Sampler
	pushers []pusher
	handler http.Handler
	options Options
	ran     atomic.Bool
}

// pusher is a Pusher of remote or of vmpush.
type pusher struct {
	runner
	instance bool // it has a label instance that was given
}

type runner interface {
	part
	SetInstance(string)
	Close()
}

// New makes the Collector and all ways out, in order: what an earlier process has logged, the Collector after it, limits,
// log, sampler, pushes, pages. Nothing listens, runs or is sent yet; the log is this process's from now on. The error names
// every option that is wrong, see [Options.Check]; then nothing is left open.
func New(o Options) (x *Exporter, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.defaults()
	given := o
	o.fill()
	x = &Exporter{options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
			x = nil
		}
	}()
	in := func(field string, err error) error { // names the field
		if err == nil {
			return nil
		}
		return &fieldError{field, err}
	}
	if o.Log.Dir != "" {
		if o.Collector.After, err = metriclog.Last(o.Log); err != nil {
			return x, in("Log", err)
		}
	}
	if x.Collector, err = collector.New(o.Collector); err != nil {
		return x, in("Collector", err)
	}
	c := x.Collector
	if o.LimitsFile != "" {
		if x.Limits, err = limitfile.Watch(c, o.LimitsFile, o.Logger); err != nil {
			return x, in("LimitsFile", err)
		}
	}
	if o.Log.Dir != "" {
		if x.Log, err = metriclog.New(c, o.Log); err != nil {
			return x, in("Log", err)
		}
		o.Seconds.Log = x.Log
	}
	if x.sampler, err = newSampler(c, o.Sampler); err != nil {
		return x, in("Sampler", err)
	}
	for i, options := range o.RemoteWrite {
		options.Sampler = x.sampler
		p, err := remote.New(c, options)
		if err != nil {
			return x, in("RemoteWrite", err)
		}
		x.pushers = append(x.pushers, pusher{p, given.RemoteWrite[i].Labels["instance"] != ""})
	}
	for i, options := range o.VictoriaMetrics {
		options.Sampler = x.sampler
		p, err := vmpush.New(c, options)
		if err != nil {
			return x, in("VictoriaMetrics", err)
		}
		x.pushers = append(x.pushers, pusher{p, given.VictoriaMetrics[i].Labels["instance"] != ""})
	}
	o.Seconds.Sampler = x.sampler
	if x.Seconds, err = prom.NewSeconds(c, o.Seconds); err != nil {
		return x, in("Seconds", err)
	}
	if x.Metrics, err = prom.Handler(c, o.Metrics); err != nil {
		return x, in("Metrics", err)
	}
	if x.Live, err = live.New(c, o.Live); err != nil {
		return x, in("Live", err)
	}
	x.handler = x.mux()
	return x, nil
}

// newSampler makes a sampler, if there is something to sample.
func newSampler(c *collector.Collector, o sampler.Options) (*sampler.Sampler, error) {
	if o.Gatherer == nil {
		return nil, nil
	}
	return sampler.New(c, o)
}

// Close gives back what New took, for an Exporter that never ran: the log's files.
func (x *Exporter) Close() error {
	for _, p := range x.pushers {
		p.Close()
	}
	if x.sampler != nil {
		x.sampler.Close()
	}
	if x.Live != nil {
		x.Live.Close()
	}
	if x.Log != nil {
		return x.Log.Close()
	}
	return nil
}

// inFlight is how many calls are in flight.
func (x *Exporter) inFlight() (n int64) {
	for _, r := range x.Collector.Seal().Resources {
		n += r.InFlight()
	}
	return n
}

// drainPoll is how often Run looks whether calls are in flight.
const drainPoll = 5 * time.Millisecond
