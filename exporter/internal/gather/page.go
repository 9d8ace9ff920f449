package gather

import (
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/node"
)

// Page is a [Sink] that writes a text page. It writes no created timestamps: the text format has none, and those of OpenMetrics
// are lines of their own, each of which a server stores as a series unless it is configured to look for them. client_golang
// leaves them out, too.
type Page struct{ *text.Page }

// Labels implements [Sink].
func (p Page) Labels(names, values []string, _ time.Time) { p.Page.Labels(names, values) }

// Value implements [Sink].
func (p Page) Value(m *Metric, v float64) {
	p.Metric(&m.Family)
	p.Plain(v)
}

// Histogram implements [Sink].
func (p Page) Histogram(m *Metric, h *node.Histogram, exemplars []collector.Exemplar) {
	p.Metric(&m.Family)
	p.PlainHistogram(h, exemplars)
}
