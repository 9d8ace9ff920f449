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
	DefaultMaxMemory    = 192 << 20
	DefaultRetireAfter  = time.Hour
	DefaultHistory      = 10 * time.Minute
)

// MaxDepth is the maximum depth of the call tree. Deeper calls are recorded like all others, but the tree lacks them.
const MaxDepth = 64

// Options configure a [Collector]. The zero value is a sensible default.
type Options struct {
	// Given are the names of resources that exist from the start and are never retired. They do not count toward
	// MaxResources.
	Given []string
	// MaxResources is the maximum number of resources, [DefaultMaxResources] if zero. MaxResources bounds the number of
	// series, and MaxMemory bounds the memory.
	//
	// If the table is full, a new name evicts an idle resource: the longest-idle resource with an earned name, or else
	// the longest-idle resource with a given name. That resource must have been idle for longer than Windows.History,
	// so that every exporter has read its last seconds. A sweep finds idle resources every ten seconds. Names from code
	// are given; names with the option [FromRequest] are earned. A new earned name never evicts a given name, and no
	// name evicts a name in a limit.
	//
	// While no resource is idle, the calls of further names are recorded for the resource [Other]. Limits with patterns
	// still limit up to MaxResources of these names, each name separately; see [Limit].
	MaxResources int
	// MaxOrigins is the maximum number of origins of a resource, [DefaultMaxOrigins] if zero. Calls of further origins
	// share the origin [Other]. MaxEntrances is the maximum number of entrances of the process, [DefaultMaxEntrances]
	// if zero. Calls of further entrances share the entrance Other. MaxOrigins and MaxEntrances bound the number of
	// series. MaxOrigins also prevents a client from using all memory with made-up origins of one resource.
	MaxOrigins, MaxEntrances int
	// MaxMemory is the maximum number of bytes of heap for all statistics and limits. If zero, it is
	// [DefaultMaxMemory], which suffices for ten thousand busy resources with one origin each. If MaxResources, Given
	// or Windows require more memory, the default is higher. It always suffices for one busy leaf of each name in
	// Given, and of MaxResources other resources. (A leaf is a combination of resource, origin and entrance.)
	//
	// A resource with one leaf reserves some 19 KB at its first call, with the default Windows. The resource may use
	// these bytes later without further checks. A busy resource takes some 15 KB. A leaf can take more than it has
	// reserved, if its response times vary widely or many goroutines contend for it. The excess reduces the memory for
	// new leaves.
	//
	// If there is no memory for a leaf, the call is recorded for the resource [Other]. The limits of the resource with
	// the call's own name still apply to the call. New names evict idle resources, as for MaxResources. Further leaves
	// of a resource may use only three quarters of the memory; the last quarter is for the first leaves of resources.
	// See [Collector.Memory].
	MaxMemory int64
	// RetireAfter is the time after which an idle leaf is retired and its series end. A leaf is idle if it records
	// nothing and has no call in flight. Totals keep the counts of a retired leaf. There is one exception: when the
	// last leaf of a resource or of an origin is retired, the resource or the origin is retired, too, and its own
	// totals end. A later call through a kept handle registers the resource again, and its totals start from zero.
	//
	// The default is [DefaultRetireAfter], or two seconds more than Windows.History if that is longer. If RetireAfter
	// is negative, leaves are retired only when a new name evicts their resource. Otherwise RetireAfter must exceed
	// Windows.History by at least two seconds, so that every exporter has read the last seconds of a retired leaf.
	RetireAfter time.Duration
	// Windows configures the windows and the histogram of every resource.
	Windows node.Options
	// Exception decides which errors count as exceptions. The default is [IsException]; see also [Ignore] and [Only].
	// The Collector calls the function for all errors but two: [ErrBlocked] is never an exception, and [ErrPanicked]
	// always is an exception. If the function panics, the call ends with an exception, and the panic continues in the
	// caller of [Entry.Exit].
	Exception func(error) bool
	// ExceptionClass returns the class of an exception, such as the type of the error. For a call that panicked, the
	// Collector passes [ErrPanicked] to ExceptionClass. [Resource.Exceptions] counts exceptions by class, so there
	// should be few classes. If ExceptionClass is nil, exceptions have no classes. If ExceptionClass panics, the class
	// is [Unspecified], and the panic continues.
	ExceptionClass func(error) string
	// DurationsUnknown means that response times are unknown, for example in a log without durations. All response
	// times then count as 0, and exporters omit every metric of response times.
	DurationsUnknown bool
	// OpenTelemetry lets exporters also show inbound calls under the names of OpenTelemetry's semantic conventions.
	// These names are http_server_request_duration_seconds, http_server_active_requests and
	// rpc_server_call_duration_seconds. The metrics with these names are on the pages that show totals, in addition to
	// the metrics of windowstat. See docs/opentelemetry.md for the labels and the limitations. For these metrics, the
	// Collector counts the response times of inbound calls separately for each code. That costs a few nanoseconds for
	// each inbound call, and each leaf reserves some 1.3 KB more. If Windows.Bounds is nil, the bounds are
	// [node.DefaultBounds] plus the bounds that the conventions recommend: 75 ms, 750 ms and 7.5 s.
	OpenTelemetry bool
	// After is the last second that an earlier process logged or sent. The seconds of this process get names later than
	// After. (The name of a second is a wall-clock time.) The zero Time means that no earlier process logged or sent a
	// second.
	After time.Time
	// Now replaces the clock, for tests and for replays of the past. The Collector calls Now at the start and the end
	// of each call, concurrently in several goroutines. If Now returns an earlier time than before, the time of the
	// Collector stops until Now has caught up. The Collector holds locks while it calls Now. Now must therefore not use
	// the Collector, panic, or end its goroutine. A prioritized call that waits for quota waits by the machine's clock,
	// even if Now is set.
	Now func() time.Time
}

