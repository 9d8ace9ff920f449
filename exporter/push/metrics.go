package push

import (
	"net/url"

	"github.com/windowstat/windowstat/collector"
)

// metrics returns the metrics that a Pusher publishes about itself. The labels distinguish the Pushers of a process.
func (p *Pusher) metrics() []collector.Metric {
	metric := func(name, unit, help string, value func(*totals) float64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: unit, Help: help, Labels: []string{"format", "target"},
			Read: func(yield func(float64, ...string)) {
				p.mu.Lock()
				v := value(&p.total)
				p.mu.Unlock()
				yield(v, p.opts.Format.name(), target(p.opts.URL))
			},
		}
	}
	return []collector.Metric{
		metric("push_lag_seconds", "seconds",
			"Number of sealed seconds that were not pushed yet, by URL and by format: "+
				"remote_write, vm, otlp or otlp_delta.",
			func(*totals) float64 { return float64(p.line.Count(p.at.Next, p.line.Open())) }),
		metric("push_seconds_total", "seconds",
			"Seconds that were sent. Some of their samples may be refused or unconfirmed.",
			func(t *totals) float64 { return float64(t.seconds) }),
		metric("push_samples_total", "",
			"Samples that the server accepted.",
			func(t *totals) float64 { return float64(t.samples) }),
		metric("push_unconfirmed_samples_total", "",
			"Samples that may have arrived, not counted as accepted. After an attempt with an unclear result "+
				"the server rejected them as duplicates or out of order, or gave no clear result again.",
			func(t *totals) float64 { return float64(t.unconfirmed) }),
		metric("push_resent_samples_total", "",
			"Accepted samples that an earlier attempt may have stored, too. "+
				"VictoriaMetrics without deduplication then stores them twice.",
			func(t *totals) float64 { return float64(t.resent) }),
		metric("push_refused_samples_total", "",
			"Samples that the server refused permanently.",
			func(t *totals) float64 { return float64(t.refused) }),
		metric("push_bytes_total", "bytes",
			"Compressed bytes that the server accepted.",
			func(t *totals) float64 { return float64(t.bytes) }),
		metric("push_retries_total", "",
			"Requests that were resent because the server was unreachable or did not accept them.",
			func(t *totals) float64 { return float64(t.retries) }),
		metric("push_lost_seconds_total", "seconds",
			"Seconds that were dropped, as a whole or in part, before they were sent, "+
				"and seconds from the metric log that the server refused.",
			func(t *totals) float64 { return float64(t.lost) }),
		metric("push_last_success_timestamp_seconds", "seconds",
			"Unix time of the last successful push, or 0 before the first.",
			func(t *totals) float64 { return float64(t.succeeded) / 1000 }),
	}
}

// target returns the URL s without user, query and fragment, because these may be secret.
func target(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
