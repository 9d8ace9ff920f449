package main

import (
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/demo"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
)

// demoCommand is windowstat demo, see package demo. It is what make run starts, so it needs no flag.
func demoCommand() *cli.Command {
	var o demo.Options
	o.Telemetry.Exporter.App = "demo"
	set := append(flags.Set{
		{Of: "Rate", Flag: &cli.FloatFlag{Name: "rate", Value: 500, Destination: &o.Rate, Usage: "requests a second, over all routes"}},
		{Of: "Duration", Zero: true, Flag: &cli.DurationFlag{Name: "duration", Destination: &o.Duration, Usage: "how long to run; 0 is until interrupted"}},
		{Of: "Incident", Flag: &cli.StringFlag{Name: "incident", Destination: &o.Incident, Usage: "break the service once, by `NAME`: " + strings.Join(demo.Incidents, ", ")}},
		{Of: "After", Needs: []string{"incident"}, Flag: &cli.DurationFlag{Name: "incident.after", Value: demo.DefaultAfter, Destination: &o.After, Usage: "`DURATION` before the incident"}},
	}, o.Telemetry.Flags()...)
	return &cli.Command{
		Name:  "demo",
		Usage: "run a small HTTP service under load, count its calls, and check that nothing was lost on the way out",
		Description: `A service with routes of different character listens on loopback, instrumented with the SDK, and a generator
sends it real HTTP requests. At the end the command scrapes its own metrics page and reads its own metric log,
and compares, for each resource, what was sent, counted, scraped and logged. Exit status 1 means a difference.

--incident breaks the service for half a minute, in a second that is printed: the database hangs, a limit is too low, or payments
fail and clients try again. docs/incidents.md tells what each of the views shows then.`,
		Flags:  set.Flags(),
		Action: set.Action(o.Check, o.Run),
	}
}
