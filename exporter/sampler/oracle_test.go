package sampler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/node"
)

// cells holds the samples of a Stream, by series and Unix time.
type cells struct {
	all    map[string]map[int64]float64
	series map[int64]float64
}

// Series implements [seconds.Sink]. Keys are the names that the Gatherer gave: without the prefix, and without the
// ending of increases, which [TestNames] checks.
func (c *cells) Series(f *table.Family, names, values []string) {
	key := strings.TrimSuffix(strings.TrimPrefix(f.Name, "persecond_"), "_increase")
	for i := range names {
		key += fmt.Sprintf(" %s=%q", names[i], values[i])
	}
	if c.all[key] == nil {
		c.all[key] = map[int64]float64{}
	}
	c.series = c.all[key]
}

// Value implements [seconds.Sink].
func (c *cells) Value(unix int64, v float64) { c.series[unix] = v }

// Histogram implements [seconds.Sink].
func (c *cells) Histogram(int64, *node.Histogram) {}

// read returns the samples of the seconds in [from, to).
func read(s *sampler.Sampler, from, to int64) *cells {
	c := &cells{all: map[string]map[int64]float64{}}
	s.Stream().Emit(new(seconds.Selection), from, to, seconds.Limit{Seconds: math.MaxInt32}, c)
	return c
}

// own returns the self-metrics of a Sampler.
func own(c *collector.Collector) map[string]float64 {
	all := map[string]float64{}
	for _, m := range c.Metrics() {
		if name, ok := strings.CutPrefix(m.Name, "sampler_"); ok {
			all[name] = m.Value()
		}
	}
	return all
}

// trueCounter is a counter that remembers its increase in each second.
type trueCounter struct {
	family, label string
	stamped       bool // has a created timestamp
	histogram     bool // is a histogram with this count and half this sum

	exists  bool
	visible bool
	seen    bool // was in a gathering without errors
	total   float64
	created time.Time
	atStart float64           // total at the start of the second
	truth   map[int64]float64 // increases by second, since the creation
}

func (c *trueCounter) create() {
	c.exists, c.visible, c.seen, c.total, c.created = true, true, false, 0, time.Now()
	c.truth[time.Now().Unix()] = 0
}

func (c *trueCounter) count(n float64) {
	c.total += n
	c.truth[time.Now().Unix()] += n
}

func (c *trueCounter) metric() *dto.Metric {
	m := &dto.Metric{Label: []*dto.LabelPair{{Name: proto.String("l"), Value: proto.String(c.label)}}}
	var at *timestamppb.Timestamp
	if c.stamped {
		at = timestamppb.New(c.created)
	}
	if c.histogram {
		m.Histogram = &dto.Histogram{
			SampleCount:      proto.Uint64(uint64(c.total)),
			SampleSum:        proto.Float64(c.total * 2),
			CreatedTimestamp: at,
		}
	} else {
		m.Counter = &dto.Counter{Value: proto.Float64(c.total), CreatedTimestamp: at}
	}
	return m
}

// faultyGatherer is a Gatherer of counters with all faults of Gatherers.
type faultyGatherer struct {
	mu sync.Mutex

	random   *rand.Rand
	fault    float64
	counters []*trueCounter

	gathered map[int64]bool            // in time, by second
	shown    map[int64]map[string]bool // gathered series, by second
}

