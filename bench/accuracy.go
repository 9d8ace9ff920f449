package bench

import (
	"time"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/stat"
	"github.com/alibaba/sentinel-golang/util"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// Window counts calls and reports the number of calls in the last second, or its approximation of this number.
type Window struct {
	// Add counts one call at the reading now.
	Add func(now time.Duration)
	// Read is the number of calls in the last second.
	Read func(now time.Duration) int64
	// Close releases the process-wide state that New changed. It is nil if New changed none.
	Close func()
}

// Subject is an implementation of a window whose clock can be set.
type Subject struct {
	// Name identifies the implementation and the value that is read.
	Name string
	// New returns an empty window. Only one may be in use at a time.
	New func() (Window, error)
}

// Subjects are windowstat with the three readings it offers, sentinel-golang, and the simple windows.
func Subjects() []Subject {
	return []Subject{
		{"windowstat", func() (Window, error) { return statistic(slidingWindow) }},
		{"windowstat-last-second", func() (Window, error) { return statistic(lastSecond) }},
		{"windowstat-peak", func() (Window, error) { return statistic(lastPeak) }},
		{"sentinel-golang-node", func() (Window, error) { return sentinelWindow(), nil }},
		{"fixed-window", func() (Window, error) { return simple(NewFixedWindow()), nil }},
		{"sentinel-ring", func() (Window, error) { return simple(NewSentinelRing()), nil }},
		{"sub-window-list", func() (Window, error) { return simple(NewSubWindowList()), nil }},
		{"second-map", func() (Window, error) { return simple(NewSecondMap()), nil }},
	}
}

// The load of BurstRead and SteadyRead.
const (
	// BurstCalls is the number of calls of a burst, all within BurstLength.
	BurstCalls  = 1200
	BurstLength = 600 * time.Millisecond
	// SteadyRate is the number of calls per second.
	SteadyRate = 1000
)

// baseReading is at the start of a second, long after every epoch.
const baseReading = 1_000_000 * time.Second

// BurstRead returns the highest reading of a window during a burst. The window is read every 10 ms, and the correct
// reading is BurstCalls. BurstRead repeats the burst with a start at each twentieth of a second, and returns the
// reading with the largest error.
func BurstRead(s Subject) (int64, error) {
	worst := int64(BurstCalls)
	for offset := time.Duration(0); offset < time.Second; offset += 50 * time.Millisecond {
		w, err := s.New()
		if err != nil {
			return 0, err
		}
		begin := baseReading + time.Second + offset
		var highest int64
		for now := baseReading; now < baseReading+5*time.Second; now += time.Millisecond {
			if now >= begin && now < begin+BurstLength {
				for range BurstCalls / BurstLength.Milliseconds() {
					w.Add(now)
				}
			}
			if now%(10*time.Millisecond) == 0 {
				highest = max(highest, w.Read(now))
			}
		}
		if w.Close != nil {
			w.Close()
		}
		worst = min(worst, highest)
	}
	return worst, nil
}

// SteadyRead returns the lowest reading of a window during SteadyRate calls a second. The window is read every 10 ms,
// and the correct reading is SteadyRate.
func SteadyRead(s Subject) (int64, error) {
	w, err := s.New()
	if err != nil {
		return 0, err
	}
	if w.Close != nil {
		defer w.Close()
	}
	lowest := int64(SteadyRate)
	for now := baseReading; now < baseReading+10*time.Second; now += time.Millisecond {
		for range SteadyRate / time.Second.Milliseconds() {
			w.Add(now)
		}
		if now >= baseReading+5*time.Second && now%(10*time.Millisecond) == 0 {
			lowest = min(lowest, w.Read(now))
		}
	}
	return lowest, nil
}

// simple adapts a simple window to [Window].
func simple(w interface {
	Enter(now time.Duration)
	Exit(now, rt time.Duration)
	Sum(now time.Duration) Cell
},
) Window {
	return Window{
		Add: func(now time.Duration) {
			w.Enter(now)
			w.Exit(now, 0)
		},
		Read: func(now time.Duration) int64 { return w.Sum(now).Pass },
	}
}

// statistic returns windowstat as a [Window], on a clock that follows the given time.
func statistic(read func(*node.View, *leap.Timeline, time.Duration) int64) (Window, error) {
	latest := baseReading
	line := leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return latest },
		Wall: func() time.Time { return time.Unix(0, int64(latest)) },
	})
	shape, err := node.NewConfig(line, node.Options{})
	if err != nil {
		return Window{}, err
	}
	s, v := node.New(shape, leap.Reading(latest)), node.NewView(shape, leap.Reading(latest))
	v.Add(s)
	return Window{
		Add: func(now time.Duration) {
			latest = now
			c := s.Enter(leap.Reading(now), 1)
			c.Exit(leap.Reading(now), false, 0)
		},
		Read: func(now time.Duration) int64 {
			latest = now
			return read(v, line, now)
		},
	}, nil
}

func slidingWindow(v *node.View, _ *leap.Timeline, now time.Duration) int64 {
	return v.Window(leap.Reading(now)).Pass
}

func lastSecond(v *node.View, line *leap.Timeline, now time.Duration) int64 {
	m, _ := v.Second(line.At(leap.Reading(now)).Index - 1)
	return m.Pass
}

func lastPeak(v *node.View, line *leap.Timeline, now time.Duration) int64 {
	m, _ := v.Second(line.At(leap.Reading(now)).Index - 1)
	return m.PassPeak
}

// toldClock is a clock for Sentinel that returns the time it was set to.
type toldClock struct {
	util.RealClock
	now time.Duration
}

// CurrentTimeMillis returns the Unix time in milliseconds.
func (c *toldClock) CurrentTimeMillis() uint64 { return uint64(c.now.Milliseconds()) }

func sentinelWindow() Window {
	clock := &toldClock{now: baseReading}
	util.SetClock(clock)
	n := stat.NewResourceNode("accuracy", base.ResTypeCommon)
	return Window{
		Add: func(now time.Duration) {
			clock.now = now
			n.AddCount(base.MetricEventPass, 1)
		},
		Read: func(now time.Duration) int64 {
			clock.now = now
			return int64(n.GetQPS(base.MetricEventPass))
		},
		Close: func() { util.SetClock(util.NewRealClock()) },
	}
}
