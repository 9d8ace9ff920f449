package seconds

import (
	"github.com/windowstat/windowstat/node"
)

// distributions are the response times in some seconds of one resource. They keep their memory for the next.
type distributions struct {
	hs     []node.Histogram
	unix   []int64 // of the seconds, 0 for one that must not be handed out
	before node.Histogram
	known  int  // how many of the first are not known
	whole  bool // before is known
}

// read reads those of the seconds from from to before to that are kept, and if it is wanted what was before them.
func (d *distributions) read(r *Resources, v *node.View, from, to int64, before bool) {
	from = max(from, to-r.minute, v.Since())
	n := int(max(to-from, 0))
	for len(d.hs) < n {
		d.hs = append(d.hs[:cap(d.hs)], node.Histogram{})
	}
	d.hs, d.unix = d.hs[:n], d.unix[:0]
	first := v.Histograms(from, d.hs)
	for i := from; i < to; i++ {
		unix := int64(0)
		if name, ok := r.stats.Timeline().Name(i); ok && i >= first {
			unix = name.Unix()
		}
		d.unix = append(d.unix, unix)
	}
	d.known = int(max(first-from, 0))
	d.whole = before && v.HistogramBefore(max(first, from), &d.before)
}

// values emits what the response times of each second have for a metric.
func (d *distributions) values(sink Sink, of func(*node.Histogram) float64) {
	for i := range d.hs {
		if h := &d.hs[i]; d.unix[i] != 0 && h.Count() > 0 {
			sink.Value(d.unix[i], of(h))
		}
	}
}

// points emits the cumulative histogram at the end of each second.
func (d *distributions) points(sink Sink) {
	if !d.whole {
		return
	}
	for i := d.known; i < len(d.hs); i++ {
		d.before.Add(&d.hs[i])
		if d.unix[i] != 0 {
			sink.Histogram(d.unix[i]+1, &d.before)
		}
	}
}
