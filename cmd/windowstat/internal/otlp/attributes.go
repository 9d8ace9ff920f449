package otlp

import (
	"bytes"
	"strings"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector"
)

// attributes are the attributes of a span that windowstat uses, from the current and earlier semantic conventions. A
// span has some of them.
type attributes struct {
	// status is the HTTP status, or 0 if absent.
	status int16
	// grpc is the gRPC code plus 1, or 0 if absent.
	grpc int16
	// step is true for a step of a connection, such as a lookup of a name.
	step bool

	// The method and the route or template of an HTTP call.
	method, route, template []byte
	// system is the RPC system.
	system []byte
	// response is the status of an RPC. It is a gRPC code if isGRPC returns true.
	response              value
	rpcService, rpcMethod []byte

	// Targets of outbound calls.
	peer, address, destination []byte
	dbSystem, dbNamespace      []byte
}

// set records an attribute that windowstat uses. Numbers are read from every type that can hold them. Names are text
// only.
func (a *attributes) set(key []byte, v value) {
	switch string(key) {
	// The first name of each case is usually the current one, and the others belong to earlier conventions.
	case "http.response.status_code", "http.status_code":
		a.status = httpStatus(v)
	case "rpc.grpc.status_code":
		a.grpc = grpcCode(v)
	case "rpc.response.status_code", "rpc.connect_rpc.error_code":
		a.response = v
	case "dns.question.name":
		a.step = true
	}
	// The attributes below are names. A number would be a mistake of the instrumentation.
	if v.isNumber {
		return
	}
	switch string(key) {
	case "http.request.method", "http.method":
		a.method = v.text
	case "http.route":
		a.route = v.text
	case "url.template":
		a.template = v.text
	case "rpc.system", "rpc.system.name":
		a.system = v.text
	case "rpc.service":
		a.rpcService = v.text
	case "rpc.method":
		a.rpcMethod = v.text
	case "service.peer.name", "peer.service":
		a.peer = v.text
	case "server.address":
		a.address = v.text
	case "net.peer.name":
		// Instrumentations that send both conventions may write an IP address here, and a name into server.address.
		if len(a.address) == 0 {
			a.address = v.text
		}
	case "db.system", "db.system.name":
		a.dbSystem = v.text
	case "db.namespace", "db.name":
		a.dbNamespace = v.text
	case "messaging.destination.name", "messaging.destination":
		a.destination = v.text
	}
}

// Codes that are not registered. A Collector exports them as [collector.OtherCode].
const (
	otherGRPC   = 99
	otherStatus = 999
)

// httpStatus returns the status in an attribute: 0 for an empty attribute, and otherStatus for an invalid status.
func httpStatus(v value) int16 {
	n, _ := v.integer()
	if n < 0 || n > otherStatus {
		n = otherStatus
	}
	return int16(n)
}

// grpcCode returns the gRPC code in an attribute plus 1, or 0 for an empty attribute or a negative number. The
// attribute may contain the number or the name of the code.
func grpcCode(v value) int16 {
	// Current conventions write NOT_FOUND, Connect writes not_found, and earlier conventions write 5.
	n, ok := v.integer()
	if n == unreadable && !v.isNumber {
		if named, known := collector.GRPCCodeNumber(string(bytes.TrimSpace(v.text))); known {
			n = int64(named)
		}
	}
	if !ok || n < 0 {
		return 0
	}
	return int16(min(n, otherGRPC)) + 1
}

// code returns the code of the response, in the form of [timeline.Call.Status].
func (a *attributes) code() int16 {
	// rpc.grpc.status_code is always a gRPC code. rpc.response.status_code has the codes of the RPC system.
	grpc := a.grpc
	if grpc == 0 && a.isGRPC() {
		grpc = grpcCode(a.response)
	}
	if grpc > 0 {
		// The HTTP status of the same call is 200 even if the call failed.
		return timeline.GRPC + grpc - 1
	}
	return a.status
}

// isGRPC reports whether the RPC system uses the codes of gRPC. Connect does.
func (a *attributes) isGRPC() bool {
	switch strings.ToLower(string(a.system)) {
	case "grpc", "connect_rpc", "connectrpc":
		return true
	}
	return false
}
