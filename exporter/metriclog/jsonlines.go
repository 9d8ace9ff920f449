package metriclog

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// jsonLine is a row of the log of JSON lines. Its fields are named like the metrics of single seconds.
type jsonLine struct {
	TS           int64                 `json:"ts"` // the start in Unix milliseconds
	Time         string                `json:"time"`
	Resource     string                `json:"resource"`
	Pass         int64                 `json:"pass"`
	Block        int64                 `json:"block"`
	Complete     int64                 `json:"complete"`
	Exception    int64                 `json:"exception"`
	OccupiedPass int64                 `json:"occupied_pass"`
	InFlight     int64                 `json:"in_flight"`
	InFlightMax  int64                 `json:"in_flight_max"`
	PassPeak     int64                 `json:"pass_peak"`
	RT           *jsonTimes            `json:"rt,omitempty"` // nil if no call ended
	Origins      map[string]jsonCounts `json:"origins,omitempty"`
	Entrances    map[string]jsonCounts `json:"entrances,omitempty"`
}

// jsonTimes are response times in seconds.
type jsonTimes struct {
	Sum float64 `json:"sum_seconds"`
	Min float64 `json:"min_seconds"`
	Max float64 `json:"max_seconds"`
	// The quantiles are nil if the Collector does not know them any more.
	*jsonQuantiles
}

type jsonQuantiles struct {
	P50  float64 `json:"p50_seconds"`
	P90  float64 `json:"p90_seconds"`
	P99  float64 `json:"p99_seconds"`
	P999 float64 `json:"p999_seconds"`
}

// jsonCounts are the counts of a part of a resource's calls.
type jsonCounts struct {
	Pass      int64 `json:"pass"`
	Block     int64 `json:"block"`
	Complete  int64 `json:"complete"`
	Exception int64 `json:"exception"`
}

// jsonLines are the lines of one second.
type jsonLines struct {
	buf  bytes.Buffer
	time string
	hist node.Histogram

	untimed bool // response times are not known
}

func (l *jsonLines) begin(start time.Time) {
	l.buf.Reset()
	l.time = start.Format(time.RFC3339)
}

func (l *jsonLines) bytes() []byte { return l.buf.Bytes() }

// add adds the line of a resource; nil is no resource, but a view of several.
func (l *jsonLines) add(name string, r *collector.Resource, v *node.View, index int64, m *node.MetricNode) {
	line := jsonLine{
		TS: m.Start.UnixMilli(), Time: l.time, Resource: name,
		Pass: m.Pass, Block: m.Block, Complete: m.Complete, Exception: m.Exception, OccupiedPass: m.OccupiedPass,
		InFlight: m.InFlight, InFlightMax: m.InFlightMax, PassPeak: m.PassPeak,
	}
	if m.Complete > 0 && !l.untimed {
		line.RT = &jsonTimes{Sum: m.RTSum.Seconds(), Min: m.RTMin.Seconds(), Max: m.RTMax.Seconds()}
		if v.Histogram(index, index+1, &l.hist) {
			quantile := func(q float64) float64 { return l.hist.Quantile(q).Seconds() }
			line.RT.jsonQuantiles = &jsonQuantiles{quantile(.5), quantile(.9), quantile(.99), quantile(.999)}
		}
	}
	if r != nil {
		for origin, v := range r.Origins() {
			line.Origins = addCounts(line.Origins, origin, v.Node(), index)
		}
		for entrance, v := range r.Entrances() {
			line.Entrances = addCounts(line.Entrances, entrance, v.Node(), index)
		}
	}
	encoder := json.NewEncoder(&l.buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		panic(err) // it is numbers and names
	}
}

// addCounts adds what a part of a resource did in a second, if it did anything.
func addCounts(to map[string]jsonCounts, name string, v *node.View, index int64) map[string]jsonCounts {
	m, ok := v.Second(index)
	if !ok || m.Idle() {
		return to
	}
	if to == nil {
		to = map[string]jsonCounts{}
	}
	to[name] = jsonCounts{m.Pass, m.Block, m.Complete, m.Exception}
	return to
}
