package otlp

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

func TestNamesAndCodes(t *testing.T) {
	type attributes = map[string]any
	for _, tc := range []struct {
		what       string
		kind       kind
		name       string
		attributes attributes
		resource   string
		code       string
	}{
		{"a route", kindServer, "GET", attributes{"http.request.method": "GET", "http.route": "/users/{id}", "http.response.status_code": 404}, "GET /users/{id}", "404"},
		{"a route of older conventions", kindServer, "/users/{id}", attributes{"http.method": "POST", "http.route": "/users/{id}", "http.status_code": 503}, "POST /users/{id}", "503"},
		{"a route with its method", kindServer, "x", attributes{"http.request.method": "GET", "http.route": "GET /users/{id}"}, "GET /users/{id}", ""},
		{"a route whose beginning looks like its method", kindServer, "x", attributes{"http.request.method": "GET", "http.route": "GETTERS/{id}"}, "GET GETTERS/{id}", ""},
		{"a route without a method", kindServer, "x", attributes{"http.route": "/users/{id}"}, "/users/{id}", ""},
		{"a method that is none", kindServer, "HTTP /", attributes{"http.request.method": "_OTHER", "http.route": "/"}, "HTTP /", ""},
		{"gRPC", kindServer, "x", attributes{"rpc.system.name": "grpc", "rpc.method": "shop.Cart/Add", "rpc.response.status_code": "NOT_FOUND"}, "shop.Cart/Add", "NotFound"},
		{"gRPC of older conventions", kindServer, "x", attributes{"rpc.system": "grpc", "rpc.service": "shop.Cart", "rpc.method": "Add", "rpc.grpc.status_code": 0}, "shop.Cart/Add", "OK"},
		{"gRPC cancelled", kindClient, "x", attributes{"rpc.system": "grpc", "rpc.method": "shop.Cart/Add", "rpc.response.status_code": "CANCELLED"}, "shop.Cart/Add", "Canceled"},
		{"gRPC made up", kindClient, "x", attributes{"rpc.system": "grpc", "rpc.method": "a/B", "rpc.response.status_code": "MADE_UP"}, "a/B", "other"},
		{"gRPC far away", kindClient, "x", attributes{"rpc.method": "a/B", "rpc.grpc.status_code": 1 << 40}, "a/B", "other"},
		{"gRPC negative", kindClient, "x", attributes{"rpc.method": "a/B", "rpc.grpc.status_code": -1, "http.status_code": 200}, "a/B", "200"},
		{"another RPC", kindClient, "x", attributes{"rpc.system": "jsonrpc", "rpc.method": "add", "rpc.response.status_code": "OK"}, "add", ""},
		{"a client", kindClient, "GET", attributes{"http.request.method": "GET", "http.response.status_code": 200}, "GET", "200"},
		{"a client and its peer", kindClient, "GET", attributes{"service.peer.name": "mail"}, "mail: GET", ""},
		{"a client and its peer, before", kindClient, "GET", attributes{"peer.service": "mail"}, "mail: GET", ""},
		{"a producer", kindProducer, "send orders", nil, "send orders", ""},
		{"a consumer", kindConsumer, "process orders", nil, "process orders", ""},
		{"an odd status", kindConsumer, "x", attributes{"http.response.status_code": 99_999}, "x", "other"},
		{"a status that is text", kindConsumer, "x", attributes{"http.response.status_code": "404"}, "x", ""},
		{"no name", kindConsumer, "", nil, collector.Unnamed, ""},
		{"a name of strangers", kindServer, "GET /wp-admin", attributes{"http.request.method": "GET", "http.response.status_code": 404}, httpstat.Unmatched, "404"},
		{"a method of strangers", kindServer, "a/B", attributes{"rpc.system": "grpc", "rpc.method": "a/B", "rpc.grpc.status_code": 12}, httpstat.Unmatched, "Unimplemented"},
	} {
		r := receive(t, Options{Service: "shop"}, second(0), time.Time{})
		r.send(t, 2, sent{service: "shop", name: tc.name, kind: tc.kind, id: 1, start: second(1), end: second(1.5), attributes: tc.attributes})
		if err := r.finish(); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, x := range r.stats.Seal().Resources {
			for code, n := range x.View().Codes() {
				if n > 0 {
					found = true
					if x.Name() != tc.resource || code.String() != tc.code {
						t.Errorf("%s: %q %q, want %q %q", tc.what, x.Name(), code, tc.resource, tc.code)
					}
				}
			}
		}
		if !found {
			t.Errorf("%s: there is no call", tc.what)
		}
		inbound := r.stats.Inbound().Snapshot(nil).Total.Complete == 1
		if want := tc.kind == kindServer || tc.kind == kindConsumer; inbound != want {
			t.Errorf("%s: inbound %v, want %v", tc.what, inbound, want)
		}
	}
}

