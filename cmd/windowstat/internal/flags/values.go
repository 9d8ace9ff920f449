package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value parses the text of a flag and stores the result in an option. It keeps errors for [Set.Check], which reports
// all mistakes together. An option keeps its default if its text is wrong, so checks of other options do not report
// consequences of the mistake.
//
// A Value belongs to one run of a command. Create it with [Bool], [Number], [String], [Parsed], [OneOf], [Strings],
// [List] or [Map]. It implements the Generic interface of the library.
type Value struct {
	parse    func(text string) error
	def      string     // text of the default, for --help; empty for none
	words    []string   // texts to complete; nil if there is no list
	current  func() any // the value of a switch or a number; nil for others
	isSwitch bool       // the flag needs no text: --follow means --follow=true
	isText   bool       // the option is the text itself

	given bool
	text  string // the last text
	errs  []error
}

// Set parses a text. It returns nil, because [Set.Check] reports the errors.
func (v *Value) Set(text string) error {
	v.given, v.text = true, text
	if err := v.parse(text); err != nil {
		v.errs = append(v.errs, err)
	}
	return nil
}

// Err returns the errors of the texts that were set.
func (v *Value) Err() error { return errors.Join(v.errs...) }

// String returns the last text, or the default.
func (v *Value) String() string {
	if v == nil || !v.given {
		return ""
	}
	return v.text
}

// IsBoolFlag makes package flag accept a switch without a text.
func (v *Value) IsBoolFlag() bool { return v.isSwitch }

// isSet reports whether the flag has an effect, or a wrong text. A switch that is set to false has no effect.
func (v *Value) isSet() bool {
	return v.given && (!v.isSwitch || v.current() != false || len(v.errs) > 0)
}

// mistakes returns the errors of a value that is set. The zero value of an option means its default, so the default
// would silently replace an explicit zero. Therefore zero is a mistake unless allowZero is set.
func (v *Value) mistakes(allowZero bool) []error {
	if v.text == "" && !allowZero {
		return []error{errors.New("is empty; leave it out")}
	}
	if len(v.errs) > 0 || allowZero || v.current == nil {
		return v.errs
	}
	switch x := v.current().(type) {
	case int, int64, time.Duration:
		if text := fmt.Sprint(x); text == "0" || text == "0s" {
			return []error{fmt.Errorf("%s would mean the default; leave it out", text)}
		}
	}
	return nil
}

// Parsed returns a Value whose text is parsed. text is the default; it may be empty, for none.
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

// String returns a Value that is a text.
func String(to *string, text string) *Value {
	v := Parsed(to, text, func(s string) (string, error) { return s, nil })
	v.isText = true
	return v
}

// Suggest sets texts that a shell completes, and returns v. Other texts stay valid.
func (v *Value) Suggest(words ...string) *Value {
	v.words = words
	return v
}

// Bool returns the Value of a switch. The default is false.
func Bool(to *bool) *Value {
	return &Value{isSwitch: true, current: func() any { return *to }, parse: store(to, func(s string) (bool, error) {
		x, err := strconv.ParseBool(s)
		if err != nil {
			return x, fmt.Errorf("%q is neither true nor false", s)
		}
		return x, nil
	})}
}

// Number returns a Value that is a number or a duration, with the default n. --help does not show a default of zero.
func Number[T int | int64 | float64 | time.Duration](to *T, n T) *Value {
	*to = n
	v := &Value{current: func() any { return *to }, parse: store(to, parseNumber[T])}
	if n != 0 {
		v.def = fmt.Sprint(n)
	}
	return v
}

// parseNumber parses a number or a duration. Its errors name the expected kind of text.
func parseNumber[T int | int64 | float64 | time.Duration](text string) (n T, err error) {
	var parsed any
	kind := "a whole number, such as 100"
	switch any(n).(type) {
	case int:
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

// OneOf returns a Value that accepts only the allowed words.
func OneOf(to *string, text string, allowed ...string) *Value {
	return Parsed(to, text, func(s string) (string, error) {
		if !slices.Contains(allowed, s) {
			return s, fmt.Errorf("%q is not one of %s", s, strings.Join(allowed, ", "))
		}
		return s, nil
	}).Suggest(allowed...)
}

// separator separates the values of a repeatable flag in its variable. A comma is unsuitable, because a value may
// contain one.
const separator = "\n"

// List returns the Value of a repeatable flag whose texts are parsed.
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

// Map returns the Value of a repeatable flag whose texts are NAME=VALUE. A later text replaces an earlier one of the
// same name.
func Map(to *map[string]string) *Value {
	return &Value{parse: func(texts string) error {
		var errs []error
		for text := range strings.SplitSeq(texts, separator) {
			name, value, ok := strings.Cut(text, "=")
			if !ok {
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
