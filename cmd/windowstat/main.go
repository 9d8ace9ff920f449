// Command windowstat runs a demo service, a reverse proxy that counts calls, and tools for their statistics.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/collector"
)

func main() {
	// signal.NotifyContext has a cause, which would appear in errors of servers as if these had received the signal.
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // a second signal ends the program immediately
		cancel()
	}()
	// Only net/http writes to this logger: unsolicited responses of servers, which may contain a secret of the request.
	log.SetOutput(io.Discard)
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run runs the command that args select. It returns the exit status: 0 for success, 1 if the command failed, 2 if the
// arguments are wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := flags.Run(ctx, application(stdout, stderr), args)
	if err == nil {
		return 0
	}
	// A command that is interrupted before its end returns an error. A command that serves until then returns none.
	text := strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	for line := range strings.Lines(text) {
		fmt.Fprintf(stderr, "windowstat: %s\n", flags.WithVariables(strings.TrimSuffix(line, "\n")))
	}
	if errors.As(err, new(flags.UsageError)) {
		return 2
	}
	return 1
}

// application returns the root command for one run. Its commands must not be used again, because their flags fill in
// options that belong to them.
//
// A command consists of flags, which fill in the options of a package in internal/, and of a function of the package,
// which does the work. Before the work, the command reports all mistakes in options and arguments together.
func application(stdout, stderr io.Writer) *cli.App {
	return flags.App(&cli.App{
		Name:  "windowstat",
		Usage: "exact statistics of a service for every second",
		Description: `A flag that is not given is read from the environment. The name of its variable is WINDOWSTAT_
and the name of the flag in capitals, with _ for . and -, such as WINDOWSTAT_METRIC_LOG_DIR for --metric-log.dir. The
variable of a repeatable flag has one value per line.`,
		Version: version(),
		Commands: []*cli.Command{
			demoCommand(), proxyCommand(), replayCommand(), otlpCommand(), sentinelCommand(), logCommand(),
			onsetCommand(), backtestCommand(), reportCommand(), verifyCommand(), topCommand(), dashboardsCommand(),
		},
		Reader: os.Stdin, Writer: stdout, ErrWriter: stderr,
	}, versionCommand())
}

func versionCommand() *cli.Command {
	var set flags.Set
	return set.Command(&cli.Command{
		Name:  "version",
		Usage: "print the version",
		Action: func(c *cli.Context) error {
			if err := set.Check(c); err != nil {
				return err
			}
			cli.ShowVersion(c)
			return nil
		},
	})
}

// version returns the version of the module, the commit if the build was in a checkout, and the version of Go.
func version() string {
	text := collector.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				text += " commit " + s.Value
			}
		}
	}
	return text + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}
