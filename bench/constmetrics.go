package bench

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// constMetrics exports a windowstat collector as client_golang documents it for external values: with a const metric
// for each sample. A const histogram cannot be both classic and native, so this histogram has no native buckets; it
// does less work.
type constMetrics struct {
	stats             *collector.Collector
	rows              []constRow
	blocks, completes *prometheus.Desc
}

type constRow struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*node.Snapshot) float64 // nil for the histogram
}

// constValues maps the metrics of a resource to their values in a snapshot.
var constValues = map[string]func(*node.Snapshot) float64{
	"pass_total":                func(s *node.Snapshot) float64 { return float64(s.Total.Pass) },
	"exception_total":           func(s *node.Snapshot) float64 { return float64(s.Total.Exception) },
	"occupied_pass_total":       func(s *node.Snapshot) float64 { return float64(s.Total.OccupiedPass) },
	"in_flight":                 func(s *node.Snapshot) float64 { return float64(s.InFlight) },
	"in_flight_seconds_total":   func(s *node.Snapshot) float64 { return s.InFlightSeconds },
	"in_flight_elapsed_seconds": func(s *node.Snapshot) float64 { return s.InFlightElapsed },
	"pass_qps":                  func(s *node.Snapshot) float64 { return float64(s.Last.Pass) },
	"block_qps":                 func(s *node.Snapshot) float64 { return float64(s.Last.Block) },
	"complete_qps":              func(s *node.Snapshot) float64 { return float64(s.Last.Complete) },
	"exception_qps":             func(s *node.Snapshot) float64 { return float64(s.Last.Exception) },
	"pass_qps_peak":             func(s *node.Snapshot) float64 { return float64(s.Peak) },
}

func newConstMetrics(c *collector.Collector) *constMetrics {
	p := &constMetrics{stats: c}
	for _, m := range exporter.Catalogue() {
		kind := prometheus.GaugeValue
		if m.Type == "counter" {
			kind = prometheus.CounterValue
		}
		row := constRow{
			prometheus.NewDesc(exporter.Namespace+"_"+m.Name, m.Help, m.Labels, nil), kind,
			constValues[m.Name],
		}
		switch {
		case row.value != nil:
			p.rows = append(p.rows, row)
		case m.Name == "rt_seconds":
			p.rows = append(p.rows, row)
		case m.Name == "block_total":
			p.blocks = row.desc
		case m.Name == "complete_total":
			p.completes = row.desc
		}
	}
	return p
}

// Describe implements prometheus.Collector.
func (p *constMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range p.rows {
		ch <- m.desc
	}
	ch <- p.blocks
	ch <- p.completes
}

// Collect implements prometheus.Collector.
func (p *constMetrics) Collect(ch chan<- prometheus.Metric) {
	var h node.Histogram
	var codes node.Codes
	moment := p.stats.Seal()
	for _, r := range moment.Resources {
		snap := r.View().Node().SnapshotByCode(moment.Now, &h, &codes)
		for _, m := range p.rows {
			if m.value != nil {
				ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&snap), r.Name())
				continue
			}
			buckets := map[float64]uint64{}
			for bound, n := range h.Classic() {
				buckets[bound.Seconds()] = uint64(n)
			}
			ch <- prometheus.MustNewConstHistogram(m.desc, uint64(h.Count()), h.Sum().Seconds(), buckets, r.Name())
		}
		for code, n := range codes.All() {
			ch <- prometheus.MustNewConstMetric(p.completes, prometheus.CounterValue, float64(n),
				r.Name(), collector.CodeName(code))
		}
		for reason, n := range r.Blocks() {
			ch <- prometheus.MustNewConstMetric(p.blocks, prometheus.CounterValue, float64(n), r.Name(), reason)
		}
	}
}

// SecondsShown is the number of seconds on a per-second page.
const SecondsShown = 15

// constSeconds exports the last seconds as const metrics with a timestamp.
type constSeconds struct {
	stats *collector.Collector
	rows  []constSecond
}

type constSecond struct {
	desc *prometheus.Desc
	read func(*node.MetricNode, *node.Histogram) (float64, bool)
}

// constReads read the metrics of a second. All of them report true, because every value exists in this benchmark.
var constReads = map[string]func(*node.MetricNode, *node.Histogram) (float64, bool){
	"persecond_pass": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return float64(m.Pass), true
	},
	"persecond_block": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return float64(m.Block), true
	},
	"persecond_complete": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return float64(m.Complete), true
	},
	"persecond_exception": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return float64(m.Exception), true
	},
	"persecond_occupied_pass": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return float64(m.OccupiedPass), true
	},
	"persecond_in_flight": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return float64(m.InFlight), true
	},
	"persecond_in_flight_avg": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return m.InFlightAvg(), true
	},
	"persecond_in_flight_max": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return float64(m.InFlightMax), true
	},
	"persecond_in_flight_max_upper": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return float64(m.InFlightMaxUpper), true
	},
	"persecond_pass_peak": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return float64(m.PassPeak), true
	},
	"persecond_rt_sum_seconds": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return m.RTSum.Seconds(), true
	},
	"persecond_rt_min_seconds": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return m.RTMin.Seconds(), m.Complete > 0
	},
	"persecond_rt_max_seconds": func(m *node.MetricNode, _ *node.Histogram) (float64, bool) {
		return m.RTMax.Seconds(), m.Complete > 0
	},
	"persecond_rt_p99_seconds": func(_ *node.MetricNode, h *node.Histogram) (float64, bool) {
		return h.Quantile(0.99).Seconds(), h.Count() > 0
	},
}

func newConstSeconds(c *collector.Collector) *constSeconds {
	p := &constSeconds{stats: c}
	for _, m := range exporter.Catalogue() {
		if read := constReads[m.Name]; read != nil {
			p.rows = append(p.rows,
				constSecond{prometheus.NewDesc(exporter.Namespace+"_"+m.Name, m.Help, []string{"resource"}, nil), read})
		}
	}
	return p
}

// Describe implements prometheus.Collector.
func (p *constSeconds) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range p.rows {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (p *constSeconds) Collect(ch chan<- prometheus.Metric) {
	moment := p.stats.Seal()
	var seconds []node.MetricNode
	rts := make([]node.Histogram, SecondsShown)
	for _, r := range moment.Resources {
		seconds = r.View().Node().AppendSeconds(seconds[:0], moment.Open-SecondsShown, moment.Open)
		r.View().Node().Histograms(moment.Open-SecondsShown, rts)
		for i := range seconds {
			for _, m := range p.rows {
				if v, ok := m.read(&seconds[i], &rts[i]); ok {
					ch <- prometheus.NewMetricWithTimestamp(seconds[i].Start,
						prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, v, r.Name()))
				}
			}
		}
	}
}

// SecondsQuery is the query of a per-second page for these seconds.
var SecondsQuery = "window=" + (SecondsShown * time.Second).String()
