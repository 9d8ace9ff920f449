package seconds

import (
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// emitter emits the samples of resources, one resource after the other.
type emitter struct {
	sink      Sink
	metrics   []*family
	histogram *table.Family // nil if not selected
	times     bool          // rts was read

	seconds []node.MetricNode
	rts     distributions
}

var resourceLabel = []string{"resource"}

// resource emits the logged seconds of a resource and then those of this process.
func (e *emitter) resource(name string, logged []node.MetricNode) {
	value := []string{name}
	for _, m := range e.metrics {
		e.sink.Series(&m.family, resourceLabel, value)
		if m.Logged {
			m.values(e.sink, logged)
		}
		if m.RT == nil {
			m.values(e.sink, e.seconds)
		} else if e.times {
			e.rts.values(e.sink, m.RT)
		}
	}
	if e.histogram != nil && e.times {
		e.sink.Series(e.histogram, resourceLabel, value)
		e.rts.points(e.sink)
	}
}

// values emits the metric's samples of the seconds given.
func (m *family) values(sink Sink, seconds []node.MetricNode) {
	for i := range seconds {
		if v, ok := m.Value(&seconds[i]); ok {
			sink.Value(seconds[i].Start.Unix(), v)
		}
	}
}
