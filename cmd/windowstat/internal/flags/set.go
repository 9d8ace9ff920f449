// Package flags ties the flags of a command to the options that they fill in. What packages find wrong with their options is
// reported in the words of the flags, and all mistakes at once, before the command does anything.
package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/collector"
)

// Flag is a flag and what it is to the options of a command, such as
//
//	{Of: "Timeout", Needs: []string{"url"}, Flag: &cli.DurationFlag{Name: "timeout", Destination: &o.Timeout}}
//
// The package of the options says what is wrong with Timeout. What it says is reported as of --timeout, and not at all if the flag has been
// found to be wrong already.
type Flag struct {
	cli.Flag
	// Of are the fields that the flag fills in, separated by spaces, as a [collector.OptionError] names them.
	Of string
	// Needs are flags without which it does nothing, or several of which one is needed: "heal|new". Not are flags that contradict
	// it.
	Needs, Not []string
	// Zero allows 0 and the empty string. For all other flags these would mean the default, which a user who gives them hardly
	// wants.
	Zero bool
}

// Set is the flags of a command.
type Set []Flag

// Flags returns them for a [cli.Command]. Each can be given by its [Variable], too.
func (s Set) Flags() (all []cli.Flag) {
	for _, f := range s {
		fromEnvironment(f.Flag)
		all = append(all, f.Flag)
	}
	return all
}

// Under puts the flags under a heading of --help, unless they have one.
func (s Set) Under(heading string) Set {
	for _, f := range s {
		if x, ok := f.Flag.(cli.CategorizableFlag); ok && x.GetCategory() == "" {
			x.SetCategory(heading)
		}
	}
	return s
}

// Check returns all mistakes in the arguments of a command as one [UsageError]: in single flags, in flags together, and those that
// checks of the options have found. It is called when the flags were read.
func (s Set) Check(c *cli.Command, checks ...error) error {
	var errs []error
	if c.ArgsUsage == "" && c.Args().Present() {
		errs = append(errs, fmt.Errorf("%s takes no arguments, got %q", c.Name, c.Args().Slice()))
	}
	// A switch that is set to false does nothing, so it neither needs nor contradicts anything.
	isSet := func(name string) bool { return c.IsSet(name) && c.Value(name) != false }
	wrong := map[string]bool{}
	for _, f := range s {
		name := f.Names()[0]
		if !isSet(name) {
			continue
		}
		found := len(errs)
		add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(Name(name)+": "+format, args...)) }
		switch v := f.Get().(type) {
		case parsed:
			if v.text == "" && !f.Zero {
				add("is empty; leave it out")
				break
			}
			for _, err := range v.errs {
				add("%w", err)
			}
		case string:
			if v == "" && !f.Zero {
				add("is empty; leave it out")
			}
		// The zero value of an option is its default, so a zero that was given would be replaced in silence.
		case int, int64, time.Duration:
			if text := fmt.Sprint(v); (text == "0" || text == "0s") && !f.Zero {
				add("%s is none; leave it out", text)
			}
		}
		for _, needed := range f.Needs {
			if any := strings.Split(needed, "|"); !slices.ContainsFunc(any, isSet) {
				add("needs %s", Name(strings.Join(any, " or --")))
				break
			}
		}
		if i := slices.IndexFunc(f.Not, isSet); i >= 0 {
			add("not with %s", Name(f.Not[i]))
		}
		wrong[name] = len(errs) > found
	}
	for _, e := range collector.OptionErrors(errors.Join(checks...)) {
		if f := s.of(e.Field); f == nil || !wrong[f.Names()[0]] { // its value has been reported
			errs = append(errs, named(f, e))
		}
	}
	return Usage(errors.Join(errs...))
}

// Action is the action of a command whose flags fill in options: these are checked, and the command runs. The errors of both name fields.
func (s Set) Action(check func() error, run func(ctx context.Context, stdout, stderr io.Writer) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		if err := s.Check(c, check()); err != nil {
			return err
		}
		return s.Named(run(ctx, c.Root().Writer, c.Root().ErrWriter))
	}
}

// Named returns an error with flags in the place of the fields of options.
func (s Set) Named(err error) error {
	var errs []error
	for _, e := range collector.OptionErrors(err) {
		errs = append(errs, named(s.of(e.Field), e))
	}
	return errors.Join(errs...)
}

// of finds the flag of a field; nil if there is none.
func (s Set) of(field string) *Flag {
	i := slices.IndexFunc(s, func(f Flag) bool { return field != "" && slices.Contains(strings.Fields(f.Of), field) })
	if i < 0 {
		return nil
	}
	return &s[i]
}

func named(f *Flag, e *collector.OptionError) error {
	if f == nil && e.Field == "" {
		return e.Err
	}
	name := e.Field
	if f != nil {
		name = Name(f.Names()[0])
	}
	return fmt.Errorf("%s: %w", name, e.Err)
}

// Name returns a flag as it is given.
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

// Usage returns err as a [UsageError]; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// Unparsable returns the error for a variable whose value is not one of its flag, which names both, as a [UsageError]; any other
// error as it is.
func Unparsable(err error) error {
	// The library has no type for this error, and its text names flag and variable.
	if err != nil && strings.HasPrefix(err.Error(), "could not parse ") && strings.Contains(err.Error(), "from environment variable") {
		return Usage(err)
	}
	return err
}

// Unknown returns the error for a flag or a command that does not exist, with the one that is meant, perhaps.
func Unknown(err error, flags []cli.Flag) error {
	name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok {
		return Usage(err)
	}
	return Usage(fmt.Errorf("there is no flag %s; did you mean %s?", Name(name), cmp.Or(cli.SuggestFlag(flags, name, false), "--help")))
}

// Separator stands between the values of a repeatable flag in its variable: a comma may be part of a value.
const Separator = "\n"

// Variable returns the name of the environment variable that a flag is taken from where it is not given.
func Variable(flag string) string {
	return "WINDOWSTAT_" + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(flag))
}

// fromEnvironment lets a flag be taken from its variable. All flags of package cli have Sources, each in a struct of its own type.
func fromEnvironment(f cli.Flag) {
	sources := cli.EnvVars(Variable(f.Names()[0]))
	reflect.ValueOf(f).Elem().FieldByName("Sources").Set(reflect.ValueOf(sources))
}

// flag is one within a message.
var flag = regexp.MustCompile(`--[a-z][a-z.-]*[a-z]`)

// WithVariables adds to the flags in a message the variables that they may have come from: those that the environment has.
func WithVariables(message string) string {
	return flag.ReplaceAllStringFunc(message, func(name string) string {
		variable := Variable(strings.TrimLeft(name, "-"))
		if _, ok := os.LookupEnv(variable); ok {
			name += " (" + variable + ")"
		}
		return name
	})
}
