package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/sentinelcmd"
	"github.com/windowstat/windowstat/exporter/sentinellog"
)

// sentinelCommand is windowstat sentinel, see package sentinelcmd.
//
// The command is a sidecar for applications that cannot be changed: it needs only their logs.
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
	// Package exporter runs the reader of the logs, so its options are there.
	x := &o.Telemetry.Exporter.Sentinel
	return flags.Set{
		{
			Name: "dir", Value: flags.String(&x.Dir, ""), Of: "Sentinel.Dir",
			Usage: "`DIRECTORY` of the metric logs (required)",
		},
		{
			// Without this flag, all applications of the directory are followed, including applications that appear
			// later.
			Name: "app", Value: flags.String(&x.App, ""), Of: "Sentinel.App",
			Usage: "`NAME` of the only application whose logs are followed, as in the names of the files",
		},
		{
			// The state keeps positions over a restart. If the directory of the logs is read-only, the state needs a
			// separate directory.
			Name: "state-dir", Value: flags.String(&x.StateDir, ""), Of: "Sentinel.StateDir",
			Usage: "writable `DIRECTORY` for positions, runs and the lock", Default: "the directory of the logs",
		},
		{
			// Sentinel writes the row of a second after its end. A larger lag waits for slower writers, and delays the
			// export.
			Name: "lag", Value: flags.Number(&x.Lag, sentinellog.DefaultLag), Of: "Sentinel.Lag",
			Usage: "`DURATION` between the end of a second and its export, in whole seconds",
		},
		{
			// The last ten minutes are in memory, and older seconds are read from the files. Memory does not grow with
			// the duration.
			Name: "keep", Value: flags.Number(&x.Keep, sentinellog.DefaultKeep), Of: "Sentinel.Keep",
			Usage: "`DURATION` for which a scraper or a push that was away gets all seconds from the logs",
		},
		{
			// A sum is final when it is exported. Rows that a slow process writes after that cannot be added.
			Name: "sum-processes", Value: flags.Bool(&x.Sum),
			Usage: "add the processes of an application; rows that are written later than --lag are then lost",
		},
	}
}
