package table

// The names of OpenTelemetry's semantic conventions, as its exporters for Prometheus write them: version 1.44.0 for
// HTTP (stable), and 1.39.0 and later for RPC.
const (
	HTTPDuration = "http_server_request_duration_seconds"
	HTTPActive   = "http_server_active_requests"
	RPCDuration  = "rpc_server_call_duration_seconds"
)

// Labels of these metrics.
const (
	ErrorType   = "error_type"
	HTTPMethod  = "http_request_method"
	HTTPStatus  = "http_response_status_code"
	HTTPRoute   = "http_route"
	RPCMethod   = "rpc_method"
	RPCResponse = "rpc_response_status_code" // before version 1.45.0
	RPCStatus   = "rpc_status_code"          // since version 1.45.0
	RPCSystem   = "rpc_system_name"
)

// OpenTelemetry returns the metrics of inbound calls under the names of OpenTelemetry's semantic conventions, with
// sorted labels. The names have no namespace. The caller owns the slice.
func OpenTelemetry() []Family {
	return []Family{
		{
			Name: HTTPDuration, Type: Histogram, Unit: "seconds",
			Labels: []string{ErrorType, HTTPMethod, HTTPStatus, HTTPRoute},
			Help: "Response times of inbound HTTP requests that ended. Requests without a response lack the status " +
				"code.",
		},
		{
			Name: HTTPActive, Type: Gauge, Labels: []string{HTTPMethod, HTTPRoute},
			Help: "Inbound HTTP requests in flight.",
		},
		{
			Name: RPCDuration, Type: Histogram, Unit: "seconds",
			Labels: []string{ErrorType, RPCMethod, RPCResponse, RPCStatus, RPCSystem},
			Help:   "Response times of inbound gRPC calls that ended. Calls without a response lack the status codes.",
		},
	}
}
