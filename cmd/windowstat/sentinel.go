package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/sentinelcmd"
	"github.com/windowstat/windowstat/exporter/sentinellog"
)

// sentinelCommand is windowstat sentinel, see package sentinelcmd.
func sentinelCommand() *cli.Command {
	var o sentinelcmd.Options
	set := slices.Concat(sentinelFlags(&o), o.Telemetry.ServeFlags())
	return set.Command(&cli.Command{
		Name:  "sentinel",
		Usage: "follow Sentinel's metric logs and export every second",
		Description: `Reads the metric logs of applications with Alibaba Sentinel, for Java, Go or C++, as they are
written. Every second of every resource is on the per-second page and in the pushes, with the time of its second and
the numbers of the log. Nothing is counted again, and the applications do not change. The directory may be read-only.

A process has the labels app and pid; pid is absent unless Sentinel is configured to write it. Rows that are written
late are exported late, without delaying other processes. After a restart or an outage, a scraper or a push gets all
seconds from the logs that it has not received.

The log has no response times except their average in milliseconds, and Java's log has no calls in flight.`,
		Action: set.Action(o.Check, o.Run),
	})
}

// sentinelFlags returns the flags of the logs. The exporters have only [telemetry.Options.ServeFlags], because the
// command counts no calls: limits and a metric log would have no effect.
func sentinelFlags(o *sentinelcmd.Options) flags.Set {
	x := &o.Telemetry.Exporter.Sentinel
	return flags.Set{
		{
			Name: "dir", Value: flags.String(&x.Dir, ""), Of: "Sentinel.Dir",
			Usage: "`DIRECTORY` of the metric logs (required)",
		},
		{
			Name: "app", Value: flags.String(&x.App, ""), Of: "Sentinel.App",
			Usage: "`NAME` of the only application whose logs are followed, as in the names of the files",
		},
		{
			Name: "state-dir", Value: flags.String(&x.StateDir, ""), Of: "Sentinel.StateDir",
			Usage: "writable `DIRECTORY` for positions, runs and the lock", Default: "the directory of the logs",
		},
		{
			Name: "lag", Value: flags.Number(&x.Lag, sentinellog.DefaultLag), Of: "Sentinel.Lag",
			Usage: "`DURATION` between the end of a second and its export, in whole seconds",
		},
		{
			Name: "keep", Value: flags.Number(&x.Keep, sentinellog.DefaultKeep), Of: "Sentinel.Keep",
			Usage: "`DURATION` for which a scraper or a push that was away gets all seconds from the logs",
		},
		{
			Name: "sum-processes", Value: flags.Bool(&x.Sum),
			Usage: "add the processes of an application; rows that are written later than --lag are then lost",
		},
	}
}
