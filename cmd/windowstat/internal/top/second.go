package top

import (
	"math"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// names are the names of a metric on the per-second page: of resources, and of all inbound traffic.
type names struct{ resources, inbound string }

func (n names) list() []string { return []string{n.resources, n.inbound} }

// onPage are the names of all metrics.
var onPage = lookUp(exporter.Catalogue())

// lookUp finds metrics by the column that they show: their names have more around it.
func lookUp(catalogue []exporter.Metric) (all [metrics]names) {
	for _, x := range catalogue {
		name, isInbound := strings.CutPrefix(strings.TrimPrefix(x.Name, "persecond_"), "inbound_")
		if x.Unit != "" {
			name = strings.TrimSuffix(name, "_"+x.Unit)
		}
		m := slices.Index(shown[:], name)
		switch {
		case m < 0 || !x.Seconds || x.Type != "gauge":
		case isInbound:
			all[m].inbound = x.Name
		default:
			all[m].resources = x.Name
		}
	}
	return all
}

// timed reports whether a metric is about how long calls take.
func timed(m metric) bool { return m == rtSum || m == rtP99 || m == inFlight }

// every has every metric.
var every = func() (list []metric) {
	for m := range metrics {
		list = append(list, m)
	}
	return list
}()

// adds tells which metrics add up over processes: neither peaks and extremes nor quantiles do.
var adds = func() (list [metrics]bool) {
	for _, c := range node.Columns() {
		if m := slices.Index(shown[:], c.Name); m >= 0 {
			list[m] = c.Kind != node.Peak && c.None == nil
		}
	}
	return list
}()

// second is a finished second. Unknown values are NaN.
type second struct {
	unix   int64
	values [metrics]float64
}

func unknown(unix int64) second {
	s := second{unix: unix}
	for m := range s.values {
		s.values[m] = math.NaN()
	}
	return s
}

// told returns the second with what is not sent of one in which a resource was idle: its passes stand alone, and are none. All
// else that can be zero is.
func (s second) told() second {
	for m, v := range s.values {
		if v != 0 && metric(m) == pass || !math.IsNaN(v) && metric(m) != pass {
			return s
		}
	}
	for m := range s.values {
		if adds[m] || metric(m) == peak {
			s.values[m] = 0
		}
	}
	return s
}

// mean returns the average response time in seconds, NaN if no call ended.
func (s *second) mean() float64 {
	if !(s.values[complete] > 0) {
		return math.NaN()
	}
	return s.values[rtSum] / s.values[complete]
}

// add adds the same second of another process. What is unknown of one is unknown of both. Peaks and quantiles do not add up: the
// highest of them is kept.
func (s *second) add(other *second) {
	for m, v := range other.values {
		switch x := &s.values[m]; {
		case adds[m]:
			*x += v
		case !(v <= *x) && !math.IsNaN(v):
			*x = v
		}
	}
}

// inbound is all inbound traffic, in the place of a resource: no resource has an empty name.
const inbound = ""

// sample is one value of a resource in a second.
type sample struct {
	resource string
	unix     int64
	metric   metric
	value    float64
}