// Gather implements [prometheus.Gatherer].
func (w *faultyGatherer) Gather() (list []*dto.MetricFamily, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	second := time.Now().Unix() - 1
	fault := 100
	if w.random.Float64() < w.fault {
		fault = w.random.IntN(9)
	}
	sleep := func(ms int) {
		w.mu.Unlock()
		defer w.mu.Lock()
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
	defer func() {
		switch fault {
		case 0:
			list, err = nil, errors.New("broken")
		case 1:
			panic("broken")
		case 2:
			runtime.Goexit()
		case 3: // delayed
			sleep(300)
		case 4: // delayed by seconds
			sleep(300 + w.random.IntN(4000))
		default:
			sleep(w.random.IntN(200))
			w.gathered[second] = time.Since(time.Unix(second+1, 0)) <= sampler.DefaultMaxDelay
		}
	}()
	byName := map[string]*dto.MetricFamily{}
	w.shown[second] = map[string]bool{}
	partly := fault == 5
	for _, c := range w.counters {
		if !c.exists || !c.visible || partly && w.random.IntN(2) == 0 {
			continue
		}
		f := byName[c.family]
		if f == nil {
			f = &dto.MetricFamily{Name: &c.family, Help: proto.String("x"), Type: dto.MetricType_COUNTER.Enum()}
			if c.histogram {
				f.Type = dto.MetricType_HISTOGRAM.Enum()
			}
			byName[c.family] = f
			list = append(list, f)
		}
		f.Metric = append(f.Metric, c.metric())
		w.shown[second][c.family+c.label] = true
		if fault > 5 {
			c.seen = true
		}
		if fault == 6 && w.random.IntN(4) == 0 { // duplicate, possibly with a different value
			m := c.metric()
			if m.Counter != nil {
				m.Counter.Value = proto.Float64(c.total + 1e6)
			}
			f.Metric = append(f.Metric, m)
		}
		if fault == 7 && w.random.IntN(4) == 0 {
			f.Metric[len(f.Metric)-1].TimestampMs = proto.Int64(1)
		}
		if fault == 8 && w.random.IntN(4) == 0 && !c.histogram {
			f.Metric[len(f.Metric)-1] = &dto.Metric{
				Label: f.Metric[len(f.Metric)-1].Label,
				Gauge: &dto.Gauge{Value: proto.Float64(-1)},
			}
		}
	}
	w.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if partly {
		if len(list) == 0 {
			fault = 0
		}
		err = errors.New("partly broken")
	}
	return list, err
}

// live simulates a second: counters are created, hidden, shown, reset and increased.
func (w *faultyGatherer) live() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.counters {
		switch c.atStart = c.total; {
		case !c.exists:
			if w.random.IntN(20) == 0 {
				c.create()
				if w.random.IntN(20) == 0 {
					c.visible = !c.stamped // a counter with a created timestamp may be hidden at first
				}
			}
		case w.random.IntN(60) == 0:
			c.visible = !c.visible && c.exists || !c.stamped && !c.seen
		case w.random.IntN(60) == 0:
			before := c.atStart
			c.create()
			if c.stamped {
				c.count(float64(w.random.IntN(1e9)))
			} else if before > 0 { // otherwise the reset is not detectable
				c.count(float64(w.random.IntN(int(before))))
			}
			continue
		}
		if c.exists && w.random.IntN(3) > 0 {
			n := w.random.IntN(10)
			if w.random.IntN(50) == 0 {
				n = 1e8
			}
			c.count(float64(n))
		}
	}
}

// For all counters and Gatherers, each cell has the increase of its second, or is absent and counted. No cell ever
// changes.
func FuzzSampler(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(seed, uint8(seed*37), uint16(seed%3*10))
	}
	f.Fuzz(func(t *testing.T, seed uint64, fault uint8, maxSeries uint16) {
		synctest.Test(t, func(t *testing.T) { runFaultyGatherers(t, seed, float64(fault)/500, int(maxSeries)) })
	})
}

