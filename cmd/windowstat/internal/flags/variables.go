package flags

import (
	"os"
	"regexp"
	"strings"
)

// Variable returns the name of the environment variable of a flag.
func Variable(flag string) string {
	return "WINDOWSTAT_" + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(flag))
}

// readVariables sets the flags that were not given as arguments from their variables. The library could read variables,
// too, but it splits them at commas, and appends arguments to their values.
//
// A text may be empty on purpose, so an empty variable counts for a flag that is a text. For other flags an empty
// variable is the same as none.
func (s Set) readVariables() {
	for _, f := range s {
		if f.Value.given {
			continue
		}
		if text, ok := os.LookupEnv(Variable(f.Name)); ok && (text != "" || f.Value.isText) {
			_ = f.Value.Set(text) // Check reports errors
		}
	}
}

// flagInMessage matches the name of a flag in a message.
var flagInMessage = regexp.MustCompile(`--[a-z][a-z.-]*[a-z]`)

// WithVariables adds to each flag in a message its variable, if the environment has it: the value may come from there.
func WithVariables(message string) string {
	return flagInMessage.ReplaceAllStringFunc(message, func(name string) string {
		variable := Variable(strings.TrimLeft(name, "-"))
		if _, ok := os.LookupEnv(variable); ok {
			name += " (" + variable + ")"
		}
		return name
	})
}
