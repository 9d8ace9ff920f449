// Package sentinelcmd runs windowstat sentinel: it follows Sentinel's metric logs with package sentinellog, and serves
// and pushes their seconds with package exporter.
//
// The command has no Collector of its own calls: each second is exported with the numbers of the log. Therefore it has
// no flags for limits, and it writes no metric log.
package sentinelcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/telemetry"
	"github.com/windowstat/windowstat/collector"
)

// Options configure the command. Telemetry.Exporter.Sentinel has the options of the logs; its directory is required.
type Options struct {
	Telemetry telemetry.Options
}

// Check returns all invalid options.
func (o *Options) Check() error {
	var missing error
	if o.Telemetry.Exporter.Sentinel.Dir == "" {
		missing = &collector.OptionError{
			Package: "sentinelcmd", Field: "Sentinel.Dir", Err: errors.New("a directory is required"),
		}
	}
	return errors.Join(missing, o.Telemetry.Check())
}

// gcPercent makes the garbage collector run more often than usual. The rows in memory have few pointers, so a
// collection is cheap, and a sidecar should be small.
const gcPercent = 30

// Run follows the logs until ctx ends or a server fails. The options must be checked.
func (o *Options) Run(ctx context.Context, stdout, stderr io.Writer) error {
	debug.SetGCPercent(gcPercent)
	x := &o.Telemetry.Exporter
	x.Drain = -1 // no calls are counted, so none are in flight
	t, err := telemetry.Start(&o.Telemetry, stderr)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "sentinel    %s\n%s", x.Sentinel.Dir, t.Banner)
	// The context ends after a signal, or when the server of the pages ends. Stop returns the error of the server.
	<-t.Ready(ctx).Done()
	return t.Stop()
}
