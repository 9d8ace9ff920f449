package collector

import "fmt"

// OptionError says what is wrong with a field of an options struct. The Check methods and constructors of windowstat's packages
// return one for each mistake, joined; [OptionErrors] takes them apart.
type OptionError struct {
	// Package has the options: "collector", "push".
	Package string
	// Field is the field's name: "MaxResources". A field of options within options has both names, and the index in a slice:
	// "Push[0].Interval". It is empty for what concerns no single field.
	Field string
	// Err is what is wrong with the value, and what is allowed.
	Err error
}

// Error returns the package, the field and the problem.
func (e *OptionError) Error() string {
	if e.Field == "" {
		return e.Package + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s: %s: %v", e.Package, e.Field, e.Err)
}

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

// OptionErrors returns the errors that are joined in err, in order, each as an [OptionError]: others get no package and no field.
func OptionErrors(err error) (all []*OptionError) {
	switch e := err.(type) { //nolint:errorlint // what is wrapped is taken apart step by step
	case nil:
	case *OptionError:
		all = append(all, e)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, OptionErrors(one)...)
		}
	default:
		all = append(all, &OptionError{Err: err})
	}
	return all
}
