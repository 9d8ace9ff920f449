package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value parses the text of a flag and stores the result in an option. If a text is wrong, Value stores nothing, so the
// option keeps its default, and checks of related options do not report consequences of the error. Value keeps the
// error for [Set.Check], which reports all of them together.
//
// A Value belongs to one run of a command. Create it with [Bool], [Number], [String], [Parsed], [OneOf], [Strings],
// [List] or [Map]. It implements the interface Generic of the library.
type Value struct {
	parse    func(text string) error // parses a text and stores the result
	def      string                  // text of the default, for --help; "" if there is none
	words    []string                // texts that a shell completes; nil if there is no list
	current  func() any              // returns the option, if it is a switch or a number; nil for others
	isSwitch bool                    // the flag needs no text: --follow means --follow=true
	isText   bool                    // the option is the text itself

	// given is true after the first call of Set, even if the text is empty or wrong.
	given bool
	text  string // the last text
	// errs has the errors of all texts of a repeatable flag.
	errs []error
}

// Set parses a text that was given, and may be called repeatedly for a repeatable flag. It always returns nil, because
// the library would stop at the first error. [Set.Check] reports the errors.
func (v *Value) Set(text string) error {
	v.given, v.text = true, text
	if err := v.parse(text); err != nil {
		v.errs = append(v.errs, err)
	}
	return nil
}

// Err returns the errors of the texts that were set.
func (v *Value) Err() error { return errors.Join(v.errs...) }

// String returns the last text, or "" if none was given. The library calls it, also for a nil Value.
func (v *Value) String() string {
	if v == nil || !v.given {
		return ""
	}
	return v.text
}

// IsBoolFlag reports whether the flag is a switch. Package flag, which the library uses, then accepts it without a
// text.
func (v *Value) IsBoolFlag() bool { return v.isSwitch }

// isSet reports whether the flag was given. A switch that was set to false does not count. A wrong text counts, because
// it must be reported.
func (v *Value) isSet() bool {
	return v.given && (!v.isSwitch || v.current() != false || len(v.errs) > 0)
}

// problems returns the errors of a flag that is set. An explicit zero is an error unless allowZero is true: the zero
// value of an option means its default, so the default would silently replace the zero.
func (v *Value) problems(allowZero bool) []error {
	// An empty text is usually a mistake in a script, such as an unset variable in --dir "$DIR".
	if v.text == "" && !allowZero {
		return []error{errors.New("is empty; omit the flag")}
	}
	if len(v.errs) > 0 || allowZero || v.current == nil {
		return v.errs
	}
	// A float64 is absent here: the check of the option decides whether 0 is valid. A share may be 0, and a rate may
	// not.
	switch x := v.current().(type) {
	case int, int64, time.Duration:
		if text := fmt.Sprint(x); text == "0" || text == "0s" {
			return []error{fmt.Errorf("%s would mean the default; omit the flag", text)}
		}
	}
	return nil
}

// Parsed returns the Value of an option that parse makes of a text. text is the default, and "" means no default.
func Parsed[T any](to *T, text string, parse func(string) (T, error)) *Value {
	v := &Value{def: text, parse: store(to, parse)}
	if text != "" {
		_ = v.parse(text) // the default of a command is valid
	}
	return v
}

// store returns a function that parses a text, and stores the result if there is no error.
func store[T any](to *T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		x, err := parse(text)
		if err == nil {
			*to = x
		}
		return err
	}
}

// String returns the Value of an option that is a text. text is the default.
func String(to *string, text string) *Value {
	v := Parsed(to, text, func(s string) (string, error) { return s, nil })
	v.isText = true
	return v
}

// Suggest sets the texts that a shell completes, and returns v. Other texts remain valid.
func (v *Value) Suggest(words ...string) *Value {
	v.words = words
	return v
}

// Bool returns the Value of a switch. Its default is false.
func Bool(to *bool) *Value {
	return &Value{isSwitch: true, current: func() any { return *to }, parse: store(to, func(s string) (bool, error) {
		x, err := strconv.ParseBool(s)
		if err != nil {
			return x, fmt.Errorf("%q is neither true nor false", s)
		}
		return x, nil
	})}
}

// Number returns the Value of a number or a duration with the default n. --help does not show a default of zero,
// because zero means that the option has no effect.
func Number[T int | int64 | float64 | time.Duration](to *T, n T) *Value {
	// Store the default now: the option must be complete even if the flag is absent.
	*to = n
	v := &Value{current: func() any { return *to }, parse: store(to, parseNumber[T])}
	if n != 0 {
		v.def = fmt.Sprint(n)
	}
	return v
}

// parseNumber parses a number or a duration. Its errors name the expected kind of text, with an example.
func parseNumber[T int | int64 | float64 | time.Duration](text string) (n T, err error) {
	var parsed any
	kind := "a whole number, such as 100"
	switch any(n).(type) {
	case int:
		// Atoi accepts decimal numbers only. A text such as 0x10 or 1_000 is an error.
		parsed, err = strconv.Atoi(text)
	case int64:
		parsed, err = strconv.ParseInt(text, 10, 64)
	case float64:
		kind = "a number, such as 0.5"
		parsed, err = strconv.ParseFloat(text, 64)
	case time.Duration:
		kind = "a duration, such as 1m30s"
		parsed, err = time.ParseDuration(text)
	}
	if err != nil {
		return n, fmt.Errorf("%q is not %s", text, kind)
	}
	return parsed.(T), nil
}

// Int parses a whole number, for [List].
func Int(text string) (int, error) { return parseNumber[int](text) }

// OneOf returns the Value of an option with a fixed list of texts. text is the default.
func OneOf(to *string, text string, allowed ...string) *Value {
	return Parsed(to, text, func(s string) (string, error) {
		if !slices.Contains(allowed, s) {
			return s, fmt.Errorf("%q is not one of %s", s, strings.Join(allowed, ", "))
		}
		return s, nil
	}).Suggest(allowed...)
}

// separator separates the texts of a repeatable flag in its environment variable. A comma would be unsuitable, because
// some texts contain commas.
const separator = "\n"

// List returns the Value of a repeatable flag. parse parses each text, and the option gets all results.
func List[T any](to *[]T, parse func(string) (T, error)) *Value {
	return &Value{parse: func(texts string) error {
		var errs []error
		for text := range strings.SplitSeq(texts, separator) {
			x, err := parse(text)
			if err == nil {
				*to = append(*to, x)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}}
}

// Strings returns the Value of a repeatable flag whose texts are stored unchanged.
func Strings(to *[]string) *Value {
	return List(to, func(s string) (string, error) { return s, nil })
}

// Map returns the Value of a repeatable flag with texts NAME=VALUE. The option gets a map from names to values. The
// last value of a repeated name counts.
func Map(to *map[string]string) *Value {
	return &Value{parse: func(texts string) error {
		var errs []error
		for text := range strings.SplitSeq(texts, separator) {
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				// The name may not be empty in most formats, but the package of the option decides this.
				errs = append(errs, fmt.Errorf("%q is not NAME=VALUE", text))
				continue
			}
			if *to == nil {
				*to = map[string]string{}
			}
			(*to)[name] = value
		}
		return errors.Join(errs...)
	}}
}
