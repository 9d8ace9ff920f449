package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
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

	holes int64   // missing seconds that may be written
	last  verdict // about the last second
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
	at := time.Unix(unix, 0).UTC()
	switch n := len(*list); {
	case v.reason == "" || n == maxRanges:
	case v == r.last:
		(*list)[n-1].To = at
		(*list)[n-1].Seconds++
	default:
		*list = append(*list, NotHealed{Range{at, at, 1}, v.reason})
	}
	r.last = v
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

// findings collect what is wrong, range by range.
type findings struct {
	series map[key]*finding
	ranges int
	cut    bool // some ranges are not listed
}

type finding struct {
	Finding
	open bool // the last sample of the log is missing
}

func (f *findings) of(k key) *finding {
	x := f.series[k]
	if x == nil {
		x = &finding{Finding: Finding{Resource: k.resource, Metric: k.metric}}
		f.series[k] = x
	}
	return x
}

// add adds a second to the ranges: to the last one if that goes on.
func (f *findings) add(to *[]Range, unix int64, goesOn bool) {
	at := time.Unix(unix, 0).UTC()
	if n := len(*to); goesOn && n > 0 {
		(*to)[n-1].To = at
		(*to)[n-1].Seconds++
		return
	}
	if f.ranges++; f.ranges > maxRanges {
		f.cut = true
		return
	}
	*to = append(*to, Range{at, at, 1})
}

func (f *findings) missing(k key, unix int64) {
	x := f.of(k)
	f.add(&x.Missing, unix, x.open && !f.cut)
	x.open = true
}

func (f *findings) extra(k key, unix int64) {
	x := f.of(k)
	n := len(x.Extra)
	f.add(&x.Extra, unix, n > 0 && x.Extra[n-1].To.Unix() == unix-1)
}

func (f *findings) different(k key, unix int64, log, database float64) {
	x := f.of(k)
	if x.Different++; len(x.Values) < maxValues {
		x.Values = append(x.Values, Difference{time.Unix(unix, 0).UTC(), log, Value(database)})
	}
}

// stored notes that a sample is not missing.
func (f *findings) stored(k key) {
	if x := f.series[k]; x != nil {
		x.open = false
	}
}

func (f *findings) list() []Finding {
	list := []Finding{}
	for _, x := range f.series {
		list = append(list, x.Finding)
	}
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Metric, b.Metric))
	})
	return list
}
