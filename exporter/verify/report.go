package verify

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Report is the result of a comparison.
type Report struct {
	// From and To are the first and the last second that were compared; if From is after To, none was.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Labels are those of the instance in the database, or those that were asked for if it has none.
	Labels map[string]string `json:"labels"`
	// Seconds are those of which the log has samples, and Samples how many.
	Seconds int64 `json:"seconds"`
	Samples int64 `json:"samples"`
	// Missing, Different and Extra are the seconds in which anything is.
	Missing   int64 `json:"missing_seconds"`
	Different int64 `json:"different_seconds"`
	Extra     int64 `json:"extra_seconds"`
	// Idle are the samples of idle seconds that the database does not have, and need not have.
	Idle int64 `json:"idle_samples"`
	// Elsewhere are the seconds that other labels have: the database is right, and nothing is to be written under these.
	Elsewhere []NotHealed `json:"elsewhere,omitempty"`
	// NotHealed are the other seconds that are not to be written under these labels, as far as the rule of [Heal] knows: nobody has
	// them.
	NotHealed []NotHealed `json:"not_healed,omitempty"`
	// Findings are sorted by resource and metric.
	Findings []Finding `json:"findings"`
	// Notes say what was not compared, and why; Warnings are those of the server, with which nothing is certain.
	Notes    []string `json:"notes"`
	Warnings []string `json:"warnings"`

	holes  int64 // missing seconds that may be written
	last   int64 // the second of the log that was judged last
	ranges int   // of all findings
}

// NotHealed are seconds of the log that the labels lack, and why they are not written.
type NotHealed struct {
	Range
	Reason string `json:"reason"`
}

// judged notes what is to be said of a second of the log, the zero verdict for nothing. Seconds come in order.
func (r *Report) judged(unix int64, v verdict) {
	list := &r.NotHealed
	if v.held {
		list = &r.Elsewhere
	}
	switch n := len(*list); {
	case v.reason == "":
	case n > 0 && (*list)[n-1].Reason == v.reason && (*list)[n-1].extend(r.last, unix):
	case n < maxRanges:
		*list = append(*list, NotHealed{newRange(unix), v.reason})
	}
	r.last = unix
}

// Clean reports whether the database has what the log has of the instance, and nothing else. Seconds of others do not count.
func (r *Report) Clean() bool { return r.Missing+r.Different+r.Extra == 0 }

// Finding is what is wrong with a series. Of a report with very many ranges only the first are listed.
type Finding struct {
	Resource  string       `json:"resource"` // empty for all inbound traffic
	Metric    string       `json:"metric"`
	Missing   []Range      `json:"missing,omitempty"`
	Extra     []Range      `json:"extra,omitempty"`
	Different int64        `json:"different,omitempty"`
	Values    []Difference `json:"values,omitempty"` // the first that are different
}

// Range are seconds without another one of the log between them.
type Range struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Seconds int64     `json:"seconds"`
}

func newRange(unix int64) Range {
	at := time.Unix(unix, 0).UTC()
	return Range{at, at, 1}
}

// extend adds a second to a range that ends with the one before, and reports whether it does.
func (r *Range) extend(before, unix int64) bool {
	if r.To.Unix() != before {
		return false
	}
	r.To = time.Unix(unix, 0).UTC()
	r.Seconds++
	return true
}

// add adds a second to ranges: to the last one if that ends with the one before. No more than maxRanges are listed in all.
func (r *Report) add(to *[]Range, before, unix int64) {
	if n := len(*to); n > 0 && (*to)[n-1].extend(before, unix) {
		return
	}
	if r.ranges++; r.ranges <= maxRanges {
		*to = append(*to, newRange(unix))
	}
}

// Difference is a second with two values.
type Difference struct {
	At       time.Time `json:"at"`
	Log      float64   `json:"log"`
	Database Value     `json:"database"`
}

// Value is what a database may have: JSON has no number for some of it.
type Value float64

// MarshalJSON implements json.Marshaler: infinities are strings, "+Inf" and "-Inf", as Prometheus's API has them.
func (v Value) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(v), 0) {
		return fmt.Appendf(nil, "%q", fmt.Sprintf("%+v", float64(v))), nil
	}
	return json.Marshal(float64(v))
}

const (
	maxRanges = 10_000
	maxValues = 5 // of a series
)
