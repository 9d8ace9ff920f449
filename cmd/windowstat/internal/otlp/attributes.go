package otlp

import (
	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector"
)

// attributes are those of a span that count, by OpenTelemetry's semantic conventions, present and past. None has all of them.
type attributes struct {
	status   int64 // of HTTP; 0 for none
	grpc     int64 // code, and 1 more; 0 for none
	response []byte
	system   []byte // of RPC

	method, route         []byte // of HTTP
	rpcService, rpcMethod []byte
	peer                  []byte
}

// value is that of an attribute: text or a number. Others are not read.
type value struct {
	text     []byte
	number   int64
	isNumber bool
}

// set takes an attribute that counts.
func (a *attributes) set(key []byte, v value) {
	if v.isNumber {
		switch string(key) {
		case "http.response.status_code", "http.status_code":
			a.status = v.number
		case "rpc.grpc.status_code":
			a.grpc = min(max(v.number, -1), 1<<32) + 1
		}
		return
	}
	switch string(key) {
	case "http.request.method", "http.method":
		a.method = v.text
	case "http.route":
		a.route = v.text
	case "rpc.system", "rpc.system.name":
		a.system = v.text
	case "rpc.service":
		a.rpcService = v.text
	case "rpc.method":
		a.rpcMethod = v.text
	case "rpc.response.status_code":
		a.response = v.text
	case "service.peer.name", "peer.service":
		a.peer = v.text
	}
}

// Codes that nobody has registered.
const (
	otherGRPC   = 99
	otherStatus = 999
)

// code is how the call was answered, as a timeline has it: what is no number of the protocol is one of those that nobody has registered.
func (a *attributes) code() int16 {
	switch {
	// The code of gRPC says more than the status of HTTP below it, which is 200 also for calls that failed.
	case a.grpc > 0:
		return timeline.GRPC + int16(min(a.grpc-1, otherGRPC))
	case len(a.response) > 0 && string(a.system) == "grpc":
		if number, ok := collector.GRPCCodeNumber(string(a.response)); ok {
			return timeline.GRPC + int16(number)
		}
		return timeline.GRPC + otherGRPC
	case a.status < 0 || a.status > otherStatus:
		return otherStatus
	}
	return int16(a.status)
}
