package top

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
)

// counts is the state of the counters of a metrics page, to subtract from the next.
type counts struct {
	started float64 // when the process began, Unix time
	rt      map[string]*times
}

// readMetrics reads a metrics page: its gauges give the last second, its histograms the response times since the last poll.
// The histograms are coarse, and seconds between two polls are missing.
func (r *reader) readMetrics(ctx context.Context) (a answer, err error) {
	p, at, err := r.get(ctx, r.page, nil)
	if err != nil {
		return a, err
	}
	a.plain, a.newest = true, at.Unix()-1
	namespace := strings.TrimSuffix(p.find(overflow).GetName(), overflow)
	now, seconds := counts{rt: map[string]*times{}}, map[string]*second{}
	for _, x := range p["process_start_time_seconds"].GetMetric() {
		now.started = valueOf(x)
	}
	for m, name := range gauges {
		for _, x := range p[namespace+name].GetMetric() { // there is none without a name
			resource, err := resourceOf(x)
			if err != nil {
				return a, err
			}
			s := seconds[resource]
			if s == nil {
				s = new(second)
				*s = unknown(a.newest)
				seconds[resource] = s
			}
			if v := valueOf(x); math.IsNaN(s.values[m]) {
				s.values[m] = v
			} else if adds[m] { // a page by origin has several series
				s.values[m] += v
			}
		}
	}
	for _, x := range p[namespace+rts].GetMetric() {
		resource, err := resourceOf(x)
		if err != nil {
			return a, err
		}
		t := now.rt[resource]
		if t == nil {
			t = new(times)
			now.rt[resource] = t
		}
		t.add(x.GetHistogram())
	}
	if before := r.before; before != nil {
		if a.restarted = before.started != now.started; !a.restarted {
			for resource, s := range seconds {
				s.respond(now.rt[resource].since(before.rt[resource]))
			}
		}
	}
	if r.before = &now; a.restarted {
		r.page = nil // it may have a per-second endpoint now
	}
	for _, resource := range slices.Sorted(maps.Keys(seconds)) {
		for m, v := range seconds[resource].values {
			a.samples = append(a.samples, sample{resource, a.newest, metric(m), v})
		}
	}
	return a, nil
}
