package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
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

type demo struct {
	settings
	rate     float64
	duration time.Duration
}

func newDemo(c *cli.Context) (demo, error) {
	s, err := parseSettings(c, c.App.ErrWriter)
	d := demo{settings: s, rate: c.Float64("rate"), duration: c.Duration("duration")}
	errs := []error{noArguments(c), err}
	if !(d.rate > 0 && d.rate <= maxRate) {
		errs = append(errs, fmt.Errorf("--rate: %v is not above 0 and at most %d", d.rate, maxRate))
	}
	if d.duration < 0 {
		errs = append(errs, fmt.Errorf("--duration: %v is negative", d.duration))
	}
	return d, errors.Join(append(errs, d.check())...)
}

// errDifferent is the verdict that makes the exit status 1.
var errDifferent = errors.New("the counts differ")

func (d demo) run(c *cli.Context) (err error) {
	out := c.App.Writer
	temporary := ""
	if d.Log.Dir == "" {
		if temporary, err = os.MkdirTemp("", "windowstat-demo-"); err != nil {
			return err
		}
		d.Log.Dir = temporary
	}
	defer func() {
		if temporary != "" && !errors.Is(err, errDifferent) {
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

	if d.LimitsFile == "" {
		if err := stats.SetLimits(d.ownLimits()); err != nil {
			return err
		}
	}
	sent := &observer{seen: map[string]counts{}}
	routes := shop(&database{stats: stats, calls: sent})
	service, err := listen("127.0.0.1:0", httpstat.Mux(stats, shopMux(routes), httpstat.OriginHeader(clientHeader)), d.logger, unbounded())
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
	l := newLoad("http://"+service.address(), routes, d.rate, sent)
	l.run(ctx)

	// A client has its answer a little before the handler has returned; stop waits for the handlers.
	if err := service.stop(); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if err := tele.finish(); err != nil {
		return err
	}
	b := reconciliation{sent: sent.seen, counted: counted(stats)}
	if b.scraped, err = d.scrape(tele); err != nil {
		return err
	}
	if b.logged, err = logged(d.Log.Dir, d.App, from); err != nil {
		return err
	}
	if n := l.unanswered.Load(); n > 0 {
		fmt.Fprintf(out, "%d requests got no answer\n", n)
	}
	if !b.print(out) {
		return errDifferent
	}
	return nil
}

// ownLimits are those of the demo without a file: the flash sale's burst, half the rate in one second, is a little too
// much for it.
func (d demo) ownLimits() []collector.Limit {
	return []collector.Limit{{Resource: "GET /flash-sale", Count: max(int64(d.rate*0.4), 1)}}
}

// scrape reads the page over HTTP. If the page is behind TLS or a password, the same handler is asked on a listener
// of its own.
func (d demo) scrape(t *telemetry) (map[string]counts, error) {
	if d.webConfig == "" {
		return scraped(t.url())
	}
	own, err := listen("127.0.0.1:0", t.Metrics, d.logger, unbounded())
	if err != nil {
		return nil, err
	}
	all, err := scraped("http://" + own.address())
	return all, errors.Join(err, own.stop())
}
