package collector_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// answered returns the number of completed calls of a view for each code. It omits codes without calls.
func answered(v collector.View) map[string]int64 {
	all := map[string]int64{}
	for code, n := range v.Codes() {
		if n != 0 {
			all[code.String()] += n
		}
	}
	return all
}

// Each status in IANA's registry and each status of nginx has its own code. All other numbers share one code, so the
// number of codes is bounded.
func TestHTTPStatus(t *testing.T) {
	// net/http has all statuses of IANA's registry except 104, which is temporary, and 306, which is unused.
	registered := map[int]bool{104: true, 306: true}
	for status := range 1000 {
		if http.StatusText(status) != "" {
			registered[status] = true
		}
	}
	if len(registered) != 64 {
		t.Errorf("%d registered statuses, want 64", len(registered))
	}
	for _, nginx := range []int{444, 494, 495, 496, 497, 498, 499} {
		registered[nginx] = true
	}
	for status := -1; status <= 70_000; status++ {
		want := collector.OtherCode
		if registered[status] {
			want = strconv.Itoa(status)
		}
		if got := collector.HTTPStatus(status).String(); got != want {
			t.Errorf("%d is %q, want %q", status, got, want)
		}
	}
	if none := (collector.Code{}).String(); none != "" {
		t.Errorf("the zero Code is %q, want an empty string", none)
	}
}

func TestGRPCCode(t *testing.T) {
	var names []string
	for code := range uint32(17) {
		names = append(names, collector.GRPCCode(code).String())
	}
	if names[0] != "OK" || names[5] != "NotFound" || names[16] != "Unauthenticated" ||
		len(slices.Compact(slices.Sorted(slices.Values(names)))) != 17 {
		t.Error(names)
	}
	for _, code := range []uint32{17, 99, 200, 1 << 16, 1<<32 - 1} {
		if c := collector.GRPCCode(code); c != collector.HTTPStatus(999) {
			t.Errorf("%d is %q", code, c)
		}
	}
}

// Regression: a thousand responses with the status 401 were counted like a thousand responses with the status 200.
//
// Every completion counts for exactly one code in each view: in the views of the resource, of the origin, of the
// entrance, and of all inbound calls. The test makes single calls, batches, and calls that are recorded for Other. It
// ends the calls with ExitCode and ExitTrace, the methods that take a code.
func TestCodesAreCountedOnceInEveryView(t *testing.T) {
	c := newCollector(t, collector.Options{MaxResources: 2})
	want, inbound := map[string]map[string]int64{}, map[string]int64{}
	for i := range 1000 {
		name := []string{"a", "b", "c", "d"}[i%4]
		opts := []collector.CallOption{
			collector.Origin(fmt.Sprint("o", i%3)),
			collector.Entrance(fmt.Sprint("e", i%5)), collector.Batch(int64(i%7 + 1)),
		}
		if i%2 == 0 {
			opts = append(opts, collector.Inbound())
		}
		_, e, err := c.Enter(t.Context(), name, opts...)
		if err != nil {
			t.Fatal(err)
		}
		code := [...]collector.Code{
			{},
			collector.HTTPStatus(401), collector.HTTPStatus(200),
			collector.GRPCCode(5), collector.HTTPStatus(0), collector.HTTPStatus(1000),
		}[i%6]
		if err = nil; i%11 == 0 {
			err = errors.New("no")
		}
		switch i % 3 {
		case 0:
			e.ExitTrace(err, code, "x")
		default:
			e.ExitCode(err, code)
			e.ExitCode(nil, collector.HTTPStatus(500)) // e has ended, so ExitCode and Exit do nothing
			e.Exit(nil)
		}
		resource := name
		if i%4 > 1 {
			resource = collector.Other
		}
		if want[resource] == nil {
			want[resource] = map[string]int64{}
		}
		want[resource][code.String()] += int64(i%7 + 1)
		if i%2 == 0 {
			inbound[code.String()] += int64(i%7 + 1)
		}
	}
	for _, r := range c.Seal().Resources {
		if got := answered(r.View()); !maps.Equal(got, want[r.Name()]) {
			t.Errorf("%s: %v, want %v", r.Name(), got, want[r.Name()])
		}
		origins, entrances := map[string]int64{}, map[string]int64{}
		for _, v := range r.Origins() {
			for code, n := range answered(v) {
				origins[code] += n
			}
		}
		for _, v := range r.Entrances() {
			for code, n := range answered(v) {
				entrances[code] += n
			}
		}
		if !maps.Equal(origins, want[r.Name()]) || !maps.Equal(entrances, want[r.Name()]) {
			t.Errorf("%s: %v by origin, %v by entrance, want %v", r.Name(), origins, entrances, want[r.Name()])
		}
	}
	if got := answered(c.Inbound()); !maps.Equal(got, inbound) {
		t.Errorf("inbound: %v, want %v", got, inbound)
	}
}

