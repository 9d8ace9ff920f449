package otelstat

import (
	"math"

	"go.opentelemetry.io/otel/attribute"

	"github.com/windowstat/windowstat/collector"
)

// attributes holds the attributes of a span that describe the result of its call. The keys come from OpenTelemetry's
// current and former semantic conventions.
type attributes struct {
	status    int64  // HTTP status, or 0 without a status
	grpc      int64  // gRPC code, or -1 without a code
	system    string // RPC system, such as grpc
	response  string // RPC status code of any RPC system, as text
	errorType string
}

// readAttributes extracts the attributes that attributes.code and processor.OnEnd need.
func readAttributes(list []attribute.KeyValue) attributes {
	a := attributes{grpc: -1}
	for i := range list {
		switch v := list[i].Value; list[i].Key {
		case "http.response.status_code", "http.status_code":
			a.status = v.AsInt64()
		case "rpc.grpc.status_code":
			if v.Type() == attribute.INT64 {
				a.grpc = v.AsInt64()
			}
		case "rpc.system", "rpc.system.name":
			a.system = v.AsString()
		case "rpc.response.status_code":
			a.response = v.AsString()
		case "error.type":
			a.errorType = v.AsString()
		}
	}
	return a
}

// code returns the code of the call, or the zero Code if the span has no attribute with a code. A number that the
// protocol does not define becomes [collector.OtherCode].
func (a *attributes) code() collector.Code {
	switch {
	case a.grpc >= 0:
		return collector.GRPCCode(uint32(min(a.grpc, 1<<20)))
	case a.response != "" && a.system == "grpc":
		return grpcCode(a.response)
	case a.status != 0:
		return collector.HTTPStatus(int(a.status))
	}
	return collector.Code{}
}

// grpcCode returns the code with the given name in the spelling of gRPC's specification, such as NOT_FOUND.
func grpcCode(name string) collector.Code {
	number, ok := collector.GRPCCodeNumber(name)
	if !ok {
		number = math.MaxUint32
	}
	return collector.GRPCCode(number)
}