// complete sets the defaults of the options. It returns the configuration of statistics on the given timeline. The
// error names every field that is out of range.
func (o *Options) complete(line *leap.Timeline) (*node.Config, error) {
	var errs []error
	o.Windows.History = cmp.Or(o.Windows.History, DefaultHistory)
	if o.OpenTelemetry && o.Windows.Bounds == nil {
		o.Windows.Bounds = append(node.DefaultBounds(),
			75*time.Millisecond, 750*time.Millisecond, 7500*time.Millisecond)
		slices.Sort(o.Windows.Bounds)
	}
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
	} {
		if *limit.v = cmp.Or(*limit.v, limit.def); *limit.v < 1 {
			errs = append(errs, &OptionError{"collector", limit.name, fmt.Errorf("%d; at least 1 is needed", *limit.v)})
		}
	}
	if shape != nil {
		if o.MaxMemory == 0 {
			o.MaxMemory = max(DefaultMaxMemory, o.memoryOfNames(shape))
		}
		if err := o.checkMemory(shape); err != nil {
			errs = append(errs, &OptionError{"collector", "MaxMemory", err})
		}
	}
	if o.Exception == nil {
		o.Exception = IsException
	}
	least := o.Windows.History + 2*time.Second
	if o.RetireAfter = cmp.Or(o.RetireAfter, max(DefaultRetireAfter, least)); o.RetireAfter >= 0 &&
		o.RetireAfter < least {
		errs = append(
			errs,
			&OptionError{
				"collector",
				"RetireAfter",
				fmt.Errorf("%v; at least %v is needed with a history of %v", o.RetireAfter, least, o.Windows.History),
			},
		)
	}
	return shape, errors.Join(errs...)
}

// Check returns an error that joins an [OptionError] for each invalid option, or nil. [OptionErrors] splits this error.
func (o Options) Check() error {
	_, err := o.complete(leap.NewTimeline(leap.Clock{}))
	return err
}

// IsException is the default of [Options].Exception. Every error is an exception except context.Canceled: if a caller
// no longer waits, the called function has not failed. context.DeadlineExceeded is an exception.
func IsException(err error) bool { return !errors.Is(err, context.Canceled) }

// Ignore returns a function for [Options].Exception. All errors are exceptions except errors that match a target, in
// the sense of errors.Is.
func Ignore(targets ...error) func(error) bool {
	is := Only(targets...)
	return func(err error) bool { return !is(err) }
}

// Only returns a function for [Options].Exception. Only errors that match a target, in the sense of errors.Is, are
// exceptions.
func Only(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

// OptionError describes an invalid field of an options struct. The Check methods and constructors of windowstat's
// packages return an OptionError for each invalid field. The errors are joined; [OptionErrors] splits them.
type OptionError struct {
	// Package is the name of the package of the options, such as "collector" or "push".
	Package string
	// Field is the name of the invalid field, such as "MaxResources". Field is empty if the error concerns several
	// fields. The field of a nested options struct is preceded by the name of the outer field. If the outer field is a
	// slice, the name contains the index: "Push[0].Interval".
	Field string
	// Err describes the value and the allowed values.
	Err error
}

// Error returns the package, the field and the description.
func (e *OptionError) Error() string {
	if e.Field == "" {
		return e.Package + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s: %s: %v", e.Package, e.Field, e.Err)
}

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

// OptionErrors splits a joined error. It returns the parts in order, each as an [OptionError]. A part of another type
// becomes an OptionError without package and field.
func OptionErrors(err error) (all []*OptionError) {
	switch e := err.(type) { //nolint:errorlint // only joined errors are split; a wrapped error is one part
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
