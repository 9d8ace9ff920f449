package live_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// The details of a resource list its callers by their paths, its origins, limits, blocks and codes.
func TestDetailsOfResource(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	for range 3 { // a calls b, and b calls a
		ctx, e, err := c.Enter(t.Context(), "a", collector.Origin("mobile"), collector.Entrance("http"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, inner, _ := c.Enter(ctx, "b")
		_, again, _ := c.Enter(ctx, "a")
		*now = now.Add(time.Millisecond)
		again.Exit(nil)
		inner.Exit(nil)
		e.Exit(nil)
	}
	c.Block(t.Context(), "b", "because")
	if err := c.SetLimits([]collector.Limit{{Resource: "b", Grade: collector.Concurrency, Count: 7}}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Second)
	m := poll(t, p, "", "resource=b")
	const want = "map[blocks:[{because 0 1 0}] callers:[{http › a 3 0 0} {_default 0 1 0}] codes:[{ 0 0 3}] " +
		"limits:[{concurrency 7 0 0}] origins:[{mobile 3 0 0} { 0 1 0}] running:[]]"
	if got := fmt.Sprint(m.Details); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// A later message has the changed details.
	c.Block(t.Context(), "b", "because", collector.Origin("desktop"))
	if err := c.SetLimits([]collector.Limit{{Resource: "b", Grade: collector.QPS, Count: 9}}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Second)
	m = poll(t, p, m.After, "resource=b")
	const next = "map[blocks:[{because 0 2 0}] callers:[{http › a 3 0 0} {_default 0 2 0}] codes:[{ 0 0 3}] " +
		"limits:[{qps 9 0 0}] origins:[{mobile 3 0 0} { 0 1 0} {desktop 0 1 0}] running:[]]"
	if got := fmt.Sprint(m.Details); got != next {
		t.Errorf("%s\nwant %s", got, next)
	}
	for _, name := range []string{"c", ""} { // no resources
		if none := poll(t, p, "", "resource="+name); none.Resource != nil || none.Details != nil {
			t.Errorf("%q: %v", name, none.Details)
		}
	}
}

// The resource [collector.Other] has details like any other resource. A node of the call tree that represents calls
// below the maximum depth has the same name but no counts, and is not listed as a caller.
func TestDetailsOfOverflow(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := collector.Options{Now: func() time.Time { return now }, MaxResources: collector.MaxDepth + 1}
	c, err := collector.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := live.New(c, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var names []string
	for i := range collector.MaxDepth + 1 {
		names = append(names, fmt.Sprint("n", i))
	}
	for _, name := range append(names, "beyond") { // the last two are too deep for the tree
		inner, e, err := c.Enter(ctx, name, collector.Origin("mobile"), collector.Entrance("http"))
		if err != nil {
			t.Fatal(err)
		}
		ctx = inner
		defer e.Exit(nil)
	}
	c.Block(t.Context(), "further beyond", "", collector.Entrance("http"))
	cut := false
	var walk func(*collector.TreeNode)
	walk = func(at *collector.TreeNode) {
		for _, child := range at.Children() {
			cut = cut || child.Name() == collector.Other && child.View().Node() == nil
			walk(child)
		}
	}
	if walk(c.Tree()); !cut {
		t.Fatal("the tree has no node for calls below the maximum depth")
	}
	now = now.Add(time.Second)
	m := poll(t, p, "", "resource="+collector.Other)
	const want = "[{ 0 1 0} {mobile 1 0 0}] [{http 1 1 0}]"
	if got := fmt.Sprint(m.Details["origins"], m.Details["callers"]); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The oldest calls in flight are listed in groups, oldest first, with resource, origin, entrance, number, traces and
// start. Calls below a second are omitted.
func TestOldestCalls(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	ctx, request, _ := c.Enter(t.Context(), "GET /", collector.Inbound(), collector.Origin("web"),
		collector.Entrance("http"), collector.TraceID(`4bf9<b>`))
	began := now.UnixMilli()
	*now = now.Add(1500 * time.Millisecond)
	_, hung, _ := c.Enter(ctx, "db")
	*now = now.Add(time.Second)
	_, fresh, _ := c.Enter(t.Context(), "db")
	defer fresh.Exit(nil)
	*now = now.Add(500 * time.Millisecond)
	want := fmt.Sprintf("[{GET / web http 1 [4bf9<b>] %d} {db web http 1 [4bf9<b>] %d}]", began, began+1500)
	if m := poll(t, p, ""); fmt.Sprint(m.Running) != want || m.Age != -1 {
		t.Errorf("got %v, want %s; age %d", m.Running, want, m.Age)
	}
	m := poll(t, p, "", "resource=db")
	if n := len(m.Details["running"]); n != 1 || m.Age/1000 != 999 {
		t.Errorf("%d calls of the resource, average age %d µs", n, m.Age)
	}
	hung.Exit(nil)
	request.Exit(nil)
	*now = now.Add(time.Second)
	if m := poll(t, p, ""); len(m.Running) != 1 || m.Running[0].Resource != "db" {
		t.Errorf("after the end of two calls, got %v", m.Running)
	}
}

// Fifty calls of two resources are two groups, with a few trace IDs each.
func TestOldestCallsAreGrouped(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	for i := range 50 {
		_, e, err := c.Enter(t.Context(), []string{"a", "b"}[i%2], collector.TraceID(fmt.Sprint("t", i)))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Exit(nil)
		*now = now.Add(time.Millisecond)
	}
	*now = now.Add(2 * time.Second)
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMilli()
	want := fmt.Sprintf("[{a  _default 25 [t0 t2 t4] %d} {b  _default 25 [t1 t3 t5] %d}]", began, began+1)
	if got := fmt.Sprint(poll(t, p, "").Running); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
