package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/demo"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
)

// demoCommand is windowstat demo, see package demo. The command must work without flags, because make run gives none.
func demoCommand() *cli.Command {
	var o demo.Options
	// The name of the application is in the names of the files of the metric log. The demo has no flag for it.
	o.Telemetry.Exporter.App = "demo"
	set := append(flags.Set{
		{
			// 500 requests per second are enough to give every steady route some in each second.
			Name: "rate", Value: flags.Number(&o.Rate, 500), Of: "Rate",
			Usage: "`NUMBER` of requests per second, over all routes",
		},
		{
			// 0 has a meaning for this flag: a run without an end. For most flags, an explicit 0 is an error.
			Name: "duration", Value: flags.Number(&o.Duration, 0), Of: "Duration", Zero: true,
			Usage: "`DURATION` of the run (0: until interrupted)",
		},
		{
			// Suggest makes a shell complete the names. Package demo checks the name.
			Name: "incident", Value: flags.String(&o.Incident, "").Suggest(demo.Incidents...), Of: "Incident",
			Usage: "break the service once, by `NAME`: " + strings.Join(demo.Incidents, ", "),
		},
		{
			// Without --incident, this flag would have no effect, so Needs makes it an error.
			Name: "incident.after", Value: flags.Number(&o.After, demo.DefaultAfter), Of: "After",
			Needs: []string{"incident"}, Usage: "`DURATION` before the incident",
		},
	}, o.Telemetry.Flags()...)
	return set.Command(&cli.Command{
		Name:  "demo",
		Usage: "run an HTTP service under load, count its calls, and verify the counts",
		Description: `A service with different routes listens on the loopback interface. It is instrumented with the
SDK, and a generator sends real HTTP requests to it. At the end the command scrapes its own metrics page and reads its
own metric log. For each resource it compares the calls that were sent, counted, scraped and logged. Exit status 1
means a difference.

--incident breaks the service for half a minute, in a second that is printed: the database hangs, a limit is too low,
or payments fail and clients retry. docs/incidents.md explains what each view shows.`,
		Action: set.Action(o.Check, o.Run),
	})
}
