// Command windowstat runs a demo service, a reverse proxy that counts calls, and tools for their statistics.
//
// Each command has a file here, which describes its flags and its help, and a package that does the work:
//
//	demo                             internal/demo          a service under load, to try windowstat
//	proxy                            internal/proxy         counts the calls through a reverse proxy
//	replay                           internal/replay        counts the calls in access logs
//	otlp                             internal/otlp          counts OpenTelemetry spans as calls
//	sentinel                         internal/sentinelcmd   exports the metric logs of Alibaba Sentinel
//	log                              internal/logquery      prints rows of the metric log
//	onset, backtest, report          internal/incident      investigate an incident with the metric log
//	verify                           internal/verification  compares a database with the metric log
//	top                              internal/top           shows the resources of a service in the terminal
//	dashboards                       dashboards             writes dashboards, rules and their setup
//
// The commands that serve share package internal/telemetry: the exporters, the pages, and their flags. Package
// internal/flags connects flags to the options of the packages.
//
// An action does three things: it completes the options, it calls [flags.Set.Check] with the errors of the options, and
// it calls a function of the package. All work is in the packages, and tests can call the packages without a command
// line.
//
// The streams have fixed uses. Results of a command go to stdout. Log messages, hints and errors go to stderr, so a
// pipe gets results only. The exit status is 0 for success, 1 for a failure, and 2 for wrong arguments.
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
	// signal.NotifyContext also stores the signal as the cause of the context. Servers would report it as the reason of
	// their errors, as if a client had sent the signal.
	ctx, cancel := context.WithCancel(context.Background())
	// The buffer keeps a signal that arrives before the goroutine receives.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // a second signal ends the program immediately
		cancel()
	}()
	// The command does not use this logger, but net/http writes to it when a server sends an unsolicited response. Such
	// a response may contain a secret of the request, so it is discarded.
	log.SetOutput(io.Discard)
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run runs the command that args select, and prints its error. It returns the exit status: 0 for success, 1 if the
// command failed, 2 if the arguments are wrong. An error of several lines is printed with a prefix on each line.
//
// Tests call run instead of main: it uses no global variables except the environment, so several runs can be
// concurrent.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := flags.Run(ctx, application(stdout, stderr), args)
	if err == nil {
		return 0
	}
	// A command that is interrupted before its end returns the error of its context. A command that serves until the
	// signal returns nil.
	text := strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	// An error joins one line for each wrong flag. The prefix on each line shows a user of a log which program wrote
	// it.
	for line := range strings.Lines(text) {
		fmt.Fprintf(stderr, "windowstat: %s\n", flags.WithVariables(strings.TrimSuffix(line, "\n")))
	}
	if errors.As(err, new(flags.UsageError)) {
		return 2
	}
	return 1
}

// application returns the root command for one run. Each command consists of two parts. Its flags fill in the options
// of a package, and its action calls a function of the package, which does the work. Before the work, the action
// reports all errors in options and arguments together.
//
// The caller must run the application at most once, because the flags keep the values of their run.
func application(stdout, stderr io.Writer) *cli.App {
	// Reader is the source of "replay -". The help goes to Writer, even if the command line has no command.
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

// versionCommand is windowstat version. --version runs it, too.
func versionCommand() *cli.Command {
	// The set is empty, because the command has no options. Its Check refuses arguments.
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
//
// For example: 0.9.0 commit 1b2c3d4 go1.25 linux/amd64. The line is the complete description of a binary in a bug
// report.
func version() string {
	text := collector.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			// A binary that go install built from a module has no revision.
			if s.Key == "vcs.revision" {
				text += " commit " + s.Value
			}
		}
	}
	return text + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}
