package otlp

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// call counts one span with some attributes. It returns the name of its resource, its code, and whether it is inbound,
// or empty texts if the span is not a call.
func call(t *testing.T, k kind, name string, attributes map[string]any) (resource, code string, in bool) {
	t.Helper()
	r := receive(t, Options{Service: "shop"}, second(0), time.Time{})
	s := sent{service: "shop", name: name, kind: k, id: 1, start: second(1), end: second(1.5), attributes: attributes}
	r.send(t, 2, s)
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	for _, x := range r.stats.Seal().Resources {
		for c, n := range x.View().Codes() {
			if n > 0 {
				resource, code = x.Name(), c.String()
			}
		}
	}
	return resource, code, r.stats.Inbound().Snapshot(nil).Total.Complete == 1
}

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
		{
			"a route", kindServer, "GET",
			attributes{"http.request.method": "GET", "http.route": "/users/{id}", "http.response.status_code": 404},
			"GET /users/{id}", "404",
		},
		{
			"a route of earlier conventions", kindServer, "/users/{id}",
			attributes{"http.method": "POST", "http.route": "/users/{id}", "http.status_code": 503},
			"POST /users/{id}", "503",
		},
		{
			"a route with its method", kindServer, "x",
			attributes{"http.request.method": "GET", "http.route": "GET /users/{id}"},
			"GET /users/{id}", "",
		},
		{
			"a route that begins like its method", kindServer, "x",
			attributes{"http.request.method": "GET", "http.route": "GETTERS/{id}"},
			"GET GETTERS/{id}", "",
		},
		{"a route without a method", kindServer, "x", attributes{"http.route": "/users/{id}"}, "/users/{id}", ""},
		{"a route without a slash", kindServer, "x", attributes{"http.route": "home"}, "home", ""},
		{
			"an unknown method", kindServer, "HTTP /",
			attributes{"http.request.method": "_OTHER", "http.route": "/"},
			"HTTP /", "",
		},
		{"a path", kindServer, "GET /cart", nil, "GET /cart", ""},
		{
			"only a method, as of Node", kindServer, "GET",
			attributes{"http.request.method": "GET", "url.path": "/cart", "http.response.status_code": 200},
			"inbound GET", "200",
		},
		{"only a method, of earlier conventions", kindServer, "HTTP GET", nil, "inbound GET", ""},
		{
			"only a method, of an unknown path", kindServer, "GET",
			attributes{"http.request.method": "GET", "http.response.status_code": 404},
			httpstat.Unmatched, "404",
		},
		{"a name of a controller", kindServer, "users#show", nil, "inbound users#show", ""},

		{
			"gRPC", kindServer, "x",
			attributes{
				"rpc.system.name": "grpc", "rpc.method": "shop.Cart/Add", "rpc.response.status_code": "NOT_FOUND",
			},
			"shop.Cart/Add", "NotFound",
		},
		{
			"gRPC of earlier conventions", kindServer, "x",
			attributes{
				"rpc.system": "grpc", "rpc.service": "shop.Cart", "rpc.method": "Add", "rpc.grpc.status_code": 0,
			},
			"shop.Cart/Add", "OK",
		},
		{
			"gRPC cancelled", kindClient, "x",
			attributes{"rpc.system": "grpc", "rpc.method": "shop.Cart/Add", "rpc.response.status_code": "CANCELLED"},
			"outbound shop.Cart/Add", "Canceled",
		},
		{
			"an invented code of gRPC", kindClient, "x",
			attributes{"rpc.system": "grpc", "rpc.method": "a/B", "rpc.response.status_code": "MADE_UP"},
			"outbound a/B", "other",
		},
		{
			"a large code of gRPC", kindClient, "x",
			attributes{"rpc.method": "a/B", "rpc.grpc.status_code": 1 << 40},
			"outbound a/B", "other",
		},
		{
			"a negative code of gRPC", kindClient, "x",
			attributes{"rpc.method": "a/B", "rpc.grpc.status_code": -1, "http.status_code": 200},
			"outbound a/B", "200",
		},
		{
			"Connect", kindServer, "x",
			attributes{"rpc.system": "connect_rpc", "rpc.method": "a/B", "rpc.connect_rpc.error_code": "not_found"},
			"a/B", "NotFound",
		},
		{
			"another RPC", kindClient, "x",
			attributes{"rpc.system": "jsonrpc", "rpc.method": "add", "rpc.response.status_code": "OK"},
			"outbound add", "",
		},

		{
			"a client", kindClient, "GET",
			attributes{"http.request.method": "GET", "http.response.status_code": 200},
			"outbound GET", "200",
		},
		{
			"a client with an address", kindClient, "GET",
			attributes{"http.request.method": "GET", "server.address": "api.example.com"},
			"api.example.com: GET", "",
		},
		{
			"a client of otelhttp", kindClient, "HTTP GET",
			attributes{"http.request.method": "GET", "server.address": "api.example.com"},
			"api.example.com: GET", "",
		},
		{
			"a client of earlier conventions", kindClient, "HTTP GET",
			attributes{"http.method": "GET", "net.peer.name": "api.example.com"},
			"api.example.com: GET", "",
		},
		{
			"a client with a template", kindClient, "GET /users/{id}",
			attributes{"http.request.method": "GET", "server.address": "api", "url.template": "/users/{id}"},
			"api: GET /users/{id}", "",
		},
		{
			"a client and its peer", kindClient, "GET",
			attributes{"service.peer.name": "mail", "server.address": "10.0.0.7"},
			"mail: GET", "",
		},
		{"a client and its peer, before", kindClient, "GET", attributes{"peer.service": "mail"}, "mail: GET", ""},
		{
			"a client of gRPC", kindClient, "x",
			attributes{"rpc.method": "shop.Cart/Add", "server.address": "cart"},
			"cart: shop.Cart/Add", "",
		},
		{
			"a database", kindClient, "SELECT users",
			attributes{"db.system.name": "postgresql", "db.namespace": "shop", "server.address": "db"},
			"postgresql shop: SELECT users", "",
		},
		{
			"a database of earlier conventions", kindClient, "SELECT users",
			attributes{"db.system": "mysql", "db.name": "shop", "net.peer.name": "db"},
			"mysql shop: SELECT users", "",
		},
		{
			"a database without a namespace", kindClient, "GET",
			attributes{"db.system": "redis", "server.address": "cache"},
			"redis cache: GET", "",
		},
		{"a database without anything", kindClient, "GET", attributes{"db.system": "redis"}, "redis: GET", ""},
		{"a producer", kindProducer, "send orders", nil, "outbound send orders", ""},
		{
			"a producer and its destination", kindProducer, "send orders",
			attributes{"messaging.destination.name": "orders", "server.address": "kafka"},
			"orders: send orders", "",
		},
		{"a consumer", kindConsumer, "process orders", nil, "inbound process orders", ""},
		{
			"a consumer and its destination", kindConsumer, "orders",
			attributes{"messaging.destination.name": "orders"},
			"inbound orders", "",
		},

		{"an odd status", kindConsumer, "x", attributes{"http.response.status_code": 99_999}, "inbound x", "other"},
		{"no name", kindConsumer, "", nil, collector.Unnamed, ""},
		{
			"an invented path", kindServer, "GET /wp-admin",
			attributes{"http.request.method": "GET", "http.response.status_code": 404},
			httpstat.Unmatched, "404",
		},
		{
			"an invented path and no status", kindServer, "GET /wp-admin",
			attributes{"http.request.method": "GET", "http.response.status_code": "not found"},
			httpstat.Unmatched, "other",
		},
		{
			"an invented method of gRPC", kindServer, "a/B",
			attributes{"rpc.system": "grpc", "rpc.method": "a/B", "rpc.grpc.status_code": 12},
			httpstat.Unmatched, "Unimplemented",
		},

		{"a lookup of Node", kindClient, "dns.lookup", attributes{"peer.ipv4": "127.0.0.1"}, "", ""},
		{"another lookup", kindClient, "DNS lookup api", attributes{"dns.question.name": "api"}, "", ""},
		{"a connection of Go", kindClient, "http.getconn", attributes{"net.host.name": "api"}, "", ""},
		{"a server of that name", kindServer, "dns.lookup", nil, "inbound dns.lookup", ""},
		{"a call", kindClient, "http.send", attributes{"http.request.method": "GET"}, "outbound http.send", ""},
	} {
		resource, code, in := call(t, tc.kind, tc.name, tc.attributes)
		if resource != tc.resource || code != tc.code {
			t.Errorf("%s: %q %q, want %q %q", tc.what, resource, code, tc.resource, tc.code)
		}
		if want := tc.kind == kindServer || tc.kind == kindConsumer; in != want {
			t.Errorf("%s: inbound %v, want %v", tc.what, in, want)
		}
	}
}

