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

// Command adds to c the flags of s, --help, and the text of its help, and returns c. A command and its flags serve one
// run, because their values keep the arguments of the run.
func (s Set) Command(c *cli.Command) *cli.Command {
	for _, f := range s {
		c.Flags = append(c.Flags, &cli.GenericFlag{
			Name: f.Name, Value: f.Value, Category: f.Category,
			Usage: f.Usage, DefaultText: cmp.Or(f.Default, f.Value.def),
		})
	}
	c.Flags = append(c.Flags, helpFlag())
	c.HideHelp = true // the library's help flag is a global that each run writes to
	c.CustomHelpTemplate = escape(commandHelp(c))
	c.Before = func(*cli.Context) error {
		s.readVariables()
		return nil
	}
	c.OnUsageError = usageError(c.Flags)
	return c
}

// App completes the root command with the flags --help and --version and the commands help and completion, and returns
// it. version is the command that --version runs.
func App(app *cli.App, version *cli.Command) *cli.App {
	app.Commands = append(app.Commands, version, completionCommand(app), helpCommand(app))
	app.Flags = []cli.Flag{
		helpFlag(), &cli.BoolFlag{Name: version.Name, Aliases: []string{"v"}, Usage: version.Usage},
	}
	app.HideHelp, app.HideVersion = true, true // these flags of the library are globals, too
	app.CustomAppHelpTemplate = escape(appHelp(app))
	app.OnUsageError = usageError(app.Flags)
	app.ExitErrHandler = func(*cli.Context, error) {} // the default ends the process
	app.Action = func(c *cli.Context) error {
		if name := c.Args().First(); name != "" {
			return unknownCommand(app, name)
		}
		return cli.ShowAppHelp(c)
	}
	return app
}

// Run runs the command that args select, or prints completions if the last argument asks for them. Flags may follow
// positional arguments.
func Run(ctx context.Context, app *cli.App, args []string) error {
	if last := len(args) - 1; args[last] == completionFlag {
		return complete(app, args[1:last])
	}
	return app.RunContext(ctx, arrange(app, args))
}

func helpFlag() cli.Flag {
	return &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "print the help"}
}

// helpCommand returns the command that prints the help of another one.
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

// arrange moves the flags of the chosen command before its positional arguments, because the library stops to parse
// flags at the first argument that is not one. It replaces --help and --version before a command by the commands of
// these names.
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

// arrangeFlags returns the arguments of a command with its flags before all others.
func arrangeFlags(flags []cli.Flag, args []string) []string {
	var first, rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
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
			return []string{arg} // the library would take an argument for the name of a subcommand
		case takesText(f) && !strings.Contains(arg, "="):
			if i++; i == len(args) {
				return first // the library reports that the text is missing
			}
			first = append(first, args[i])
		}
	}
	return append(append(first, "--"), rest...)
}

// flagOf returns the flag of an argument such as --name, -name or --name=text, or nil if the flag does not exist.
func flagOf(flags []cli.Flag, arg string) cli.Flag {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

// valueOf returns the value of a flag; nil for --help and --version.
func valueOf(f cli.Flag) *Value {
	if g, ok := f.(*cli.GenericFlag); ok {
		return g.Value.(*Value)
	}
	return nil
}

// takesText reports whether a flag needs a text, and so is not a switch.
func takesText(f cli.Flag) bool {
	v := valueOf(f)
	return v != nil && !v.isSwitch
}

// usageError returns a function that rewrites the library's errors about arguments: with two dashes before the name of
// a flag, and a suggestion for a flag that does not exist.
func usageError(flags []cli.Flag) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
			suggestion := cmp.Or(cli.SuggestFlag(flags, name, true), "--help")
			err = fmt.Errorf("there is no flag %s; did you mean %s?", Name(name), suggestion)
		} else if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
			err = fmt.Errorf("flag needs an argument: %s", Name(name))
		}
		return Usage(err)
	}
}

// unknownCommand returns the error for a command that does not exist, with a suggestion.
func unknownCommand(app *cli.App, name string) error {
	// The library returns a question.
	suggestion := strings.TrimSuffix(strings.TrimPrefix(cli.SuggestCommand(app.Commands, name), `Did you mean "`), `"?`)
	text := fmt.Sprintf("there is no command %q", name)
	if suggestion != "" {
		text += fmt.Sprintf("; did you mean %s?", suggestion)
	}
	return Usage(errors.New(text + " See windowstat --help"))
}