// The zero Entry and a nil Collector count no code. A block has no code either.
func TestCodesOfNoCall(t *testing.T) {
	(&collector.Entry{}).ExitCode(nil, collector.HTTPStatus(200))
	(&collector.Entry{}).ExitCode(errors.New("x"), collector.HTTPStatus(200))
	var c *collector.Collector
	_, e, _ := c.Enter(t.Context(), "a")
	e.ExitCode(nil, collector.HTTPStatus(200))
	for range c.Inbound().Codes() {
		t.Error("a nil Collector has codes")
	}
	r := newCollector(t, collector.Options{}).Resource("a")
	r.Block("")
	if got := maps.Collect(r.View().Codes()); len(got) != 1 || got[collector.Code{}] != 0 {
		t.Errorf("a block has the codes %v", got)
	}
}

// If Options.Exception panics, ExitCode still ends the call once, and counts its code.
func TestCodesOfCallsWhoseErrorPanics(t *testing.T) {
	c := newCollector(t, collector.Options{Exception: func(error) bool { panic("boom") }})
	e := c.Resource("a").Enter()
	func() {
		defer func() { _ = recover() }()
		e.ExitCode(errors.New("x"), collector.HTTPStatus(500))
	}()
	e.ExitCode(nil, collector.HTTPStatus(200))
	if got := answered(c.Resource("a").View()); !maps.Equal(got, map[string]int64{"500": 1}) {
		t.Error(got)
	}
}

// After an origin is retired, its completions stay in the counts by code of the resource and of all inbound calls.
func TestCodesOutliveRetirement(t *testing.T) {
	c, f := retiring(t)
	call := func(origin string, status int) {
		_, e, _ := c.Enter(t.Context(), "a", collector.Origin(origin), collector.Inbound())
		e.ExitCode(nil, collector.HTTPStatus(status))
	}
	call("gone", 404)
	call("gone", 200)
	v, total := c.Resource("a").View(), c.Inbound()
	for range 20 {
		f.add(20 * time.Second)
		call("stays", 200)
		c.Seal()
	}
	if n := len(maps.Collect(c.Resource("a").Origins())); n != 1 {
		t.Fatalf("%d origins", n)
	}
	want := map[string]int64{"200": 21, "404": 1}
	if got := answered(v); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := answered(total); !maps.Equal(got, want) {
		t.Errorf("inbound %v, want %v", got, want)
	}
}

// Under concurrent calls, the counts of the codes in a snapshot add up to the completions in the snapshot, and the
// count of a code never falls.
func TestCodesNeverFall(t *testing.T) {
	c := newCollector(t, collector.Options{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := g; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_, e, _ := c.Enter(context.Background(), "a", collector.Origin(fmt.Sprint(i%5)), collector.Inbound())
				e.ExitCode(nil, collector.HTTPStatus(200+i%3))
			}
		})
	}
	last := map[node.Code]int64{}
	var by node.Codes
	for i := 0; i < 2000 || last[200] < 20_000; i++ {
		v := c.Inbound().Node()
		s := v.SnapshotByCode(c.Timeline().Now(), nil, &by)
		var sum int64
		for code, n := range by.All() {
			if sum += n; n < last[code] || code == 0 && n > 0 {
				t.Fatalf("code %s was counted %d times, and now %d times", collector.CodeName(code), last[code], n)
			}
			last[code] = n
		}
		if sum != s.Total.Complete {
			t.Fatalf("the counts by code add up to %d, but there are %d completions", sum, s.Total.Complete)
		}
	}
	close(stop)
	wg.Wait()
}

func BenchmarkEnterExitCode(b *testing.B) {
	r := newCollector(b, collector.Options{}).Resource("a")
	status := [...]int{200, 200, 200, 404, 200, 200, 304, 500}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := r.Enter()
		e.ExitCode(nil, collector.HTTPStatus(status[i%8]))
	}
}

func ExampleEntry_ExitCode() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	login := c.Resource("login")
	for _, status := range []int{200, 401, 401, 799} {
		e := login.Enter()
		e.ExitCode(nil, collector.HTTPStatus(status))
	}
	var lines []string
	for code, n := range login.View().Codes() {
		lines = append(lines, fmt.Sprintf("%q: %d", code, n))
	}
	fmt.Println(strings.Join(lines, ", "))
	// Output: "": 0, "200": 1, "401": 2, "other": 1
}

// GRPCCodeNumber accepts the names of codes in gRPC's specification and in gRPC's Go library.
func TestGRPCCodeNumber(t *testing.T) {
	names := []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED",
		"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL",
		"UNAVAILABLE",
		"DATA_LOSS", "UNAUTHENTICATED",
	}
	for want, name := range names {
		if n, ok := collector.GRPCCodeNumber(name); !ok || n != uint32(want) {
			t.Errorf("%s is %d, %v; want %d", name, n, ok, want)
		}
	}
	for name, want := range map[string]uint32{"Canceled": 1, "NotFound": 5, "not_found": 5} {
		if n, ok := collector.GRPCCodeNumber(name); !ok || n != want {
			t.Errorf("%s is %d, %v; want %d", name, n, ok, want)
		}
	}
	for _, name := range []string{"", "17", "NOT FOUND"} {
		if n, ok := collector.GRPCCodeNumber(name); ok {
			t.Errorf("%q is %d", name, n)
		}
	}
}
