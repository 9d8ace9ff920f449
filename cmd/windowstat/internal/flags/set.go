// Package flags connects the flags of a command to the options that they fill in. It reports mistakes in options by the
// names of the flags, and all mistakes together, before the command does anything.
//
// Only this package and the main package import the library github.com/urfave/cli/v2. Other packages describe their
// flags with [Set] and [Value]. The library parses arguments and selects the command. This package adds flags after
// positional arguments, variables with several values, completion with descriptions, and help that fits 80 columns.
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

// Flag describes a flag, its option, and its relation to other flags, such as
//
//	{Name: "timeout", Value: flags.Number(&o.Timeout, time.Second), Of: "Timeout", Needs: []string{"url"}, …}
//
// The package of the options checks Timeout. Its error is reported as an error of --timeout, unless the text of the
// flag was wrong already.
type Flag struct {
	Name  string
	Value *Value
	// Usage is a noun phrase or an imperative. A word in backquotes is the name of the text in --help.
	Usage string
	// Default replaces the default of Value in --help.
	Default string
	// Category is the heading of the flag in --help. Flags without a category come first.
	Category string
	// Of has the fields that the flag fills in, separated by spaces, as a [collector.OptionError] names them.
	Of string
	// Needs has flags that this flag requires. "heal|new" requires one of several. Not has flags that contradict it.
	Needs, Not []string
	// Zero allows 0 and the empty text. In all other flags both mean the default, so they are probably mistakes.
	Zero bool
}

// Set describes the flags of a command.
type Set []Flag

// Under sets the category of the flags without a category, and returns s.
func (s Set) Under(category string) Set {
	for i := range s {
		if s[i].Category == "" {
			s[i].Category = category
		}
	}
	return s
}

// IsSet reports whether the flag was given, as an argument or as a variable, and has an effect.
func (s Set) IsSet(name string) bool {
	i := slices.IndexFunc(s, func(f Flag) bool { return f.Name == name })
	return i >= 0 && s[i].Value.isSet()
}

// Check returns all mistakes in the arguments of a command as one [UsageError]: mistakes in one flag, contradictions
// between flags, and the errors that checks of the options returned. Actions call it first.
func (s Set) Check(c *cli.Context, checks ...error) error {
	var errs []error
	if c.Command.ArgsUsage == "" && c.Args().Present() {
		errs = append(errs, fmt.Errorf("%s takes no arguments, got %q", c.Command.Name, c.Args().Slice()))
	}
	wrong := map[string]bool{}
	for _, f := range s {
		if !f.Value.isSet() {
			continue
		}
		mistakes := f.Value.mistakes(f.Zero)
		for _, needed := range f.Needs {
			if names := strings.Split(needed, "|"); !slices.ContainsFunc(names, s.IsSet) {
				mistakes = append(mistakes, fmt.Errorf("needs %s", Name(strings.Join(names, " or --"))))
				break
			}
		}
		if i := slices.IndexFunc(f.Not, s.IsSet); i >= 0 {
			mistakes = append(mistakes, fmt.Errorf("not with %s", Name(f.Not[i])))
		}
		for _, err := range mistakes {
			errs = append(errs, fmt.Errorf("%s: %w", Name(f.Name), err))
		}
		wrong[f.Name] = len(mistakes) > 0
	}
	for _, e := range collector.OptionErrors(errors.Join(checks...)) {
		if f := s.of(e.Field); f == nil || !wrong[f.Name] { // otherwise an error of the flag is reported already
			errs = append(errs, named(f, e))
		}
	}
	return Usage(errors.Join(errs...))
}

// Action returns the action of a command whose flags fill in options. It checks the options and runs the command.
// Errors of both have the names of flags instead of fields.
func (s Set) Action(
	check func() error, run func(ctx context.Context, stdout, stderr io.Writer) error,
) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := s.Check(c, check()); err != nil {
			return err
		}
		return s.Named(run(c.Context, c.App.Writer, c.App.ErrWriter))
	}
}

// Named returns err with the names of flags instead of the fields of options.
func (s Set) Named(err error) error {
	var errs []error
	for _, e := range collector.OptionErrors(err) {
		errs = append(errs, named(s.of(e.Field), e))
	}
	return errors.Join(errs...)
}

// of returns the flag that fills in a field, or nil.
func (s Set) of(field string) *Flag {
	i := slices.IndexFunc(s, func(f Flag) bool {
		return field != "" && slices.Contains(strings.Fields(f.Of), field)
	})
	if i < 0 {
		return nil
	}
	return &s[i]
}

// named returns the error of an option with the name of its flag; f may be nil.
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

// Name returns a flag with its dashes.
func Name(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

// UsageError is a mistake in the arguments of a command.
type UsageError struct{ error }

// Unwrap returns the mistake.
func (e UsageError) Unwrap() error { return e.error }

// Usage returns err as a [UsageError], or nil if err is nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}
