package otlp

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// span is what counts of a span. Its bytes belong to the body of a request, and are valid until that has its answer. The zero value is
// malformed.
type span struct {
	trace, id  []byte
	state      []byte // tracestate
	name       []byte
	service    []byte // service.name of its resource
	start, end uint64 // Unix nanoseconds
	kind       kind
	failed     bool
	parent     bool   // it has one
	flags      uint64 // of the trace context
	attributes
}

// kind is OpenTelemetry's kind of a span, by its number.
type kind uint8

const (
	kindServer   kind = 2
	kindClient   kind = 3
	kindProducer kind = 4
	kindConsumer kind = 5
)

// call reports whether a span of this kind is one; an internal one is not.
func (k kind) call() bool { return k >= kindServer && k <= kindConsumer }

// direction is what a call is to its service. Inbound ones make the total.
type direction uint8

const (
	inbound  direction = iota + 1
	outbound           // it leaves the service
	nested             // it came in where another call of the same process was
)

// Bits of a span's flags.
const (
	knowsParent  = 0x100 // whether the parent is in another process is known
	remoteParent = 0x200
)

// direction returns what the span is to its service.
func (s *span) direction() direction {
	switch {
	case s.kind == kindClient || s.kind == kindProducer:
		return outbound
	case s.parent && s.flags&(knowsParent|remoteParent) == knowsParent:
		return nested
	}
	return inbound
}

// The errors of spans that are malformed.
var (
	errID       = errors.New("the trace id is not 16 bytes or the span id is not 8, or one is zero")
	errOpen     = errors.New("it has no begin, or no end")
	errBackward = errors.New("it ends before it begins")
	errEpoch    = errors.New("its times are not Unix nanoseconds")
)

// epoch is a time in 2001. Earlier ones are seconds, milliseconds or microseconds, or count from another epoch.
const epoch = 1e18

// check returns what is wrong with a span.
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

// ownName reports whether the service itself has made the name: strangers cannot make up a route, a method that is implemented, or
// a call that the service makes. The name of a server's span may have a path in it, although OpenTelemetry's conventions forbid that.
func (s *span) ownName() bool {
	return s.kind != kindServer || len(s.route) > 0 || len(s.rpcMethod) > 0 && s.code() != timeline.GRPC+unimplemented
}

// answered reports whether the service itself has answered, by which a name that may be a stranger's is earned: with success, or with an
// error of its own (5xx). Routers answer paths that nobody knows with 404 or 405, and what guards them with 401, 403 or a redirect. A span
// without a status, as of another protocol, is judged by its outcome.
func (s *span) answered() bool {
	switch code := s.code(); {
	case code > 0 && code < timeline.GRPC:
		return httpstat.Success(int(code)) || code >= http.StatusInternalServerError
	default:
		return !s.failed && code <= timeline.GRPC
	}
}

// threshold finds that of a sampler in OpenTelemetry's member of a tracestate: up to 14 digits in hex, of the fraction that is dropped.
var threshold = regexp.MustCompile(`(?:^|,)\s*ot=(?:[^,]*;)?th:([0-9a-f]{1,14})(?:[;,\s]|$)`)

// maxWeight is the most calls that a span stands for. A threshold that says more is a mistake or an attack, and not believed.
const maxWeight = 1 << 20

// weight returns how many calls a span stands for, as its tracestate tells: ot=th:c is a span in four. Without a threshold that can be
// believed it is 1, and not sampled.
func weight(state []byte) (w float64, sampled bool) {
	if len(state) == 0 {
		return 1, false
	}
	found := threshold.FindSubmatch(state)
	if found == nil {
		return 1, false
	}
	const digits, all = 14, 1 << (4 * 14)
	t, _ := strconv.ParseUint(string(found[1]), 16, 64) // it is one
	w = all / float64(all-t<<(4*(digits-len(found[1]))))
	if w > maxWeight {
		return 1, false
	}
	return w, true
}
