package verify

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Limits of a Report. Its counts are exact beyond them.
const (
	maxRanges = 10_000 // in all findings, in Elsewhere, and in NotHealed
	maxValues = 5      // different values of a series
)

// Report is the result of a comparison.
type Report struct {
	// From and To are the first and the last second that were compared. If From is after To, no second was compared.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Labels are the labels of the instance in the database, or Options.Labels if the database does not have it.
	Labels map[string]string `json:"labels"`
	// Seconds counts the seconds with samples in the log, and Samples counts the compared samples.
	Seconds int64 `json:"seconds"`
	Samples int64 `json:"samples"`
	// Missing, Different and Extra count the seconds with at least one such sample.
	Missing   int64 `json:"missing_seconds"`
	Different int64 `json:"different_seconds"`
	Extra     int64 `json:"extra_seconds"`
	// Idle counts the samples of idle seconds that the database lacks and need not have.
	Idle int64 `json:"idle_samples"`
	// Elsewhere lists the seconds that other labels have. The database is right.
	Elsewhere []NotHealed `json:"elsewhere,omitempty"`
	// NotHealed lists the other seconds that the labels lack and [Heal] does not write.
	NotHealed []NotHealed `json:"not_healed,omitempty"`
	// Findings are sorted by resource and metric.
	Findings []Finding `json:"findings"`
	// Notes list the parts that were not compared, with the reasons. Warnings are the warnings of the server; with a
	// warning, no other field is reliable.
	Notes    []string `json:"notes"`
	Warnings []string `json:"warnings"`

	writable    int64 // missing seconds that Heal may write
	lastDecided int64 // last second of the log that addDecision got
	ranges      int   // in all findings, including ranges that are not listed
}

// NotHealed is a range of seconds of the log that the labels lack, and the reason for not writing them.
type NotHealed struct {
	Range
	Reason string `json:"reason"`
}

// addDecision lists a second of the log if its decision has a reason. Seconds must be added in order, including those
// without a decision.
func (r *Report) addDecision(unix int64, d decision) {
	list := &r.NotHealed
	if d.verdict == verdictElsewhere {
		list = &r.Elsewhere
	}
	switch n := len(*list); {
	case d.reason == "":
	case n > 0 && (*list)[n-1].Reason == d.reason && (*list)[n-1].extend(r.lastDecided, unix):
	case n < maxRanges:
		*list = append(*list, NotHealed{newRange(unix), d.reason})
	}
	r.lastDecided = unix
}

// Clean reports whether the database has the same samples as the log. Seconds that other labels have do not count.
func (r *Report) Clean() bool { return r.Missing+r.Different+r.Extra == 0 }

// Finding describes the differences of one series. A Report lists at most 10,000 ranges in all its findings.
type Finding struct {
	Resource  string       `json:"resource"` // empty for the total of all inbound calls
	Metric    string       `json:"metric"`
	Missing   []Range      `json:"missing,omitempty"`
	Extra     []Range      `json:"extra,omitempty"`
	Different int64        `json:"different,omitempty"`
	Values    []Difference `json:"values,omitempty"` // the first five
}

// Range is a range of seconds. Seconds that the log does not have do not interrupt a Range and are not counted.
type Range struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Seconds int64     `json:"seconds"`
}

// newRange returns a Range of one second.
func newRange(unix int64) Range {
	at := time.Unix(unix, 0).UTC()
	return Range{at, at, 1}
}

// extend adds a second to the range if the range ends with the second before. It reports whether it added the second.
func (r *Range) extend(before, unix int64) bool {
	if r.To.Unix() != before {
		return false
	}
	r.To = time.Unix(unix, 0).UTC()
	r.Seconds++
	return true
}

// extend adds a second to a list of ranges: to the last range if that ends with the second before, or as a new range.
func (r *Report) extend(list *[]Range, before, unix int64) {
	if n := len(*list); n > 0 && (*list)[n-1].extend(before, unix) {
		return
	}
	if r.ranges++; r.ranges <= maxRanges {
		*list = append(*list, newRange(unix))
	}
}

// Difference is a second with different values in the log and in the database.
type Difference struct {
	At       time.Time `json:"at"`
	Log      float64   `json:"log"`
	Database Value     `json:"database"`
}

// Value is a value of the database. Infinite values have no JSON number.
type Value float64

// MarshalJSON implements json.Marshaler. As in the API of Prometheus, infinities are the strings "+Inf" and "-Inf".
func (v Value) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(v), 0) {
		return fmt.Appendf(nil, "%q", fmt.Sprintf("%+v", float64(v))), nil
	}
	return json.Marshal(float64(v))
}
