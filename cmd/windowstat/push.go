package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/prometheus/common/config"
	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/remote"
	"github.com/windowstat/windowstat/exporter/vm"
)

// pusher sends the sealed seconds to a server.
type pusher interface {
	exporter.Source
	Run(context.Context) error
}

// pushWay is a way to push, with its flags, which all begin alike.
type pushWay struct {
	flags string // beginning of the flags
	usage string
	make  func(*collector.Collector, remote.Options) (pusher, error)
}

var pushWays = []pushWay{
	{
		"remote-write.", "a server that takes Prometheus remote write",
		func(c *collector.Collector, o remote.Options) (pusher, error) { return remote.New(c, o) },
	},
	{
		"vm.push-", "VictoriaMetrics' import endpoint, …/api/v1/import/prometheus",
		func(c *collector.Collector, o remote.Options) (pusher, error) { return vm.NewPusher(c, o) },
	},
}

// pushFlags are the flags of all ways to push.
func pushFlags() (flags []cli.Flag) {
	for _, w := range pushWays {
		flags = append(flags,
			&cli.StringFlag{Name: w.flags + "url", Usage: "`URL` of " + w.usage + ", to send every second to"},
			&cli.StringSliceFlag{Name: w.flags + "label", Usage: "`NAME=VALUE` of a label for all series; job and instance have defaults"},
			&cli.StringFlag{Name: w.flags + "config.file", Usage: "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"},
			&cli.DurationFlag{Name: w.flags + "interval", Value: remote.DefaultInterval, Usage: "`DURATION` between two requests"},
			&cli.DurationFlag{Name: w.flags + "timeout", Value: remote.DefaultTimeout, Usage: "`DURATION` that a request may take"},
		)
	}
	return flags
}

// push is a way that is wanted, and its options.
type push struct {
	pushWay
	options remote.Options
}

// parsePushes reads the flags of the ways that have a URL. The error names every flag that is wrong.
func parsePushes(c *cli.Context) (list []push, err error) {
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
		p := push{w, remote.Options{
			URL: c.String(w.flags + "url"), Interval: c.Duration(w.flags + "interval"), Timeout: c.Duration(w.flags + "timeout"),
			Labels: map[string]string{"job": c.Command.Name, "instance": instance(c.String("web.listen-address"))},
		}}
		p.options.Labels, err = parseLabels(w.flags+"label", c.StringSlice(w.flags+"label"), p.options.Labels)
		errs = append(errs, err)
		p.options.Client, err = parseClient(w.flags+"config.file", c.String(w.flags+"config.file"))
		errs = append(errs, err)
		if err := p.check(); err != nil {
			errs = append(errs, fmt.Errorf("--%surl and the flags that go with it: %w", w.flags, err))
		}
		list = append(list, p)
	}
	return list, errors.Join(errs...)
}

// parseLabels adds the labels of a flag to others.
func parseLabels(flag string, labels []string, to map[string]string) (map[string]string, error) {
	var errs []error
	for _, label := range labels {
		name, value, ok := strings.Cut(label, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("--%s: %q is not NAME=VALUE", flag, label))
		}
		to[name] = value
	}
	return to, errors.Join(errs...)
}

// parseClient reads the file of a flag; none is the zero configuration.
func parseClient(flag, path string) (config.HTTPClientConfig, error) {
	if path == "" {
		return config.HTTPClientConfig{}, nil
	}
	client, _, err := config.LoadHTTPConfigFile(path)
	if err != nil {
		return config.HTTPClientConfig{}, fmt.Errorf("--%s: %s: %w", flag, path, err)
	}
	return *client, nil
}

// check makes what the options are for, once, to hear what is wrong with them.
func (p *push) check() error {
	c, err := collector.New(collector.Options{})
	if err != nil {
		return err
	}
	if _, err = p.make(c, p.options); err != nil {
		return oneLine(err)
	}
	return nil
}

// instance is what a service that listens on an address is called by default.
func instance(address string) string {
	host, port, err := net.SplitHostPort(address)
	if name, unknown := os.Hostname(); unknown == nil {
		host = name
	}
	if err != nil {
		return host
	}
	return net.JoinHostPort(host, port)
}