func runFaultyGatherers(t *testing.T, seed uint64, fault float64, maxSeries int) {
	const length = 200
	random := rand.New(rand.NewPCG(seed, 1))
	var faulty []*faultyGatherer
	var gatherers prometheus.Gatherers
	for i := range 3 {
		w := &faultyGatherer{
			random: rand.New(rand.NewPCG(seed, uint64(i+2))), fault: fault,
			gathered: map[int64]bool{}, shown: map[int64]map[string]bool{},
		}
		for family := range 4 {
			for label := range 3 {
				c := &trueCounter{
					family:    fmt.Sprintf("f%d_%d", i, family),
					label:     fmt.Sprint(label),
					stamped:   family%2 == 0,
					histogram: family >= 2,
					truth:     map[int64]float64{},
				}
				w.counters = append(w.counters, c)
			}
		}
		faulty = append(faulty, w)
		gatherers = append(gatherers, prometheus.Gatherers{w})
	}
	for _, stamped := range []bool{false, true} { // the sampling begins in the middle of a second, or at its start
		for _, w := range faulty {
			for _, c := range w.counters { // before the first gathering
				if c.stamped == stamped && random.IntN(2) == 0 {
					c.create()
					c.count(1e6)
				}
			}
		}
		// No two events at the same time.
		time.Sleep(time.Duration(random.IntN(300)+700*random.IntN(2))*time.Millisecond + time.Microsecond)
		if !stamped {
			time.Sleep(time.Second)
		}
	}
	c, err := collector.New(collector.Options{Windows: node.Options{History: node.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sampler.New(c, sampler.Options{
		Gatherer: gatherers, MaxSeries: maxSeries, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	began := time.Now()
	go func() { ended <- s.Run(ctx) }()
	line := c.Timeline()
	from := s.Stream().Sealed(line.At(line.Now()).Index)
	all, absent := map[string]map[int64]float64{}, 0
	for range length {
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1500 * time.Millisecond)))
		for _, w := range faulty {
			w.live()
		}
		time.Sleep(100 * time.Millisecond)
		to := s.Stream().Sealed(line.At(line.Now()).Index)
		for key, values := range read(s, from, to).all {
			if all[key] == nil {
				all[key] = map[int64]float64{}
			}
			for at, v := range values {
				all[key][at] = v
			}
		}
		for key, values := range read(s, to-10, to).all {
			for at, v := range values {
				if was, ok := all[key][at]; !ok || was != v {
					t.Fatalf("%s at %d is %v, and was %v (%t)", key, at, v, was, ok)
				}
			}
		}
		from = to
	}
	n, last := own(c), time.Now().Unix()-1
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second) // until the last gathering returns
	missed, first := 0, began.Unix()
	if began.Nanosecond() <= int(sampler.DefaultMaxDelay) {
		first-- // the end of this second was gathered
	}
	for _, w := range faulty {
		w.mu.Lock()
		for at := first; at <= last; at++ {
			if !w.gathered[at] || at > first && !w.gathered[at-1] {
				missed++
			}
		}
		for _, c := range w.counters {
			key := fmt.Sprintf("%s l=%q", c.family, c.label)
			values := all[key]
			if c.histogram {
				values = all[fmt.Sprintf("%s_count l=%q", c.family, c.label)]
				for at, v := range all[fmt.Sprintf("%s_sum l=%q", c.family, c.label)] {
					if v != 2*c.truth[at] {
						t.Errorf("sum of %s at %d is %v, want %v", key, at, v, 2*c.truth[at])
					}
				}
			}
			for at, v := range values {
				if v == -1 {
					continue // was a gauge
				}
				if v != c.truth[at] {
					t.Errorf("%s at %d is %v, want %v", key, at, v, c.truth[at])
				}
			}
			for at, n := range c.truth {
				if _, ok := values[at]; !ok && n > 0 && at > first && at <= last && w.gathered[at] &&
					w.gathered[at-1] && w.shown[at][c.family+c.label] {
					absent++
				}
			}
		}
	}
	if got := int(n["missed_seconds_total"]); got != missed {
		t.Errorf("%d missed seconds, but %d counted", missed, got)
	}
	if got := int(n["unplaced_increases_total"]); maxSeries == 0 && got < absent {
		t.Errorf("%d absent increases, but %d counted", absent, got)
	}
}
