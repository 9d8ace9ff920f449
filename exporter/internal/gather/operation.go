package gather

import (
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/node"
)

// operation is the name of a resource in the terms of OpenTelemetry's semantic conventions.
//
//	resource             method   route            rpc
//	GET /users/{id}      GET      /users/{id}      users/{id}
//	GET a.com/cart       GET      /cart            cart
//	/shop.Cart/Add       _OTHER   /shop.Cart/Add   shop.Cart/Add
//	PURGE /cache         _OTHER   /cache           cache
//	checkout             _OTHER   checkout         checkout
//	unmatched, _other    _OTHER                    _OTHER
type operation struct {
	method string // an HTTP method or unknown
	route  string // empty if the request matched no route
	rpc    string // the method of an RPC
}

// unknown is the value of the conventions for a method that the instrumentation does not know.
const unknown = "_OTHER"

// methods has the HTTP methods of the conventions.
var methods = map[string]bool{
	"CONNECT": true, "DELETE": true, "GET": true, "HEAD": true, "OPTIONS": true, "PATCH": true, "POST": true,
	"PUT": true, "QUERY": true, "TRACE": true,
}

// operationOf returns the operation of a resource. The part of the name before a space is a method if a path follows.
// The host of a pattern is left out, as otelhttp does.
func operationOf(resource string) operation {
	if resource == httpstat.Unmatched || resource == collector.Other {
		return operation{method: unknown, rpc: unknown}
	}
	o := operation{method: unknown, route: resource}
	if method, rest, ok := strings.Cut(resource, " "); ok && strings.Contains(rest, "/") {
		o.route = strings.TrimLeft(rest, " ")
		if methods[method] {
			o.method = method
		}
	}
	if i := strings.IndexByte(o.route, '/'); i > 0 && o.route != resource {
		o.route = o.route[i:]
	}
	o.rpc = strings.TrimPrefix(o.route, "/")
	return o
}

// protocol is the protocol of a call.
type protocol int8

const (
	noProtocol protocol = iota
	httpProtocol
	grpcProtocol
)

// protocolOf returns the protocol of a code, and noProtocol for code 0 and codes that share a number.
func protocolOf(code node.Code) protocol {
	switch name := collector.CodeName(code); {
	case name == "" || name == collector.OtherCode:
		return noProtocol
	case name[0] >= '0' && name[0] <= '9':
		return httpProtocol
	}
	return grpcProtocol
}

// grpcEntrance is the entrance of the calls that package grpcstat counts.
const grpcEntrance = "grpc"

// protocol returns the protocol of calls of r whose code does not tell it: calls in flight, and calls that ended
// without a code. Other evidence than the name is the codes of other calls, and the entrance that a middleware sets.
func (o *operation) protocol(r *collector.Resource, by *node.Codes) (p protocol) {
	if o.method != unknown {
		return httpProtocol
	}
	for code := range by.Histograms() { // HTTP statuses come first
		if p = protocolOf(code); p != noProtocol {
			return p
		}
	}
	for entrance := range r.Entrances() {
		switch entrance {
		case httpstat.DefaultEntrance:
			return httpProtocol
		case grpcEntrance:
			p = grpcProtocol
		}
	}
	return p
}

// grpcStatus returns the name of a gRPC code in gRPC's specification, such as NOT_FOUND, and reports whether the
// conventions call it an error of a server.
func grpcStatus(code node.Code) (name string, failed bool) {
	goName := collector.CodeName(code)
	switch goName {
	case "OK", collector.OtherCode:
		return goName, false
	case "Canceled":
		return "CANCELLED", false
	case "Unknown", "DeadlineExceeded", "Unimplemented", "Internal", "Unavailable", "DataLoss":
		failed = true
	}
	var b strings.Builder
	for i, c := range goName {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToUpper(b.String()), failed
}