// A status is read from every type of attribute that can hold it. An invalid status earns no name.
func TestTypesOfStatuses(t *testing.T) {
	for _, tc := range []struct {
		key   string
		value any
		code  string
	}{
		{"http.response.status_code", 404, "404"},
		{"http.response.status_code", "404", "404"},
		{"http.response.status_code", " 404 ", "404"},
		{"http.response.status_code", "404.0", "404"},
		{"http.response.status_code", 404.0, "404"},
		{"http.status_code", 404.0, "404"},
		{"http.status_code", "404", "404"},
		{"http.status_code", 404.5, "other"},
		{"http.status_code", math.NaN(), "other"},
		{"http.status_code", math.Inf(-1), "other"},
		{"http.status_code", 1e300, "other"},
		{"http.status_code", "NaN", "other"},
		{"http.status_code", "-1", "other"},
		{"http.status_code", "Not Found", "other"},
		{"rpc.grpc.status_code", 5, "NotFound"},
		{"rpc.grpc.status_code", "5", "NotFound"},
		{"rpc.grpc.status_code", 5.0, "NotFound"},
		{"rpc.grpc.status_code", "NOT_FOUND", "NotFound"},
		{"rpc.grpc.status_code", "NotFound", "NotFound"},
		{"rpc.grpc.status_code", 5.5, "other"},
		{"rpc.grpc.status_code", "gone", "other"},
		{"rpc.response.status_code", "NOT_FOUND", "NotFound"},
		{"rpc.response.status_code", 5, "NotFound"},
		{"rpc.response.status_code", "5", "NotFound"},
	} {
		resource, code, _ := call(t, kindServer, "GET /x", map[string]any{tc.key: tc.value, "rpc.system": "grpc"})
		if resource != httpstat.Unmatched || code != tc.code {
			t.Errorf("%s %T %v: %q %q, want no name and %q", tc.key, tc.value, tc.value, resource, code, tc.code)
		}
	}
	for _, success := range []any{200, "200", 200.0} {
		attributes := map[string]any{"http.status_code": success}
		if resource, code, _ := call(t, kindServer, "GET /x", attributes); resource != "GET /x" || code != "200" {
			t.Errorf("%T %v: %q %q, want GET /x 200", success, success, resource, code)
		}
	}
	for _, empty := range []any{"", true} {
		attributes := map[string]any{"http.status_code": empty}
		if _, code, _ := call(t, kindServer, "GET /x", attributes); code != "" {
			t.Errorf("%T %v: %q, want no code", empty, empty, code)
		}
	}
}