// The name of a server's span without a route is a resource from the first call on that the service itself has answered.
func TestNamesOfStrangersAreEarned(t *testing.T) {
	r := receive(t, Options{}, second(0), time.Time{})
	for i, status := range []int{404, 401, 302, 502, 404, 200} {
		s := at(uint64(i+1), 1, 1.5)
		s.name, s.attributes = "GET /cart", map[string]any{"http.response.status_code": status}
		r.send(t, 2, s)
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"shop: GET /cart": 3, httpstat.Unmatched: 3} {
		if got := r.stats.Resource(name).Snapshot(nil).Total.Pass; got != want {
			t.Errorf("%s: %d calls, want %d", name, got, want)
		}
	}
}

// Ten thousand services, each with routes, and one that makes up a name for each call: all calls are counted, in as many resources as
// there may be, in bounded memory, and the one leaves names to the others.
func TestManyServices(t *testing.T) {
	const services, most = 10_000, 1000
	r := receive(t, Options{MaxResources: most}, second(0), time.Time{})
	for i := range services {
		s := at(uint64(i+1), 1, 1.5)
		s.service = "greedy"
		s.attributes["http.route"] = fmt.Sprint("/", i)
		r.send(t, 2, s)
	}
	if n := len(r.names.byKey); n > most/2+1 {
		t.Errorf("one service has %d resources of %d", n, most)
	}
	for i := range services {
		s := at(uint64(services+i+1), 1, 1.5)
		s.service = fmt.Sprint("service-", i)
		r.send(t, 2, s)
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	if n := len(r.stats.Seal().Resources); n > most+2 {
		t.Errorf("%d resources, want at most %d, unmatched and _other", n, most)
	}
	if got := r.stats.Inbound().Snapshot(nil).Total.Pass; got != 2*services {
		t.Errorf("%d calls, want %d", got, 2*services)
	}
	if got := r.stats.Resource("service-7: GET /cart").Snapshot(nil).Total.Pass; got != 1 {
		t.Errorf("a service that came early has %d calls, want 1", got)
	}
	// Names that are idle give way to others, and their numbers are used again.
	for i := range 3 * most {
		s := at(uint64(3*services+i), 1000+float64(i), 1000.5+float64(i))
		s.service = fmt.Sprint("later-", i)
		r.send(t, 1001+float64(i), s)
	}
	if n := len(r.names.list); n > most+2 || len(r.names.byKey) > most+2 {
		t.Errorf("%d numbers, %d resources; want at most %d", n, len(r.names.byKey), most+2)
	}
}

// Names of strangers without end are forgotten, and long ones not even remembered.
func TestNamesTakeBoundedMemory(t *testing.T) {
	r := receive(t, Options{MaxResources: 100}, second(0), time.Time{})
	long := string(make([]byte, 1<<20))
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 20 {
		s := at(uint64(i+1), 1, 1.5)
		s.name, s.service = long[:len(long)-i], fmt.Sprint(i, long)
		s.attributes = nil
		r.send(t, 2, s)
	}
	if grown := int64(heap() - before); grown > 16<<20 {
		t.Errorf("20 names of a MiB take %d MiB", grown>>20)
	}
	for i := range 2 * maxKnown {
		r.names.of(&span{kind: kindServer, name: fmt.Append(nil, "GET /", i)})
	}
	if n := len(r.names.known); n > maxKnown {
		t.Errorf("%d names are remembered, want at most %d", n, maxKnown)
	}
}
