package gather

import (
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/node"
)

// Page is a [Sink] that writes a text page.
type Page struct{ *text.Page }

// Value implements [Sink].
func (p Page) Value(m *Metric, v float64) {
	p.Metric(&m.Family)
	p.Plain(v)
}

// Histogram implements [Sink].
func (p Page) Histogram(m *Metric, h *node.Histogram, _ time.Time, exemplars []collector.Exemplar) {
	p.Metric(&m.Family)
	p.PlainHistogram(h, exemplars)
}
