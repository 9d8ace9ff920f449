package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// Defaults of [Options].
const (
	DefaultMaxResources = 10_000
	DefaultMaxOrigins   = 100
	DefaultMaxEntrances = 100
	DefaultMaxLeaves    = 50_000
	DefaultRetireAfter  = time.Hour
	DefaultHistory      = 10 * time.Minute
)

// MaxDepth is the depth of the call tree. Deeper entries are counted like all others, but the tree does not show their
// callers.
const MaxDepth = 64

// Options configure a [Collector]. The zero value is sensible.
type Options struct {
	// Given are the names of resources that exist from the start, and are never retired. They are beside MaxResources.
	Given []string
	// MaxResources is how many resources are kept apart, [DefaultMaxResources] if zero. Beyond that a new name evicts the longest-idle
	// resource that has been idle for longer than Windows.History, so that every way out has had its last seconds; idle resources are
	// looked for every ten seconds. An [Earned] name evicts only earned ones. While none is idle, calls of any further name are counted
	// for the resource [Other]. As many of these names are kept apart in limits with patterns, see [Limit].
	MaxResources int
	// MaxOrigins is how many origins are kept apart for each resource, [DefaultMaxOrigins] if zero; calls of any further
	// one are counted for its origin [Other]. MaxEntrances is the same for the entrances of the process.
	MaxOrigins, MaxEntrances int
	// MaxLeaves is how many combinations of resource, origin and entrance are kept apart, [DefaultMaxLeaves] if zero. It is
	// what bounds memory: a busy resource takes some 16 KB for each leaf. Beyond it calls are counted for the
	// origin and entrance [Other] of their resource, which takes up to four more leaves for each resource
	// (and for each origin that a limit names), and new
	// resources are counted as [Other].
	MaxLeaves int
	// RetireAfter is how long a leaf must be idle, nothing in flight, until it is retired and its series end. Its counts stay in every
	// total that they are part of. [DefaultRetireAfter] if zero; if negative, leaves are retired only when a new name evicts their
	// resource; otherwise longer than Windows.History, so that every way out has had its last seconds. A resource is
	// retired with its last leaf; a call by a kept handle registers it again.
	RetireAfter time.Duration
	// Windows shape the windows and the histogram of every resource.
	Windows node.Options
	// Exception decides which errors count as exceptions, [IsException] if nil. It is asked for every error but
	// [ErrBlocked], which never is one, and [ErrPanicked], which always is. See [Ignore] and [Only]. If it panics, the call
	// has ended with an exception, and the panic goes on, out of [Entry.Exit].
	Exception func(error) bool
	// ExceptionClass gives exceptions a class to be counted by, such as their type: a few words, see [Resource.Exceptions].
	// Nil gives them none. A panic is [ErrPanicked]. If it panics itself, the class is [Unspecified], and the panic goes on.
	ExceptionClass func(error) string
	// DurationsUnknown marks calls whose response times are unknown, such as those read from a log without durations. They
	// count as 0, and exporters leave out every metric of response times.
	DurationsUnknown bool
	// After is the last second that a process before this one has logged or sent: no second of this process has its name, or
	// an earlier one. The zero Time is none.
	After time.Time
	// Now replaces the clock, for tests and for replaying the past. Both ends of a call are timed with it. It may be
	// called from several goroutines. Where it goes back, time stands still until it has caught up. It is called under
	// locks, so it must neither use the Collector nor panic, nor end its goroutine. A prioritized call waits by the machine's
	// clock all the same.
	Now func() time.Time
}

// complete sets what is not given, and returns the shape of statistics on a timeline, or an error that names every field that is out of
// range.
func (o *Options) complete(line *leap.Timeline) (*node.Config, error) {
	var errs []error
	o.Windows.History = cmp.Or(o.Windows.History, DefaultHistory)
	shape, err := node.NewConfig(line, o.Windows)
	if err != nil {
		errs = append(errs, &OptionError{"collector", "Windows", err})
	}
	for _, limit := range []struct {
		name string
		v    *int
		def  int
	}{
		{"MaxResources", &o.MaxResources, DefaultMaxResources},
		{"MaxOrigins", &o.MaxOrigins, DefaultMaxOrigins},
		{"MaxEntrances", &o.MaxEntrances, DefaultMaxEntrances},
		{"MaxLeaves", &o.MaxLeaves, DefaultMaxLeaves},
	} {
		if *limit.v = cmp.Or(*limit.v, limit.def); *limit.v < 1 {
			errs = append(errs, &OptionError{"collector", limit.name, fmt.Errorf("%d; at least 1 is needed", *limit.v)})
		}
	}
	if o.Exception == nil {
		o.Exception = IsException
	}
	least := o.Windows.History + 2*time.Second
	if o.RetireAfter = cmp.Or(o.RetireAfter, max(DefaultRetireAfter, least)); o.RetireAfter >= 0 && o.RetireAfter < least {
		errs = append(errs, &OptionError{"collector", "RetireAfter", fmt.Errorf("%v; at least %v is needed with a history of %v", o.RetireAfter, least, o.Windows.History)})
	}
	return shape, errors.Join(errs...)
}

// Check returns everything that is wrong with the options, as [OptionError]s.
func (o Options) Check() error {
	_, err := o.complete(leap.NewTimeline(leap.Clock{}))
	return err
}

// IsException is the default of [Options].Exception: every error but context.Canceled is an exception. A caller that no
// longer waits is no fault of the callee. context.DeadlineExceeded is an exception.
func IsException(err error) bool { return !errors.Is(err, context.Canceled) }

// Ignore returns an [Options].Exception for which all errors are exceptions but those that match one of the targets,
// in the sense of errors.Is.
func Ignore(targets ...error) func(error) bool {
	is := Only(targets...)
	return func(err error) bool { return !is(err) }
}

// Only returns an [Options].Exception for which only errors that match one of the targets are exceptions.
func Only(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

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
