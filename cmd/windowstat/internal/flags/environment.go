package flags

import (
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/urfave/cli/v3"
)

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
