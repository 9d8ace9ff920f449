package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Command completes the command c and returns it. It adds the flags of s, --help, the text of the help, a function that
// reads variables, and a function that reports unknown flags. A command and its flags serve one run, because their
// values keep the arguments of the run.
func (s Set) Command(c *cli.Command) *cli.Command {
	for _, f := range s {
		// With a GenericFlag, the library leaves the parsing of the text to [Value.Set].
		c.Flags = append(c.Flags, &cli.GenericFlag{
			Name: f.Name, Value: f.Value, Category: f.Category,
			Usage: f.Usage, DefaultText: cmp.Or(f.Default, f.Value.def),
		})
	}
	c.Flags = append(c.Flags, helpFlag())
	c.HideHelp = true // the help flag of the library is a global variable, and each run would write to it
	c.CustomHelpTemplate = escape(commandHelp(c))
	// The library calls Before after it has parsed the arguments, so variables fill in only flags that are absent.
	c.Before = func(*cli.Context) error {
		s.readVariables()
		return nil
	}
	c.OnUsageError = usageError(c.Flags)
	return c
}

// App completes the root command and returns it. It adds the flags --help and --version and the commands help and
// completion. version is the command that --version runs.
func App(app *cli.App, version *cli.Command) *cli.App {
	app.Commands = append(app.Commands, version, completionCommand(app), helpCommand(app))
	app.Flags = []cli.Flag{
		helpFlag(), &cli.BoolFlag{Name: version.Name, Aliases: []string{"v"}, Usage: version.Usage},
	}
	app.HideHelp, app.HideVersion = true, true // global variables of the library, too
	app.CustomAppHelpTemplate = escape(appHelp(app))
	app.OnUsageError = usageError(app.Flags)
	app.ExitErrHandler = func(*cli.Context, error) {} // the library's handler would end the process
	// The library runs this action without a command, and with a command that does not exist.
	app.Action = func(c *cli.Context) error {
		if name := c.Args().First(); name != "" {
			return unknownCommand(app, name)
		}
		return cli.ShowAppHelp(c)
	}
	return app
}

// Run runs the command that args select. args has the name of the program and its arguments. Flags may be before and
// after positional arguments. A shell that completes a line runs the program with a special last argument; then Run
// prints the completions instead.
func Run(ctx context.Context, app *cli.App, args []string) error {
	if last := len(args) - 1; args[last] == completionFlag {
		return complete(app, args[1:last])
	}
	return app.RunContext(ctx, arrange(app, args))
}

// helpFlag returns the flag --help. The library prints the help of the command that has the flag.
func helpFlag() cli.Flag {
	return &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "print the help"}
}

// helpCommand returns the command help, which prints the list of commands or the help of one of them.
func helpCommand(app *cli.App) *cli.Command {
	return Set{}.Command(&cli.Command{
		Name: "help", Aliases: []string{"h"}, Usage: "print the commands, or the help of one", ArgsUsage: "[COMMAND]",
		Action: func(c *cli.Context) error {
			switch name := c.Args().First(); {
			case name == "":
				return cli.ShowAppHelp(c)
			case app.Command(name) == nil:
				return unknownCommand(app, name)
			default:
				return cli.ShowCommandHelp(c, name)
			}
		},
	})
}

// arrange returns the arguments in the order that the library can parse: the command, its flags, "--", and its
// positional arguments. The library stops parsing flags at the first other argument, so it would take the flag in "top
// host:9719 --once" for an address. arrange also replaces --help and --version before the command by the commands with
// these names.
//
// For example, arrange returns "top --once -- host:9719" for "top host:9719 --once". It leaves an unknown command
// unchanged, because the action of the root command reports it.
func arrange(app *cli.App, args []string) []string {
	for i, arg := range args[1:] {
		if !strings.HasPrefix(arg, "-") {
			c := app.Command(arg)
			if c == nil {
				return args
			}
			return append(slices.Clone(args[:i+2]), arrangeFlags(c.Flags, args[i+2:])...)
		}
		switch strings.TrimLeft(arg, "-") {
		case "help", "h":
			return append([]string{args[0], "help", "--"}, args[i+2:]...)
		case "version", "v":
			return []string{args[0], "version"}
		}
	}
	return args
}

// arrangeFlags returns the arguments of a command with its flags first, then "--", then all others. After an invalid
// flag it returns early, because the library reports the flag.
func arrangeFlags(flags []cli.Flag, args []string) []string {
	var first, rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		// After "--" every argument is positional, even if it begins with a dash.
		if arg == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			rest = append(rest, arg)
			continue
		}
		first = append(first, arg)
		f := flagOf(flags, arg)
		switch {
		case f == nil:
			return first // the library reports it
		case f.Names()[0] == "help":
			return []string{arg} // the library would treat the next argument as a subcommand
		// The next argument is the text of the flag, even if it begins with a dash, as in --from -15m.
		case takesText(f) && !strings.Contains(arg, "="):
			if i++; i == len(args) {
				return first // the library reports that the text is missing
			}
			first = append(first, args[i])
		}
	}
	return append(append(first, "--"), rest...)
}

// flagOf returns the flag that an argument such as --name, -name or --name=text sets; nil if there is no such flag.
func flagOf(flags []cli.Flag, arg string) cli.Flag {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

// valueOf returns the value of a flag. --help and --version have no Value, and the result is nil.
func valueOf(f cli.Flag) *Value {
	// All GenericFlags are from Set.Command, so they have a *Value.
	if g, ok := f.(*cli.GenericFlag); ok {
		return g.Value.(*Value)
	}
	return nil
}

// takesText reports whether a text must follow the flag. A switch takes no text.
func takesText(f cli.Flag) bool {
	v := valueOf(f)
	return v != nil && !v.isSwitch
}

// usageError returns a function that rewrites two errors of the library: about a flag that does not exist, and about a
// flag without its text. The new errors have two dashes before the name of the flag, as in the documentation, and the
// first one suggests an existing flag.
func usageError(flags []cli.Flag) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		// Package flag has no types for these errors, so the text is compared. A test would notice a change of the
		// text.
		if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
			suggestion := cmp.Or(cli.SuggestFlag(flags, name, true), "--help")
			err = fmt.Errorf("there is no flag %s; did you mean %s?", Name(name), suggestion)
		} else if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
			err = fmt.Errorf("flag needs an argument: %s", Name(name))
		}
		return Usage(err)
	}
}

// unknownCommand returns the error for a command that does not exist. It suggests an existing command with a similar
// name.
func unknownCommand(app *cli.App, name string) error {
	// The library returns a question, such as: Did you mean "proxy"?
	suggestion := strings.TrimSuffix(strings.TrimPrefix(cli.SuggestCommand(app.Commands, name), `Did you mean "`), `"?`)
	text := fmt.Sprintf("there is no command %q", name)
	if suggestion != "" {
		text += fmt.Sprintf("; did you mean %s?", suggestion)
	}
	return Usage(errors.New(text + " See windowstat --help"))
}
