// Command windowstat runs the demo service, a reverse proxy that counts, and the tools around them.
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

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/dashboards"
)

func main() {
	// Not signal.NotifyContext: its cause would be in the texts of errors, as if servers had been sent the signal.
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // a second signal ends the program at once
		cancel()
	}()
	// Only net/http writes there: what a server sent without being asked, which may be a secret that was sent to it.
	log.SetOutput(io.Discard)
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// commands are made anew for each run: the options that their flags fill in are theirs. A command is its flags, which fill in the options of
// a package in internal/, and a function there that runs it. What is wrong with the options and the arguments is said all at once, before
// anything is done.
func commands() []*cli.Command {
	return []*cli.Command{demoCommand(), proxyCommand(), replayCommand(), otlpCommand(), logCommand(), reportCommand(), verifyCommand(), topCommand(), dashboardsCommand(), versionCommand()}
}

// run is main with everything given. It returns the exit status: 0, 1 if the command failed, 2 if its arguments are wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := &cli.Command{
		Name:  "windowstat",
		Usage: "exact, second-by-second statistics of what a service does",
		Description: "A flag that is not given is taken from the environment: WINDOWSTAT_ and its name in capitals, with _ for . and -, such as\n" +
			"WINDOWSTAT_METRIC_LOG_DIR for --metric-log.dir. A repeatable flag has a value in each line of its variable.",
		Commands:                        commands(),
		Writer:                          stdout,
		ErrWriter:                       stderr,
		Version:                         version(),
		EnableShellCompletion:           true,
		ExitErrHandler:                  func(context.Context, *cli.Command, error) {}, // the status is decided below
		ConfigureShellCompletionCommand: func(c *cli.Command) { c.Hidden = false },
		Action: func(_ context.Context, c *cli.Command) error {
			if name := c.Args().First(); name != "" {
				return flags.Usage(fmt.Errorf("there is no command %q; did you mean %s? See windowstat --help", name, cli.SuggestCommand(c.Commands, name)))
			}
			return cli.ShowRootCommandHelp(c)
		},
	}
	for _, c := range append(app.Commands, app) {
		c.HideHelpCommand = c != app // a file or a host may have the name help
		c.SliceFlagSeparator = flags.Separator
		c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error { return flags.Unknown(err, c.Flags) }
	}
	err := flags.Unparsable(app.Run(ctx, args))
	if err == nil {
		return 0
	}
	// A command that was interrupted before it was done says so. Those that serve until then return no error.
	text := strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	for line := range strings.Lines(text) {
		fmt.Fprintf(stderr, "windowstat: %s\n", flags.WithVariables(strings.TrimSuffix(line, "\n")))
	}
	if errors.As(err, new(flags.UsageError)) {
		return 2
	}
	return 1
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Action: func(_ context.Context, c *cli.Command) error {
			if err := (flags.Set{}).Check(c); err != nil {
				return err
			}
			cli.ShowVersion(c.Root())
			return nil
		},
	}
}

// version is that of the module, the commit if it was built in a checkout, and Go's.
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

func dashboardsCommand() *cli.Command {
	var out string
	var overwrite bool
	set := flags.Set{
		{Flag: &cli.StringFlag{Name: "out", Destination: &out, Usage: "`DIRECTORY` to write to, made if it does not exist (required)"}},
		{Flag: &cli.BoolFlag{Name: "overwrite", Destination: &overwrite, Usage: "replace files that have other contents"}},
	}
	return &cli.Command{
		Name:  "dashboards",
		Usage: "write Grafana dashboards, rules and the files to set them up into a directory",
		Description: "The directory gets three dashboards, recording rules and alerts with their tests and a runbook, provisioning\n" +
			"files and a compose file; README.md there says how to use them. If a file exists already with other contents,\n" +
			"nothing is written, unless --overwrite is given.",
		Flags: set.Flags(),
		Action: func(_ context.Context, c *cli.Command) error {
			var err error
			if out == "" {
				err = errors.New("--out: a directory is needed")
			}
			if err := set.Check(c, err); err != nil {
				return err
			}
			if err := dashboards.Write(out, overwrite); err != nil {
				if errors.Is(err, dashboards.ErrChanged) {
					err = errors.Join(err, errors.New("nothing was written; --overwrite replaces what is there"))
				}
				return err
			}
			_, err = fmt.Fprintln(c.Root().Writer, "dashboards, rules and their set-up are in", out)
			return err
		},
	}
}
