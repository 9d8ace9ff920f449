package collector_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

func TestRecordIsOneChange(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Record(
		"charge",
		collector.Completed{RT: 30 * time.Millisecond, Err: errors.New("no"), Code: collector.HTTPStatus(502)},
		collector.Inbound(),
		collector.Batch(3),
		collector.Origin("web"),
	)
	c.Record("charge", collector.Completed{RT: -time.Second, Nested: true}, collector.Inbound())
	r := c.Resource("charge")
	s := r.Snapshot(nil)
	if s.Total.Pass != 4 || s.Total.Complete != 4 || s.Total.Exception != 3 || s.Total.RTSum != 90*time.Millisecond ||
		s.InFlight != 0 ||
		s.InFlightSeconds != 0 {
		t.Errorf("%+v", s)
	}
	if got := c.Inbound().Snapshot(nil).Total.Pass; got != 4 {
		t.Errorf("%d inbound, want 4", got)
	}
	if got := c.Tree().View().Snapshot(nil).Total.Pass; got != 3 {
		t.Errorf("%d calls enter the process, want 3, because the nested call is part of another call", got)
	}
	(*collector.Collector)(nil).Record("charge", collector.Completed{})
}

// If Record counts a call of an overflowing name, the call uses quota, like a call that enters. The resource "first"
// fills the table of resources, so the names "GET /a" and "GET /b" overflow.
func TestRecordUsesUpLimits(t *testing.T) {
	c, err := collector.New(collector.Options{MaxResources: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetLimits([]collector.Limit{{Resource: "GET /*", Count: 2}}); err != nil {
		t.Fatal(err)
	}
	c.Resource("first")
	for range 3 {
		c.Record("GET /a", collector.Completed{})
	}
	c.Record("GET /b", collector.Completed{})
	if got := c.Resource(collector.Other).Snapshot(nil).Total.Pass; got != 4 {
		t.Fatalf("%d calls of %s, want 4", got, collector.Other)
	}
	for name, want := range map[string]error{"GET /a": collector.ErrBlocked, "GET /b": nil} {
		_, e, err := c.Enter(t.Context(), name)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		e.Exit(nil)
	}
}

// If Options.Exception panics in Record, Record still counts the call once, as an exception. It does not recover the
// panic.
func TestRecordCountsPanics(t *testing.T) {
	c, err := collector.New(collector.Options{Exception: func(error) bool { panic("oh") }})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Record has recovered the panic")
			}
		}()
		c.Record("charge", collector.Completed{Err: errors.New("no")})
	}()
	if s := c.Resource("charge").Snapshot(nil).Total; s.Complete != 1 || s.Exception != 1 {
		t.Errorf("%+v", s)
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		c.Record("charge", collector.Completed{RT: 1},
			collector.Inbound())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleCollector_Record() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	c.Record("import", collector.Completed{RT: 1500 * time.Millisecond})
	fmt.Println(c.Resource("import").Snapshot(nil).Total.AvgRT())
	// Output: 1.5s
}
