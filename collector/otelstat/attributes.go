package otelstat

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/windowstat/windowstat/collector"
)

// attributes are those of a span that say how its call ended, by OpenTelemetry's semantic conventions, present and past.
type attributes struct {
	status    int64  // of HTTP; 0 for none
	grpc      int64  // below 0 for none
	system    string // of RPC
	response  string // of RPC, whatever the system
	errorType string
}

func read(list []attribute.KeyValue) attributes {
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

// code is how the call was answered. What is no number of the protocol is [collector.OtherCode].
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

// grpcCode is the code with a name as gRPC's specification writes it, such as NOT_FOUND.
func grpcCode(name string) collector.Code {
	name = strings.ReplaceAll(name, "_", "")
	if strings.EqualFold(name, "cancelled") {
		name = "canceled" // as its Go library has it
	}
	for n := uint32(0); ; n++ {
		code := collector.GRPCCode(n)
		if s := code.String(); s == collector.OtherCode || strings.EqualFold(s, name) {
			return code
		}
	}
}