// Calls that a Node service receives without a route, and calls that it makes, are different resources. The unknown
// paths of clients count for neither, also after a success.
func TestNamesWithoutARoute(t *testing.T) {
	r := receive(t, Options{Service: "shop"}, second(0), time.Time{})
	id := uint64(0)
	send := func(n int, k kind, attributes map[string]any) {
		for range n {
			id++
			s := at(id, 1, 1.5)
			s.kind, s.name, s.attributes = k, "GET", attributes
			r.send(t, 2, s)
		}
	}
	send(30, kindServer, map[string]any{"http.request.method": "GET", "http.response.status_code": 200})
	send(5, kindServer, map[string]any{"http.request.method": "GET", "http.response.status_code": 404})
	for _, host := range []string{"a", "b", "c"} {
		send(23, kindClient, map[string]any{"http.request.method": "GET", "server.address": host})
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{
		"inbound GET": 30, httpstat.Unmatched: 5, "a: GET": 23, "b: GET": 23, "c: GET": 23, "GET": 0,
	} {
		if got := passes(r, name); got != want {
			t.Errorf("%s: %d calls, want %d", name, got, want)
		}
	}
}

// passes returns the passes of a resource, 0 if it does not exist.
func passes(r *receiving, name string) int64 {
	for _, x := range r.stats.Seal().Resources {
		if x.Name() == name {
			return x.View().Snapshot(nil).Total.Pass
		}
	}
	return 0
}

// The number of targets of a service is bounded. The others share a name, which does not contain the target, until a
// target is idle for as long as a resource.
func TestTargetsAreBounded(t *testing.T) {
	r := receive(t, Options{Service: "shop"}, second(0), time.Time{})
	id := uint64(0)
	send := func(now float64, target string, k kind) {
		id++
		s := at(id, now-1, now-0.5)
		s.kind, s.name = k, "send "+target
		s.attributes = map[string]any{"messaging.destination.name": target}
		r.send(t, now, s)
	}
	for range 2 { // the names of known targets are cached
		for i := range 3 * maxTargets {
			send(2, fmt.Sprintf("reply-%d-", i), kindProducer)
		}
	}
	if n := len(r.names.byKey); n != maxTargets+1 {
		t.Errorf("%d resources, want %d with their own targets and one for the others", n, maxTargets)
	}
	send(400, "reply-7-", kindProducer) // in use
	send(1000, "reply-new-", kindProducer)
	send(1000, "reply-7-", kindProducer)
	send(1000, "reply-8-", kindProducer) // evicted, and known again
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{
		"*: send *": 4 * maxTargets, "reply-7-: send reply-7-": 4, "reply-8-: send reply-8-": 3,
		"reply-new-: send reply-new-": 1, "reply-299-: send reply-299-": 0,
	} {
		if got := passes(r, name); got != want {
			t.Errorf("%s: %d calls, want %d", name, got, want)
		}
	}
	if n := len(r.names.targets.byKey); n != 3 || r.names.targets.inUse.Len() != n {
		t.Errorf("%d targets are in use, want 3", n)
	}
}

// All services together have as many targets as there may be resources.
func TestTargetsOfManyServices(t *testing.T) {
	all := newTargets(1000)
	for i := range 5000 {
		all.use(fmt.Sprint("service ", i/50), fmt.Sprint("target ", i), 1)
	}
	if n := len(all.byKey); n > 1000 || n < 900 {
		t.Errorf("%d targets, want nearly 1000", n)
	}
}

// The name of a server span without a route is a resource from the first call on that the service handled.
func TestEarnedNames(t *testing.T) {
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
		if got := passes(r, name); got != want {
			t.Errorf("%s: %d calls, want %d", name, got, want)
		}
	}
}

// Ten thousand services have routes, and one invents a name for each call. All calls are counted, within the maximum of
// resources, and the one leaves resources to the others.
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
		t.Errorf("an early service has %d calls, want 1", got)
	}
	// New names evict idle ones and reuse their ids.
	for i := range 3 * most {
		s := at(uint64(3*services+i), 1000+float64(i), 1000.5+float64(i))
		s.service = fmt.Sprint("later-", i)
		r.send(t, 1001+float64(i), s)
	}
	if n := len(r.names.list); n > most+2 || len(r.names.byKey) > most+2 {
		t.Errorf("%d ids, %d resources; want at most %d", n, len(r.names.byKey), most+2)
	}
}

// The cache of names is bounded: by the number of names, and by their length.
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
		t.Errorf("20 names of 1 MiB take %d MiB", grown>>20)
	}
	for i := range 2 * timeline.MaxKnown {
		r.names.of(&span{kind: kindServer, name: fmt.Append(nil, "GET /", i)})
	}
	if n := len(r.names.known); n > timeline.MaxKnown {
		t.Errorf("%d names are cached, want at most %d", n, timeline.MaxKnown)
	}
}
