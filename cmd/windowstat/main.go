// Command windowstat runs the demo service, a reverse proxy that counts, and the tools around them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once
	}()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

func commands() []*cli.Command {
	return []*cli.Command{demoCommand(), proxyCommand(), replayCommand(), logCommand(), verifyCommand(), topCommand(), dashboardsCommand(), versionCommand()}
}

// run is main with everything given; it returns the exit status: 0, 1 if the command failed, 2 if its arguments are
// wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := &cli.App{
		Name: "windowstat",
		// A comma may stand in a value.
		DisableSliceFlagSeparator: true,
		Usage:                     "exact, second-by-second statistics of what a service does",
		Commands:                  commands(),
		Writer:                    stdout,
		ErrWriter:                 stderr,
		Version:                   version(),
		EnableBashCompletion:      true,
		ExitErrHandler:            func(*cli.Context, error) {}, // the status is decided below
		OnUsageError:              usageError,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usage(fmt.Errorf("there is no command %q; see windowstat --help", c.Args().First()))
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, command := range app.Commands {
		command.OnUsageError = usageError
	}
	err := app.RunContext(ctx, args)
	if err == nil {
		return 0
	}
	// What was told to end before it was done says so. Commands that serve until then return no error.
	text := strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	for line := range strings.Lines(text) {
		fmt.Fprintf(stderr, "windowstat: %s\n", strings.TrimSuffix(line, "\n"))
	}
	if errors.As(err, new(errUsage)) {
		return 2
	}
	return 1
}

// errUsage is a mistake in the arguments.
type errUsage struct{ error }

func (e errUsage) Unwrap() error { return e.error }

// usage marks an error as a mistake in the arguments; nil stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return errUsage{err}
}

func usageError(_ *cli.Context, err error, _ bool) error { return usage(err) }

// flagErrors collects what is wrong with flags.
type flagErrors []error

// add adds the mistake in a flag, if it is one.
func (e *flagErrors) add(flag string, err error) {
	if err != nil {
		*e = append(*e, fmt.Errorf("%s: %w", dashed(flag), err))
	}
}

// dashed is a flag as it is given.
func dashed(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

// noArguments is the error for arguments after the flags of a command that takes none.
func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return fmt.Errorf("%s takes no arguments, got %q", c.Command.Name, c.Args().Slice())
	}
	return nil
}
