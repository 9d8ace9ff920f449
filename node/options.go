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

// maxSampleCount limits the buckets of the second window. Every resource has twice this number of buckets.
const maxSampleCount = 500

// Minute is the span of the minute window: the open second and the 59 before it.
const Minute = 60 * time.Second

// Options configure a [Statistic]. The zero value has Sentinel's defaults: a second in 2 buckets, a minute in 60.
type Options struct {
	// SampleCount is the number of buckets in the second window; 2 if zero. The number must divide one second, and be
	// at most 500. More buckets measure sliding peaks more precisely, and cost memory: 72 bytes for each bucket in two
	// seconds.
	SampleCount int
	// History is the largest age of readable sealed seconds, in whole seconds from [Minute] to an hour; ten minutes if
	// zero. A second with events takes some 20 bytes, an idle one nothing. One more second is kept for readers whose
	// clock reading is a second old.
	History time.Duration
	// Histograms is the largest age of readable histograms of sealed seconds, in whole seconds from [Minute] to
	// History; Minute if zero. A histogram takes three or four bits for each bucket with counts in its second: some 15
	// bytes for a hundred calls around 20 ms.
	Histograms time.Duration
	// Bounds are the upper bounds of the classic histogram's buckets, ascending; [DefaultBounds] if nil.
	Bounds []time.Duration
}

// Config is a timeline with validated Options, shared by all statistics of a process. The zero value is not usable.
type Config struct {
	opts   Options // with defaults applied
	line   *leap.Timeline
	second leap.Array[Counts] // empty ring, copied for each history
	perSec int64              // buckets of the second window in one second
	layout *layout
}

// Options returns the options with defaults applied. The caller must not modify Bounds.
func (c *Config) Options() Options { return c.opts }

// openSecond returns the second that was opened last.
func (c *Config) openSecond() leap.Second { return c.line.At(math.MinInt64) }

// NewConfig validates the options of statistics that run on line. The error names every invalid option.
func NewConfig(line *leap.Timeline, o Options) (*Config, error) {
	o.SampleCount = cmp.Or(o.SampleCount, 2)
	o.History = cmp.Or(o.History, 10*time.Minute)
	o.Histograms = cmp.Or(o.Histograms, Minute)
	if o.Bounds == nil { // an empty list means no bounds
		o.Bounds = DefaultBounds()
	}
	o.Bounds = slices.Clone(o.Bounds)
	c := &Config{opts: o, line: line}
	var errs []error
	var err error
	if n := o.SampleCount; n < 1 || n > maxSampleCount || time.Second%time.Duration(n) != 0 {
		errs = append(errs, fmt.Errorf(
			"node: second window: %d buckets do not divide one second, or are not from 1 to %d", n, maxSampleCount))
	} else {
		// Two seconds of buckets, because sliding windows that end in a second reach back into the previous one.
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
