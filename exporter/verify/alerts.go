package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Alert is a time in which an alert fired.
type Alert struct {
	Name   string
	Labels string    // the others, name="value", sorted
	From   time.Time // first and last evaluation that found it, to within [AlertStep]
	To     time.Time
}

// AlertStep is how finely [Alerts] knows when an alert fired. One that fired for less may be missed.
const AlertStep = 15 * time.Second

// Alerts asks the database which alerts fired in a range, the first one first. Of the options it takes URL, Client, Timeout and Labels,
// which an alert must have; there need not be any. Prometheus has the alerts that it evaluates itself; others, such as vmalert, write
// theirs. The error says that the database could not be asked, or has warned that something may be missing.
func Alerts(ctx context.Context, o Options, from, to time.Time) ([]Alert, error) {
	o.defaults(DefaultDelay)
	firing := map[string]string{"alertstate": "firing"}
	maps.Copy(firing, o.Labels)
	var data result
	c := newClient(o)
	err := c.get(ctx, "query_range", url.Values{
		"query": {"ALERTS" + selector(nil, firing)}, "start": {unixTime(from.Unix())}, "end": {unixTime(to.Unix())},
		"step": {AlertStep.String()}, "timeout": {o.Timeout.String()},
	}, &data)
	all := []Alert{}
	for _, series := range data.Result {
		a := Alert{Name: series.Metric["alertname"]}
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(series.Metric)) {
			if name != "__name__" && name != "alertname" && name != "alertstate" {
				labels = append(labels, name+"="+strconv.Quote(series.Metric[name]))
			}
		}
		a.Labels = strings.Join(labels, ", ")
		for i, p := range series.Values {
			at := time.UnixMilli(p.at)
			if i == 0 || at.Sub(a.To) > AlertStep {
				a.From = at
				all = append(all, a)
			}
			a.To, all[len(all)-1].To = at, at
		}
	}
	slices.SortStableFunc(all, func(a, b Alert) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Labels, b.Labels))
	})
	for _, warning := range slices.Sorted(maps.Keys(c.warned)) {
		err = cmp.Or(err, fmt.Errorf("the database warns: %s", warning))
	}
	return all, err
}
