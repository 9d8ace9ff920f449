package seconds

import (
	"iter"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// A dry run of a limit has a series from the first second in which it would have refused a call, and stops as series of resources
// do: when it would have refused nothing for a minute. The metric log has none of them.

var dryRunLabels = []string{"reason", "resource"}

// dryRuns iterates over the dry runs of a resource that would have refused something, by reason.
func dryRuns(x *collector.Resource) iter.Seq2[string, *node.View] {
	return func(yield func(string, *node.View) bool) {
		for reason, v := range x.DryRuns() {
			if n := v.Node(); n != nil && !yield(reason, n) {
				return
			}
		}
	}
}

// dryRuns emits what the dry runs of a resource would have refused.
func (e *emitter) dryRuns(r *Resources, x *collector.Resource, begin, end int64) {
	if len(e.metrics) == 0 {
		return
	}
	for reason, v := range dryRuns(x) {
		e.read(r, v, begin, end)
		e.emit(dryRunLabels, []string{reason, x.Name()}, e.seen)
	}
}

// drySize is the size of a second of a dry run, without names.
func (r *Resources) drySize(s *Selection) (one rowSize) {
	for _, m := range r.dryRuns.selected(s) {
		one.whole = Size{1, lineBytes + len(`reason="",`) + len(m.family.Name)}
	}
	return one
}
