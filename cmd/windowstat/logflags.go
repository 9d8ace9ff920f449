package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// logFlags are the flags of the metric log that is written.
func logFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "metric-log.dir", Usage: "`DIRECTORY` for the metric log"},
		&cli.IntFlag{Name: "metric-log.max-files", Usage: "how many files of the log are kept", DefaultText: fmt.Sprintf("%d, or any number with one of the two flags below", metriclog.DefaultMaxFiles)},
		&cli.Int64Flag{Name: "metric-log.max-bytes", Usage: "how many bytes they may have together", DefaultText: "no limit"},
		&cli.DurationFlag{Name: "metric-log.max-age", Usage: "how old the last second of a file may be", DefaultText: "no limit"},
		&cli.DurationFlag{Name: "metric-log.sync", Usage: "fsync interval in whole seconds", DefaultText: "left to the operating system"},
		&cli.BoolFlag{Name: "metric-log.zero-rows", Usage: "write rows for seconds in which nothing happened, too"},
	}
}

// parseLog reads them.
func parseLog(c *cli.Context) (metriclog.Options, error) {
	o := metriclog.Options{
		Dir:      c.String("metric-log.dir"),
		MaxFiles: c.Int("metric-log.max-files"), MaxBytes: c.Int64("metric-log.max-bytes"), MaxAge: c.Duration("metric-log.max-age"),
		Sync: c.Duration("metric-log.sync"), ZeroRows: c.Bool("metric-log.zero-rows"),
	}
	var errs []error
	for _, f := range logFlags() {
		if name := f.Names()[0]; o.Dir == "" && name != "metric-log.dir" && c.IsSet(name) {
			errs = append(errs, fmt.Errorf("--%s: needs --metric-log.dir", name))
		}
	}
	return o, errors.Join(errs...)
}
