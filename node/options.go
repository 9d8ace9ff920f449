package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// maxSampleCount is how many buckets the second window may have: every resource has them twice.
const maxSampleCount = 500

// Options shape a [Statistic]. The zero value is Sentinel's: a second in 2 buckets, a minute in 60.
type Options struct {
	// SampleCount is the number of buckets in the second window; 2 if zero. It must divide one second, and be at most 500.
	// More buckets find a sliding peak more exactly, and cost memory: 72 bytes for each in two seconds.
	SampleCount int
	// Minute is the span of the minute window, in whole seconds; 60 seconds if zero. Its buckets are one second each; one
	// takes some 20 bytes, and its histogram what Histograms says.
	Minute time.Duration
	// History is how long sealed seconds can be read, in whole seconds up to an hour, and not less than Minute; ten
	// minutes if zero, or Minute if that is longer. A second beyond the minute takes some 20 bytes if something happened
	// in it, and nothing otherwise.
	History time.Duration
	// Histograms is how long the histograms of sealed seconds can be read, in whole seconds, not less than Minute and not more
	// than History; Minute if zero. A histogram takes three or four bits for each bucket that is not empty in its second: of a
	// hundred calls around 20 ms some 15 bytes.
	Histograms time.Duration
	// Bounds are the upper bounds of the classic histogram's buckets, ascending; [DefaultBounds] if nil.
	Bounds []time.Duration
}

// Shape is a timeline and validated Options, shared by all statistics of one kind. The zero value is not usable.
type Shape struct {
	opts   Options // without zeros
	line   *leap.Timeline
	second leap.Array[Counts] // empty rings to copy
	perSec int64              // second-window buckets in one second
	layout *layout
}

// Options returns the options without zeros. Nobody may change the Bounds.
func (s *Shape) Options() Options { return s.opts }

// NewShape checks the options, for statistics that run on line. The error names everything that is wrong with them.
func NewShape(line *leap.Timeline, o Options) (*Shape, error) {
	o.SampleCount = cmp.Or(o.SampleCount, 2)
	o.Minute = cmp.Or(o.Minute, time.Minute)
	o.History = cmp.Or(o.History, max(o.Minute, 10*time.Minute))
	o.Histograms = cmp.Or(o.Histograms, o.Minute)
	if o.Bounds == nil { // an empty list is one without bounds
		o.Bounds = DefaultBounds()
	}
	o.Bounds = slices.Clone(o.Bounds)
	s := &Shape{opts: o, line: line}
	var errs []error
	var err error
	if n := o.SampleCount; n < 1 || n > maxSampleCount || time.Second%time.Duration(n) != 0 {
		errs = append(errs, fmt.Errorf("node: second window: %d buckets do not divide one second evenly, or are not between 1 and %d", n, maxSampleCount))
	} else {
		// The highest sliding second of a second needs the buckets of the one before it, too.
		s.perSec = int64(n)
		s.second, err = leap.NewArray[Counts](2*time.Second, 2*n)
		errs = append(errs, err)
	}
	if o.Minute%time.Second != 0 || o.Minute < 2*time.Second || o.Minute > leap.MaxSpan {
		errs = append(errs, fmt.Errorf("node: minute window: %v is not a whole number of seconds from 2s to %v", o.Minute, leap.MaxSpan))
	}
	if o.Minute <= leap.MaxSpan && (o.History%time.Second != 0 || o.History < o.Minute || o.History > leap.MaxSpan) {
		errs = append(errs, fmt.Errorf("node: history: %v is not a whole number of seconds from the minute window's %v to %v", o.History, o.Minute, leap.MaxSpan))
	}
	if o.Histograms != o.Minute && (o.Histograms%time.Second != 0 || o.Histograms < o.Minute || o.Histograms > o.History) {
		errs = append(errs, fmt.Errorf("node: histograms: %v is not a whole number of seconds from the minute window's %v to the history's %v", o.Histograms, o.Minute, o.History))
	}
	s.layout, err = newLayout(o.Bounds)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}
