// Package flags connects the flags of a command to the options that they set. It reports errors in options by the names
// of the flags, and all errors together, before the command does anything.
//
// Only this package and the main package import the library github.com/urfave/cli/v2. Other packages describe their
// flags with [Set] and [Value]. The library parses the arguments and selects the command. The library lacks these
// features, which this package adds:
//
//   - flags after positional arguments (see arrange);
//   - variables with several values, one per line (see readVariables);
//   - errors in options with the names of flags, and conditions between flags ([Set.Check]);
//   - completion with descriptions, for bash, zsh and fish;
//   - help that fits 80 columns;
//   - no global variables, so that tests can run commands concurrently.
package flags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/collector"
)

// Flag describes a flag, the option that it sets, and conditions on other flags:
//
//	{Name: "timeout", Value: flags.Number(&o.Timeout, time.Second), Of: "Timeout", Needs: []string{"url"}, …}
//
// The package of the options checks Timeout. [Set.Check] reports an error of this check as an error of --timeout,
// unless it has already reported that the text of the flag is wrong.
type Flag struct {
	// Name is the name without dashes. A name of one letter has one dash, all others have two.
	Name string
	// Value parses the text of the flag into a field of the options.
	Value *Value
	// Usage is a noun phrase or an imperative. A word in backquotes is the name of the flag's text in --help.
	Usage string
	// Default replaces the default of Value in --help.
	Default string
	// Category is the heading of the flag in --help. Flags without a category come first.
	Category string
	// Of has the fields that the flag sets, separated by spaces, with the names that a [collector.OptionError] uses.
	Of string
	// Needs has the flags that this flag requires. An element such as "heal|new" requires one of two flags. Not has the
	// flags that exclude this flag.
	Needs, Not []string
	// Zero allows the number 0 and the empty text. In the options of most packages both mean the default. Without Zero
	// they are errors, because a user who writes --interval 0 does not expect the default.
	Zero bool
}

// Set describes the flags of a command, in the order of the help.
type Set []Flag

// Under sets the category of all flags that have no category, and returns s.
func (s Set) Under(category string) Set {
	for i := range s {
		if s[i].Category == "" {
			s[i].Category = category
		}
	}
	return s
}

// IsSet reports whether a flag was given, as an argument or as a variable. A switch that was set to false does not
// count.
func (s Set) IsSet(name string) bool {
	i := slices.IndexFunc(s, func(f Flag) bool { return f.Name == name })
	return i >= 0 && s[i].Value.isSet()
}

// Check returns all errors in the arguments of a command as one [UsageError]. The error joins wrong texts, unmet
// conditions between flags, unexpected arguments, and checks, the errors that the packages of the options have found.
// An action must call Check before it does anything else.
func (s Set) Check(c *cli.Context, checks ...error) error {
	var errs []error
	if c.Command.ArgsUsage == "" && c.Args().Present() {
		errs = append(errs, fmt.Errorf("%s takes no arguments, got %q", c.Command.Name, c.Args().Slice()))
	}
	// wrong has the flags with an error that this function has found. checks may have errors with the same cause, which
	// are omitted.
	wrong := map[string]bool{}
	for _, f := range s {
		// A flag that was not given has a valid default, and its conditions do not apply.
		if !f.Value.isSet() {
			continue
		}
		problems := f.Value.problems(f.Zero)
		// One missing flag is enough for the message, because the flags in Needs often need each other.
		for _, needed := range f.Needs {
			if names := strings.Split(needed, "|"); !slices.ContainsFunc(names, s.IsSet) {
				problems = append(problems, fmt.Errorf("needs %s", Name(strings.Join(names, " or --"))))
				break
			}
		}
		if i := slices.IndexFunc(f.Not, s.IsSet); i >= 0 {
			problems = append(problems, fmt.Errorf("cannot be combined with %s", Name(f.Not[i])))
		}
		for _, err := range problems {
			errs = append(errs, fmt.Errorf("%s: %w", Name(f.Name), err))
		}
		wrong[f.Name] = len(problems) > 0
	}
	for _, e := range collector.OptionErrors(errors.Join(checks...)) {
		if f := s.of(e.Field); f == nil || !wrong[f.Name] { // report one error per flag
			errs = append(errs, named(f, e))
		}
	}
	return Usage(errors.Join(errs...))
}

// Action returns the action of a command that only checks and runs: check checks the options, and run does the work.
// Errors of both have the names of flags instead of the names of fields.
func (s Set) Action(
	check func() error, run func(ctx context.Context, stdout, stderr io.Writer) error,
) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := s.Check(c, check()); err != nil {
			return err
		}
		// run may find errors that check cannot find, such as a directory without permission.
		return s.Named(run(c.Context, c.App.Writer, c.App.ErrWriter))
	}
}

// Named returns err with the names of flags instead of the names of fields.
func (s Set) Named(err error) error {
	var errs []error
	for _, e := range collector.OptionErrors(err) {
		errs = append(errs, named(s.of(e.Field), e))
	}
	return errors.Join(errs...)
}

// of returns the flag that sets a field; nil if no flag sets it.
func (s Set) of(field string) *Flag {
	i := slices.IndexFunc(s, func(f Flag) bool {
		// An error without a field belongs to no flag, even if a flag has no Of.
		return field != "" && slices.Contains(strings.Fields(f.Of), field)
	})
	if i < 0 {
		return nil
	}
	return &s[i]
}

// named returns the error of an option with the name of its flag f. If f is nil, it keeps the name of the field.
func named(f *Flag, e *collector.OptionError) error {
	if f == nil && e.Field == "" {
		return e.Err
	}
	name := e.Field
	if f != nil {
		name = Name(f.Name)
	}
	return fmt.Errorf("%s: %w", name, e.Err)
}

// Name returns the name of a flag with its dashes: one for a single letter, otherwise two.
func Name(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

// UsageError is an error in the arguments of a command. The exit status of the command is then 2 instead of 1.
type UsageError struct{ error }

// Unwrap returns the error without its type.
func (e UsageError) Unwrap() error { return e.error }

// Usage returns err as a [UsageError], or nil if err is nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}
