package flags

import (
	"os"
	"regexp"
	"strings"
)

// Variable returns the name of a flag's environment variable: WINDOWSTAT_METRIC_LOG_DIR for metric-log.dir.
func Variable(flag string) string {
	return "WINDOWSTAT_" + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(flag))
}

// readVariables sets the flags that were not given as arguments from their environment variables. The library can read
// variables, too, but it splits them at commas, and adds arguments to their values instead of replacing them.
//
// An empty variable sets an option that is a text, because an empty text may be intended. For all other options an
// empty variable has no effect.
func (s Set) readVariables() {
	for _, f := range s {
		// An argument takes precedence over the variable, and replaces it, also for a repeatable flag.
		if f.Value.given {
			continue
		}
		if text, ok := os.LookupEnv(Variable(f.Name)); ok && (text != "" || f.Value.isText) {
			_ = f.Value.Set(text) // returns nil; Check reports errors
		}
	}
}

// flagInMessage matches the name of a flag in a message.
var flagInMessage = regexp.MustCompile(`--[a-z][a-z.-]*[a-z]`)

// WithVariables adds to each flag in a message the name of its variable, if the variable exists. The wrong text may be
// from there, and the user may not know it.
func WithVariables(message string) string {
	return flagInMessage.ReplaceAllStringFunc(message, func(name string) string {
		variable := Variable(strings.TrimLeft(name, "-"))
		if _, ok := os.LookupEnv(variable); ok {
			name += " (" + variable + ")"
		}
		return name
	})
}
