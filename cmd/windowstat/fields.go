package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/collector"
)

// The packages check their options, and name the field that is wrong. Whoever reads the message has set a flag.

// fields are the fields of exporter.Options that have a flag, and of each push with the beginning of its flags.
var fields = map[string]string{
	"App":                    "metric-log.app", // in replay; elsewhere it is the command
	"MetricsPath":            "web.telemetry-path",
	"LimitsFile":             "limits.file",
	"Metrics.By":             "metrics.by",
	"Metrics.HistogramsBy":   "metrics.histograms-by",
	"Collector.MaxResources": "max-resources",
	"Collector.MaxOrigins":   "max-origins",
	"Collector.RetireAfter":  "retire-after",
	"Log":                    "metric-log.dir", // what shows when it is opened
	"Log.Dir":                "metric-log.dir",
	"Log.MaxFiles":           "metric-log.max-files",
	"Log.MaxBytes":           "metric-log.max-bytes",
	"Log.MaxAge":             "metric-log.max-age",
	"Log.Sync":               "metric-log.sync",
	"Push.URL":               "url",
	"Push.Labels":            "label",
	"Push.Client":            "config.file",
	"Push.Interval":          "interval",
	"Push.Timeout":           "timeout",
	"Verify":                 "verify.url", // there is no log
	"Verify.URL":             "verify.url",
	"Verify.Labels":          "verify.label",
	"Verify.Client":          "verify.config.file",
}

// check returns everything that is wrong with the Options, in the words of the flags.
func (s *settings) check() error { return s.flagged(s.Options.Check()) }

// index is that of a slice in the name of a field.
var index = regexp.MustCompile(`\[(\d+)\]`)

// flagged puts flags in the place of fields in an error of package exporter.
func (s *settings) flagged(err error) error {
	var errs []error
	for _, e := range collector.OptionErrors(err) {
		flag := fields[index.ReplaceAllString(e.Field, "")]
		if strings.HasPrefix(e.Field, "Push[") && flag != "" {
			n, _ := strconv.Atoi(index.FindStringSubmatch(e.Field)[1])
			flag = s.pushes[n] + flag
		}
		switch {
		case flag != "":
			errs = append(errs, &flagError{flag, e.Err})
		case e.Field != "":
			errs = append(errs, fmt.Errorf("%s: %w", e.Field, e.Err))
		default:
			errs = append(errs, e.Err)
		}
	}
	return errors.Join(errs...)
}

// flagError is what is wrong with a flag.
type flagError struct {
	flag string
	err  error
}

func (e *flagError) Error() string {
	return "--" + e.flag + ": " + strings.ReplaceAll(e.err.Error(), "needs By", "needs --metrics.by")
}
func (e *flagError) Unwrap() error { return e.err }

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

func flagNames() (names []string) {
	for field, flag := range fields {
		if !strings.HasPrefix(field, "Push.") {
			names = append(names, flag)
			continue
		}
		for _, w := range pushWays {
			names = append(names, w.flags+flag)
		}
	}
	return names
}
