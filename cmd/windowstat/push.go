package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/common/config"
	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

// pushWays are the ways to push: what their flags begin with, and where they push to.
var pushWays = []struct {
	flags, usage string
	format       push.Format
}{
	{"remote-write.", "a server that takes Prometheus remote write", push.RemoteWrite},
	{"vm.push-", "VictoriaMetrics' import endpoint, …/api/v1/import/prometheus", push.VictoriaMetrics},
}

// pushFlags are the flags of all ways to push, and of the database that has what was pushed or scraped.
func pushFlags() (flags []cli.Flag) {
	for _, w := range pushWays {
		flags = append(flags,
			&cli.StringFlag{Name: w.flags + "url", Usage: "`URL` of " + w.usage + ", to send every second to"},
			&cli.StringSliceFlag{Name: w.flags + "label", Usage: "`NAME=VALUE` of a label for all series; job and instance have defaults"},
			&cli.StringFlag{Name: w.flags + "config.file", Usage: "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"},
			&cli.DurationFlag{Name: w.flags + "interval", Value: push.DefaultInterval, Usage: "`DURATION` between two requests"},
			&cli.DurationFlag{Name: w.flags + "timeout", Value: push.DefaultTimeout, Usage: "`DURATION` that a request may take"},
		)
	}
	return append(flags,
		&cli.StringFlag{Name: "verify.url", Usage: "`URL` of a query API, without /api/v1, of a database to compare with the metric log every five minutes"},
		&cli.StringSliceFlag{Name: "verify.label", Usage: "`NAME=VALUE` of a label that the series of this instance have there, such as job and instance"},
		&cli.StringFlag{Name: "verify.config.file", Usage: "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"},
	)
}

// parseVerify reads the flags of the database that is compared.
func (s *settings) parseVerify(c *cli.Context) error {
	if !c.IsSet("verify.url") {
		var errs []error
		for _, name := range []string{"verify.label", "verify.config.file"} {
			if c.IsSet(name) {
				errs = append(errs, fmt.Errorf("--%s: needs --verify.url", name))
			}
		}
		return errors.Join(errs...)
	}
	labels, errLabels := parseLabels("verify.label", c.StringSlice("verify.label"))
	client, err := parseClient("verify.config.file", c.String("verify.config.file"))
	s.Verify = []verify.Options{{URL: c.String("verify.url"), Labels: labels, Client: client}}
	return errors.Join(errLabels, err)
}

// parsePushes reads the flags of the ways that have a URL.
func (s *settings) parsePushes(c *cli.Context) error {
	var errs []error
	for _, w := range pushWays {
		if !c.IsSet(w.flags + "url") {
			for _, name := range []string{"label", "config.file", "interval", "timeout"} {
				if c.IsSet(w.flags + name) {
					errs = append(errs, fmt.Errorf("--%s%s: needs --%surl", w.flags, name, w.flags))
				}
			}
			continue
		}
		url, interval, timeout := c.String(w.flags+"url"), c.Duration(w.flags+"interval"), c.Duration(w.flags+"timeout")
		labels, err := parseLabels(w.flags+"label", c.StringSlice(w.flags+"label"))
		errs = append(errs, err)
		client, err := parseClient(w.flags+"config.file", c.String(w.flags+"config.file"))
		errs = append(errs, err)
		s.pushes = append(s.pushes, w.flags)
		s.Push = append(s.Push, push.Options{URL: url, Format: w.format, Labels: labels, Client: client, Interval: interval, Timeout: timeout})
	}
	return errors.Join(errs...)
}

// parseLabels reads the labels of a flag.
func parseLabels(flag string, labels []string) (map[string]string, error) {
	to := map[string]string{}
	var errs []error
	for _, label := range labels {
		name, value, ok := strings.Cut(label, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("--%s: %q is not NAME=VALUE", flag, label))
			continue
		}
		to[name] = value
	}
	return to, errors.Join(errs...)
}

// parseClient makes a client from the file of a flag; nil is the default.
func parseClient(flag, path string) (*http.Client, error) {
	if path == "" {
		return nil, nil
	}
	options, _, err := config.LoadHTTPConfigFile(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %s: %w", flag, path, err)
	}
	client, err := config.NewClientFromConfig(*options, "windowstat", config.WithUserAgent("windowstat/"+exporter.Version()))
	if err != nil {
		return nil, fmt.Errorf("--%s: %s: %w", flag, path, err)
	}
	return client, nil
}
