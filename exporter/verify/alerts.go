package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Alert is a period in which an alert fired without a pause.
type Alert struct {
	Name string
	// Labels are the other labels of the alert, sorted and separated by commas: job="shop", severity="page". They do
	// not include the state of the alert.
	Labels string
	// From and To are the first and the last evaluation at which the alert fired, in steps of [AlertStep].
	From time.Time
	To   time.Time
}

// AlertStep is the resolution of [Alerts]. Alerts may miss an alert that fired for a shorter time.
const AlertStep = 15 * time.Second

// Alerts returns the alerts that fired in a range, sorted by their beginning. It uses URL, Client, Timeout and Labels
// of the options. It selects the alerts that have all of Labels, and all alerts if Labels is empty. The label job also
// selects the job of the per-second endpoint, which ends in -seconds, because some alerts of a service have the one job
// and some the other. Alerts finds only alerts that the database has: Prometheus stores the alerts that it evaluates,
// and other programs, such as vmalert, write theirs to the database. Alerts returns an error if the query fails or if
// the server warns that the response may be incomplete.
func Alerts(ctx context.Context, o Options, from, to time.Time) ([]Alert, error) {
	o.defaults(DefaultDelay)
	// Prometheus records a firing alert as a sample of the metric ALERTS, with the labels of the alert.
	firing := map[string]string{"alertstate": "firing"}
	maps.Copy(firing, o.Labels)
	var data queryResult
	c := newClient(o)
	err := c.get(ctx, "query_range", url.Values{
		"query":   {"ALERTS" + alertSelector(firing)},
		"start":   {unixTime(from.Unix())},
		"end":     {unixTime(to.Unix())},
		"step":    {AlertStep.String()},
		"timeout": {o.Timeout.String()},
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
			// The series of an alert has no samples while the alert does not fire.
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
	// A report of an incident must not omit an alert silently, so a warning is an error here.
	for _, warning := range slices.Sorted(maps.Keys(c.warnings)) {
		err = cmp.Or(err, fmt.Errorf("the database warns: %s", warning))
	}
	return all, err
}

// secondsJob is the end of the job of a per-second endpoint, if it differs from the job of the service.
const secondsJob = "-seconds"

// alertSelector returns a selector of the alerts with the labels. If the labels have a job, the selector matches both
// jobs of the service: with and without the end -seconds.
func alertSelector(labels map[string]string) string {
	job := strings.TrimSuffix(labels["job"], secondsJob)
	if job == "" {
		return selector(nil, labels)
	}
	labels = maps.Clone(labels)
	delete(labels, "job")
	s := selector(nil, labels)
	either := strconv.Quote(regexp.QuoteMeta(job) + "(" + secondsJob + ")?")
	return strings.TrimSuffix(s, "}") + ",job=~" + either + "}"
}
