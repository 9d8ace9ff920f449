package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// logFlags are the flags of the metric log that is written.
func logFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "metric-log.dir", Usage: "`DIRECTORY` for the metric log"},
		&cli.IntFlag{Name: "metric-log.max-files", Usage: fmt.Sprintf("how many files of the log are kept (default: %d, or any number with one of the two flags below)", metriclog.DefaultMaxFiles)},
		&cli.Int64Flag{Name: "metric-log.max-bytes", Usage: "how many bytes they may have together, and as many those of JSON (default: no limit)"},
		&cli.DurationFlag{Name: "metric-log.max-age", Usage: "how old the last second of a file may be (default: no limit)"},
		&cli.DurationFlag{Name: "metric-log.sync", Usage: "how often the disk is made to keep what was written, in whole seconds (default: when the system does)"},
		&cli.BoolFlag{Name: "metric-log.zero-rows", Usage: "write rows for seconds in which nothing happened, too"},
		&cli.BoolFlag{Name: "metric-log.json", Usage: "write a second log, of JSON lines with quantiles, origins and entrances"},
	}
}

// parseLog reads them. What is wrong with the directory shows when it is opened.
func parseLog(c *cli.Context, wrong func(flag string, err error)) metriclog.Options {
	o := metriclog.Options{
		Dir:      c.String("metric-log.dir"),
		MaxFiles: c.Int("metric-log.max-files"), MaxBytes: c.Int64("metric-log.max-bytes"), MaxAge: c.Duration("metric-log.max-age"),
		Sync: c.Duration("metric-log.sync"), ZeroRows: c.Bool("metric-log.zero-rows"), JSON: c.Bool("metric-log.json"),
	}
	if o.Dir == "" {
		for _, f := range logFlags() {
			switch name := f.Names()[0]; {
			case !c.IsSet(name):
			case name == "metric-log.dir":
				wrong(name, errors.New("is empty; leave it out for no log"))
			default:
				wrong(name, errors.New("needs --metric-log.dir"))
			}
		}
	}
	if c.IsSet("metric-log.max-files") && o.MaxFiles < 1 {
		wrong("metric-log.max-files", fmt.Errorf("%d is below 1", o.MaxFiles))
	}
	if c.IsSet("metric-log.max-bytes") && o.MaxBytes < 1 {
		wrong("metric-log.max-bytes", fmt.Errorf("%d is below 1", o.MaxBytes))
	}
	for name, d := range map[string]time.Duration{"metric-log.max-age": o.MaxAge, "metric-log.sync": o.Sync} {
		if c.IsSet(name) && (d < time.Second || d%time.Second != 0) {
			wrong(name, fmt.Errorf("%v is not a number of whole seconds", d))
		}
	}
	return o
}
