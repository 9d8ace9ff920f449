package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/demo"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "run a small HTTP service under load, count its calls, and check that nothing was lost on the way out",
		Description: `A service with routes of different character listens on loopback, instrumented with the SDK, and a generator
sends it real HTTP requests. At the end the command scrapes its own metrics page and reads its own metric log,
and compares, for each resource, what was sent, counted, scraped and logged. Exit status 1 means a difference.`,
		Flags: append([]cli.Flag{
			&cli.Float64Flag{Name: "rate", Value: 500, Usage: "requests a second, over all routes"},
			&cli.DurationFlag{Name: "duration", Usage: "how long to run; 0 is until interrupted"},
		}, telemetryFlags()...),
		Action: func(c *cli.Context) error {
			d, err := newDemo(c)
			if err != nil {
				return usage(err)
			}
			return d.run(c)
		},
	}
}

// maxRate is more than one machine can send itself.
const maxRate = 100_000

// running is what the flags say.
type running struct {
	settings
	rate     float64
	duration time.Duration
}

func newDemo(c *cli.Context) (running, error) {
	s, err := parseSettings(c, c.App.ErrWriter)
	d := running{settings: s, rate: c.Float64("rate"), duration: c.Duration("duration")}
	errs := []error{noArguments(c), err}
	if !(d.rate > 0 && d.rate <= maxRate) {
		errs = append(errs, fmt.Errorf("--rate: %v is not above 0 and at most %d", d.rate, maxRate))
	}
	if d.duration < 0 {
		errs = append(errs, fmt.Errorf("--duration: %v is negative", d.duration))
	}
	return d, errors.Join(append(errs, d.check())...)
}

func (d running) run(c *cli.Context) (err error) {
	out := c.App.Writer
	temporary := ""
	if d.Log.Dir == "" {
		if temporary, err = os.MkdirTemp("", "windowstat-demo-"); err != nil {
			return err
		}
		d.Log.Dir = temporary
	}
	defer func() {
		if temporary != "" && !errors.Is(err, demo.ErrDifferent) {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	tele, err := startTelemetry(d.settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tele.stop()) }()
	stats := tele.Collector
	line := stats.Timeline()
	from, _ := line.Name(line.At(line.Now()).Index)

	shop := demo.New(stats, d.rate)
	if d.LimitsFile == "" {
		if err := stats.SetLimits(shop.Limits()); err != nil {
			return err
		}
	}
	service, err := listen("127.0.0.1:0", shop.Handler(), d.logger, unbounded())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "service     http://%s  under %g requests a second\nmetrics     %s\nmetric log  %s\n",
		service.address(), d.rate, tele.url(), d.Log.Dir)
	if d.duration == 0 {
		fmt.Fprintln(out, "running until interrupted (Ctrl-C)")
	} else {
		fmt.Fprintf(out, "running for %v\n", d.duration)
	}

	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	if d.duration > 0 {
		ctx, cancel = context.WithTimeout(ctx, d.duration)
		defer cancel()
	}
	go func() { // whichever server ends by itself ends the demo
		select {
		case <-tele.ended:
		case <-service.ended:
		case <-ctx.Done():
		}
		cancel()
	}()
	unanswered := shop.Load(ctx, "http://"+service.address())

	// A client has its answer a little before the handler has returned; stop waits for the handlers.
	if err := service.stop(); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if err := tele.finish(); err != nil {
		return err
	}
	if unanswered > 0 {
		fmt.Fprintf(out, "%d requests got no answer\n", unanswered)
	}
	return d.reconcile(out, shop, tele, from)
}

// reconcile reads the page over HTTP. If the page is behind TLS or a password, the same handler is asked on a listener of its own.
func (d running) reconcile(out io.Writer, shop *demo.Shop, t *telemetry, from time.Time) error {
	log := metriclog.Searcher{Dir: d.Log.Dir, App: d.App}
	if d.webConfig == "" {
		return shop.Reconcile(out, t.url(), log, from)
	}
	own, err := listen("127.0.0.1:0", t.Metrics, d.logger, unbounded())
	if err != nil {
		return err
	}
	err = shop.Reconcile(out, "http://"+own.address(), log, from)
	return errors.Join(err, own.stop())
}
