package collector_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector"
)

// Publish panics if one of its metrics is invalid, or if the name of a metric conflicts with an existing metric. It
// then publishes none of its metrics.
func TestPublishRefuses(t *testing.T) {
	one := func() float64 { return 1 }
	read := func(yield func(float64, ...string)) { yield(1, "a") }
	for name, test := range map[string]struct {
		metric collector.Metric
		want   string
	}{
		"no name":                 {collector.Metric{Value: one}, "a name consists of letters"},
		"a bad name":              {collector.Metric{Name: "a-b", Value: one}, "a name consists of letters"},
		"a name that is no UTF-8": {collector.Metric{Name: "a\xff", Value: one}, "a name consists of letters"},
		"a digit in front":        {collector.Metric{Name: "1a", Value: one}, "a name consists of letters"},
		"a HELP that is no UTF-8": {
			collector.Metric{Name: "a", Help: "\xff", Value: one},
			"Help is not valid UTF-8",
		},
		"a bad label": {collector.Metric{Name: "a", Labels: []string{"b.c"}, Read: read}, `label "b.c"`},
		"a label of servers": {
			collector.Metric{Name: "a", Labels: []string{"__name__"}, Read: read},
			`label "__name__"`,
		},
		"a label twice": {
			collector.Metric{Name: "a", Labels: []string{"b", "b"}, Read: read},
			`label "b" appears twice`,
		},
		"a unit that the name lacks": {
			collector.Metric{Name: "a_total", Unit: "seconds", Value: one},
			`the name must end with the unit "seconds"`,
		},
		"a unit within the name": {
			collector.Metric{Name: "a_seconds_total_x", Unit: "seconds", Value: one},
			`the name must end with the unit "seconds"`,
		},
		"no value": {collector.Metric{Name: "a"}, "one of Value and Read is needed"},
		"two values": {
			collector.Metric{Name: "a", Value: one, Read: read},
			"one of Value and Read is needed",
		},
		"labels without Read": {
			collector.Metric{Name: "a", Labels: []string{"b"}, Value: one},
			"a metric with labels needs Read",
		},
		"one of the Collector's": {collector.Metric{Name: "resources", Value: one}, `conflicts with "resources"`},
		"the same with other labels": {
			collector.Metric{Name: "there_total", Labels: []string{"b"}, Read: read},
			"exists with the labels",
		},
		"the same in OpenMetrics": {collector.Metric{Name: "there", Value: one}, `"there_total" exists`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := collector.New(collector.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.Publish(collector.Metric{Name: "there_total", Value: one})
			before := len(c.Metrics())
			func() {
				defer func() {
					if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), test.want) {
						t.Errorf("Publish panics with %v, want a message with %q", p, test.want)
					}
				}()
				c.Publish(collector.Metric{Name: "good", Value: one}, test.metric)
			}()
			if n := len(c.Metrics()); n != before {
				t.Errorf("Publish added %d metrics, want none", n-before)
			}
			// The same metric can be published a second time. Publish returns a function that withdraws the second
			// publication.
			c.Publish(collector.Metric{Name: "there_total", Value: one})()
		})
	}
}

// Metric.Each skips a metric without Value and Read, and a metric whose Value panics. It skips a series with a wrong
// number of label values, and replaces invalid UTF-8 in a label value. If Read panics, Each yields the series before
// the panic.
func TestEachOfABadValue(t *testing.T) {
	var got []string
	each := func(m collector.Metric) {
		m.Each(func(v float64, labels ...string) { got = append(got, fmt.Sprintf("%s %v %q", m.Name, v, labels)) })
	}
	each(collector.Metric{Name: "a", Value: func() float64 { panic("oh") }})
	each(collector.Metric{Name: "b", Labels: []string{"l"}, Read: func(yield func(float64, ...string)) {
		yield(1, "x")
		yield(2)
		yield(3, "x", "y")
		yield(4, "\xffz")
		panic("oh")
	}})
	each(collector.Metric{Name: "c"})
	if want := []string{`b 1 ["x"]`, `b 4 ["�z"]`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
