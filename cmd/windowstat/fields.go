package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// The packages check their options, and name the field that is wrong. Whoever reads the message has set a flag.

// fields are the fields of exporter.Options that have a flag. Those of the pushes are below.
var fields = map[string]string{
	"App":                      "metric-log.app", // in replay; elsewhere it is the command
	"MetricsPath":              "web.telemetry-path",
	"LimitsFile":               "limits.file",
	"Metrics.By":               "metrics.by",
	"Metrics.HistogramsBy":     "metrics.histograms-by",
	"Collector.MaxResources":   "max-resources",
	"Collector.MaxOrigins":     "max-origins",
	"Collector.RetireAfter":    "retire-after",
	"Log.Dir":                  "metric-log.dir",
	"Log.MaxFiles":             "metric-log.max-files",
	"Log.MaxBytes":             "metric-log.max-bytes",
	"Log.MaxAge":               "metric-log.max-age",
	"Log.Sync":                 "metric-log.sync",
	"Log":                      "metric-log.dir", // what shows when it is opened
	"RemoteWrite.URL":          "remote-write.url",
	"RemoteWrite.label":        "remote-write.label",
	"RemoteWrite.Client":       "remote-write.config.file",
	"RemoteWrite.Interval":     "remote-write.interval",
	"RemoteWrite.Timeout":      "remote-write.timeout",
	"VictoriaMetrics.URL":      "vm.push-url",
	"VictoriaMetrics.label":    "vm.push-label",
	"VictoriaMetrics.Client":   "vm.push-config.file",
	"VictoriaMetrics.Interval": "vm.push-interval",
	"VictoriaMetrics.Timeout":  "vm.push-timeout",
	"Verify":                   "verify.url", // there is no log
	"Verify.URL":               "verify.url",
	"Verify.label":             "verify.label",
	"Verify.Labels":            "verify.label",
	"Verify.Client":            "verify.config.file",
}

// check returns everything that is wrong with the Options, in the words of the flags.
func (s *settings) check() error { return flagged(s.Options.Check()) }

// flagged puts flags in the place of fields in an error of package exporter.
func flagged(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = flaggedLine(line)
	}
	return &flaggedError{strings.Join(lines, "\n"), err}
}

type flaggedError struct {
	text string
	error
}

func (e *flaggedError) Error() string { return e.text }
func (e *flaggedError) Unwrap() error { return e.error }

// flaggedLine changes a line such as "exporter: RemoteWrite[0]: Interval is 1.5s; …".
func flaggedLine(line string) string {
	rest, ok := strings.CutPrefix(line, "exporter: ")
	if !ok {
		return line
	}
	part, message, ok := strings.Cut(rest, ": ")
	if !ok || strings.Contains(part, " ") { // a field of Options themselves
		part, message = "", rest
	}
	part, _, _ = strings.Cut(part, "[") // each flag is there once
	field, value, _ := strings.Cut(message, " ")
	name := strings.TrimPrefix(part+"."+strings.TrimSuffix(field, ":"), ".")
	if flag := fields[name]; flag != "" {
		return "--" + flag + ": " + strings.ReplaceAll(strings.TrimPrefix(value, "is "), "needs By", "needs --metrics.by")
	}
	if flag := fields[part]; flag != "" {
		return "--" + flag + ": " + message
	}
	return rest
}

// empty is the error for flags that were given without a value: zero and the empty string mean the default in options, and
// whoever gives a flag wants something else.
func empty(c *cli.Context) error {
	var errs []error
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || !slices.Contains(flagNames(), name) {
			continue
		}
		switch v := c.Value(name); v {
		case 0, int64(0), time.Duration(0):
			errs = append(errs, fmt.Errorf("--%s: %v is none; leave it out for the default", name, v))
		case "":
			errs = append(errs, fmt.Errorf("--%s: is empty; leave it out for the default", name))
		}
	}
	return errors.Join(errs...)
}

func flagNames() []string { return slices.Collect(maps.Values(fields)) }
