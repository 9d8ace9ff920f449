package collector_test

import (
	"errors"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A call with the option Passed completes in this process, but an earlier process has counted its pass. This process
// therefore counts no pass of the call. Limits on QPS neither count nor refuse the call.
func TestPassed(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetLimits([]collector.Limit{{Resource: "a", Grade: collector.QPS, Count: 1}}); err != nil {
		t.Fatal(err)
	}
	began := now.Add(-3 * time.Second)
	var entries []*collector.Entry
	for range 3 {
		_, e, err := c.Enter(t.Context(), "a", collector.Inbound(), collector.Passed(), collector.StartedAt(began))
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, &e)
	}
	if n := c.Resource("a").InFlight(); n != 3 {
		t.Errorf("%d in flight, want 3", n)
	}
	if e, err := c.Resource("a").TryEnter(); err != nil {
		t.Errorf("the limit was used up: %v", err)
	} else {
		e.Exit(nil)
	}
	now = now.Add(time.Second)
	for _, e := range entries {
		e.Exit(nil)
	}
	if n := c.Resource("a").Snapshot(nil).Total.Pass; n != 1 {
		t.Errorf("%d calls of the resource passed, want 1, by the handle", n)
	}
	if n := c.Inbound().Snapshot(nil).Total.Pass; n != 0 {
		t.Errorf("%d inbound calls passed, want 0", n)
	}
	if total := c.Inbound().Snapshot(nil).Total; total.Complete != 3 || total.RTSum != 12*time.Second ||
		c.Resource("a").InFlight() != 0 {
		t.Errorf("total: %+v", total)
	}
}

// A limit on concurrency counts calls with the option Passed, and refuses none of them.
func TestPassedCallsUseUpConcurrency(t *testing.T) {
	c := newCollector(t, collector.Options{})
	limit(t, c, collector.Limit{Resource: "a", Grade: collector.Concurrency, Count: 2})
	r := c.Resource("a")
	var entries []*collector.Entry
	for range 3 {
		_, e, err := c.Enter(t.Context(), "a", collector.Passed())
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, &e)
	}
	for i, e := range entries {
		refused := new(collector.BlockedError)
		if _, err := r.TryEnter(); !errors.As(err, &refused) && i < 2 {
			t.Errorf("a call entered next to %d in flight", r.InFlight())
		} else if i < 2 && refused.Reading != r.InFlight() {
			t.Errorf("%d in flight, but the limit read %d", r.InFlight(), refused.Reading)
		}
		e.Exit(nil)
	}
}
