package otlp

import (
	"errors"
	"net/http"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// span holds the fields of a span that windowstat uses. The slices are parts of the body of the request, and valid
// until its response. The zero value is malformed.
type span struct {
	trace, id []byte
	// state is the tracestate, which may contain the threshold of a sampler.
	state []byte
	name  []byte
	// service is the service.name of the resource.
	service []byte
	// start and end are in Unix nanoseconds.
	start, end uint64
	kind       kind
	failed     bool
	// parent reports whether the span has a parent.
	parent bool
	// flags are the flags of the trace context, and two bits about the parent.
	flags uint64
	attributes
}

// kind is OpenTelemetry's SpanKind.
type kind uint8

const (
	// Unspecified (0) and internal (1) spans are not calls.
	kindServer   kind = 2
	kindClient   kind = 3
	kindProducer kind = 4
	kindConsumer kind = 5
)

// connectionSteps are the names of client spans for the steps of a connection. The call that needs the connection has
// its own span, so a step is not a call. The instrumentations of Node's dns and net modules make the first three, and
// Go's otelhttptrace makes the others.
var connectionSteps = map[string]bool{
	"dns.lookup": true, "tcp.connect": true, "tls.connect": true,
	"http.getconn": true, "http.dns": true, "http.connect": true, "http.tls": true, "http.send": true,
	"http.headers": true, "http.receive": true,
}

// isCall reports whether the span is a call. Internal spans and steps of connections are not.
func (s *span) isCall() bool {
	// An HTTP client may name its spans as it likes, so only spans without a method are compared with the table.
	switch s.kind {
	case kindClient:
		return !s.step && (len(s.method) > 0 || !connectionSteps[string(s.name)])
	case kindServer, kindProducer, kindConsumer:
		return true
	}
	return false
}

// direction is the role of a call for its service.
type direction uint8

const (
	// inbound calls are part of the total.
	inbound direction = iota + 1
	// outbound calls are made by the service.
	outbound
	// nested calls are received inside another call of the same process, so they are not part of the total.
	nested
)

// Bits of a span's flags.
const (
	// knowsParent is set if remoteParent is valid.
	knowsParent = 0x100
	// remoteParent is set if the parent is in another process.
	remoteParent = 0x200
)

func (s *span) direction() direction {
	// A span whose parent is certainly in the same process was received inside another call. Without the flags, which
	// are newer than many SDKs, it is inbound.
	switch {
	case s.kind == kindClient || s.kind == kindProducer:
		return outbound
	case s.parent && s.flags&(knowsParent|remoteParent) == knowsParent:
		return nested
	}
	return inbound
}

// The errors of malformed spans.
var (
	errID       = errors.New("traceId does not have 16 bytes, spanId does not have 8, or one of them is zero")
	errOpen     = errors.New("startTimeUnixNano or endTimeUnixNano is missing")
	errBackward = errors.New("endTimeUnixNano is before startTimeUnixNano")
	errEpoch    = errors.New("startTimeUnixNano or endTimeUnixNano is not in Unix nanoseconds")
)

// epoch is a time in 2001, in Unix nanoseconds. Smaller times are in another unit or count from another epoch.
const epoch = 1e18

// check returns the error of a malformed span.
func (s *span) check() error {
	switch {
	case len(s.trace) != 16 || len(s.id) != 8 || [16]byte(s.trace) == [16]byte{} || [8]byte(s.id) == [8]byte{}:
		return errID
	case s.start == 0 || s.end == 0:
		return errOpen
	case s.end < s.start:
		return errBackward
	case s.start < epoch || s.end > 1<<63-1:
		return errEpoch
	}
	return nil
}

// ownName reports whether the service itself made the name. Clients cannot invent a route, an implemented method, or a
// call that the service makes. But they can invent the name of a server span without a route: it may contain a path
// although OpenTelemetry's conventions forbid that.
func (s *span) ownName() bool {
	return s.kind != kindServer || len(s.route) > 0 || len(s.rpcMethod) > 0 && s.code() != timeline.GRPC+unimplemented
}

// answered reports whether the service handled the call, with success or with a server error (5xx). Such a call may
// earn its name. Routers respond to unknown paths with 404 or 405, and guards respond to any path with 401, 403 or a
// redirect. A status that is not a number is neither. A span without a status, for example of another protocol, has
// only its outcome.
func (s *span) answered() bool {
	switch code := int(s.code()); {
	case code > 0 && code < timeline.GRPC:
		return httpstat.Success(code) || code >= http.StatusInternalServerError && code < 600
	default:
		return !s.failed && code <= timeline.GRPC
	}
}
