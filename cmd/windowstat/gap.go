package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/backfill"
	"github.com/windowstat/windowstat/exporter/push"
)

// fillFlags are those that fill a gap in a database.
func fillFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "label", Usage: "`NAME=VALUE` of a label for all samples, with openmetrics and --remote-write; job and instance are needed"},
		&cli.StringFlag{Name: "namespace", Value: exporter.Namespace, Usage: "`PREFIX` of the metrics' names, with openmetrics and --remote-write"},
		&cli.StringFlag{Name: "remote-write", Usage: "`URL` of a server that takes Prometheus remote write, to send the samples to in the place of printing rows"},
		&cli.StringFlag{Name: "remote-write.config.file", Usage: "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"},
		&cli.DurationFlag{Name: "remote-write.timeout", Value: push.DefaultTimeout, Usage: "`DURATION` that a request may take"},
	}
}

// fill is how a gap is filled: without a URL as OpenMetrics text.
type fill struct {
	namespace string
	push.Options
}

// parseFill reads the flags for a gap; it is nil if none is to be result.
func parseFill(c *cli.Context, format string) (f *fill, err error) {
	url := c.IsSet("remote-write")
	if !url && format != logquery.OpenMetrics {
		var errs []error
		for _, name := range []string{"label", "namespace"} {
			if c.IsSet(name) {
				errs = append(errs, fmt.Errorf("--%s: needs --format openmetrics or --remote-write", name))
			}
		}
		return nil, errors.Join(append(errs, needsURL(c))...)
	}
	f = &fill{namespace: c.String("namespace"), Options: push.Options{URL: c.String("remote-write"), Timeout: c.Duration("remote-write.timeout")}}
	var errs flagErrors
	f.Labels, err = parseLabels("label", c.StringSlice("label"))
	errs = append(errs, err)
	errs.add("label", oneLine(backfill.CheckLabels(f.Labels)))
	errs.add("namespace", oneLine(backfill.CheckNamespace(f.namespace)))
	if url {
		f.Client, err = parseClient("remote-write.config.file", c.String("remote-write.config.file"))
		errs = append(errs, err)
		rest := f.Options // what was not looked at yet
		rest.Labels = map[string]string{"job": "any", "instance": "any"}
		errs.add("remote-write", oneLine(rest.Check()))
	} else {
		errs = append(errs, needsURL(c))
	}
	if url && c.IsSet("format") {
		errs.add("format", errors.New("not with --remote-write, which prints no rows"))
	}
	if !c.IsSet("from") {
		errs.add("from", errors.New("needed to fill a gap; and --to, if it has ended"))
	}
	return f, errors.Join(errs...)
}

// needsURL is the error for the flags that go with a URL only.
func needsURL(c *cli.Context) error {
	var errs []error
	for _, name := range []string{"remote-write.config.file", "remote-write.timeout"} {
		if c.IsSet(name) {
			errs = append(errs, fmt.Errorf("--%s: needs --remote-write", name))
		}
	}
	return errors.Join(errs...)
}

// run fills the gap, or prints what will.
func (f *fill) run(ctx context.Context, s *logquery.Selection, stdout, stderr io.Writer) error {
	gap := backfill.Gap{Searcher: s.Searcher, PIDs: s.PIDs, From: s.From, To: s.To, Match: s.Match, Namespace: f.namespace}
	if f.URL == "" {
		out := bufio.NewWriter(stdout)
		found, err := gap.OpenMetrics(ctx, out, f.Labels)
		s.Malformed(stderr, found.Malformed)
		if err == nil {
			err = out.Flush()
		}
		if err == nil && found.Rows == 0 {
			s.Empty(stderr, nil, 0)
		}
		return several(err)
	}
	f.Logger = slog.New(slog.NewTextHandler(stderr, nil))
	found, result, err := gap.RemoteWrite(ctx, f.Options)
	s.Malformed(stderr, found.Malformed)
	if err == nil && result == (backfill.WriteResult{}) {
		s.Empty(stderr, nil, 0)
		return nil
	}
	if result != (backfill.WriteResult{}) {
		unconfirmed := ""
		if result.Unconfirmed > 0 {
			unconfirmed = fmt.Sprintf(", %d unconfirmed", result.Unconfirmed)
		}
		if _, e := fmt.Fprintf(stdout, "%d samples were written, %d refused, %d not sent%s: %s to %s\n", result.Written, result.Refused, result.Left, unconfirmed,
			s.Time(found.First), s.Time(found.Last)); e != nil {
			err = errors.Join(err, e)
		}
	}
	if err == nil && result.Refused > 0 {
		err = fmt.Errorf("%d samples were refused; is the server's out_of_order_time_window long enough? For what is older there is --format openmetrics", result.Refused)
	}
	if err == nil && result.Unconfirmed > 0 {
		err = fmt.Errorf("whether %d samples arrived is unknown; fill the gap again if the server accepts samples out of order", result.Unconfirmed)
	}
	return several(err)
}

// several says what to do about several processes.
func several(err error) error {
	if errors.Is(err, backfill.ErrSeveral) {
		return fmt.Errorf("%w; choose with --pid, and give each its own --label instance=…", err)
	}
	return err
}

// oneLine is an error of several as one line; nil stays nil.
func oneLine(err error) error {
	if err == nil {
		return nil
	}
	var all []string
	for _, e := range collector.OptionErrors(err) {
		text := e.Err.Error()
		if e.Field == "Timeout" {
			text = "Timeout: " + text
		}
		all = append(all, text)
	}
	return errors.New(strings.Join(all, "; "))
}
