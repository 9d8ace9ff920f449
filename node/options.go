package node

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// maxSampleCount is the largest SampleCount. A statistic stores twice as many buckets as its SampleCount, see
// NewConfig.
const maxSampleCount = 500

// Minute is the span of the minute window: the open second and the 59 seconds before it.
const Minute = 60 * time.Second

// Options configure a [Statistic]. The zero value has Sentinel's defaults: the second window has 2 buckets, and the
// minute window has 60 buckets.
type Options struct {
	// SampleCount is the number of buckets in the second window; 2 if zero. It must divide one second evenly, and be at
	// most 500. More buckets measure sliding peaks more precisely, but take more memory: a statistic stores the buckets
	// of two seconds, and each bucket takes 72 bytes.
	SampleCount int
	// History is the time for which the records of sealed seconds can be read; ten minutes if zero. It must be a number
	// of whole seconds, from [Minute] to an hour. The record of a second with events takes some 20 bytes, and the
	// record of an idle second takes nothing. Statistics keep the records for one second longer than History, because a
	// caller may use a reading of the clock that is up to a second old.
	History time.Duration
	// Histograms is the time for which the histograms of sealed seconds can be read; [Minute] if zero. It must be a
	// number of whole seconds, from Minute to History. A histogram takes three or four bits for each histogram bucket
	// with counts. The histogram of a second with a hundred calls of around 20 ms takes some 15 bytes.
	Histograms time.Duration
	// Bounds are the upper bounds of the classic histogram's buckets, at most 64, positive and ascending. If Bounds is
	// nil, they are [DefaultBounds]. If Bounds is empty but not nil, there are no bounds.
	Bounds []time.Duration
}

// Config holds a timeline and validated Options. All statistics of a process share it. The zero value is not usable.
type Config struct {
	opts   Options // with defaults applied
	line   *leap.Timeline
	second leap.Array[Counts] // empty ring; each history gets a copy
	perSec int64              // number of buckets in one second
	layout *layout
}

// Options returns the options with defaults applied. The caller must not modify Bounds.
func (c *Config) Options() Options { return c.opts }

// openSecond returns the second that the timeline has opened last. It does not read the clock.
func (c *Config) openSecond() leap.Second { return c.line.At(math.MinInt64) }

// NewConfig returns a Config for statistics on the given timeline. The error names every invalid option.
func NewConfig(timeline *leap.Timeline, o Options) (*Config, error) {
	o.SampleCount = cmp.Or(o.SampleCount, 2)
	o.History = cmp.Or(o.History, 10*time.Minute)
	o.Histograms = cmp.Or(o.Histograms, Minute)
	if o.Bounds == nil { // nil means the default bounds; an empty list means no bounds
		o.Bounds = DefaultBounds()
	}
	o.Bounds = slices.Clone(o.Bounds)
	c := &Config{opts: o, line: timeline}
	var errs []error
	var err error
	if n := o.SampleCount; n < 1 || n > maxSampleCount || time.Second%time.Duration(n) != 0 {
		errs = append(errs, fmt.Errorf(
			"node: second window: %d buckets do not divide one second, or are not from 1 to %d", n, maxSampleCount))
	} else {
		// The ring has the buckets of two seconds, because a sliding window that ends in one second may begin in the
		// second before this one.
		c.perSec = int64(n)
		c.second, err = leap.NewArray[Counts](2*time.Second, 2*n)
		errs = append(errs, err)
	}
	if o.History%time.Second != 0 || o.History < Minute || o.History > leap.MaxSpan {
		errs = append(errs, fmt.Errorf("node: history: %v is not a whole number of seconds from %v to %v",
			o.History, Minute, leap.MaxSpan))
	}
	if o.Histograms != Minute && (o.Histograms%time.Second != 0 || o.Histograms < Minute || o.Histograms > o.History) {
		errs = append(errs, fmt.Errorf(
			"node: histograms: %v is not a whole number of seconds from %v to the history's %v",
			o.Histograms, Minute, o.History))
	}
	c.layout, err = newLayout(o.Bounds)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}
