package otlp

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/limiter"
)

// handler serves OTLP for traces over HTTP and gRPC on the same port. It responds after the spans are counted.
type handler struct {
	receiver *receiver
	refusals *refusals
	bodies   bodies

	// A decoder is free for each holder of a slot. The slots decide which host is next.
	slots    *limiter.Slots
	decoders chan *decoder
}

func newHandler(r *receiver, logger *slog.Logger) *handler {
	decoders := newDecoders()
	return &handler{
		receiver: r, refusals: newRefusals(logger), bodies: newBodies(),
		slots: limiter.NewSlots(cap(decoders)), decoders: decoders,
	}
}

// decoding is how the body of a request is decoded.
type decoding struct {
	// encoding is ignored if framed is true, because each frame has its own.
	encoding encoding
	// framed is true if the body is a gRPC frame.
	framed  bool
	message func(*batch, []byte) error
}

// receive reads the body of a request and counts its spans.
func (h *handler) receive(r *http.Request, how decoding) (rejected, error) {
	// Read the body first: a slow client must not hold a slot.
	in, err := h.bodies.open(r)
	defer in.free()
	if err != nil {
		return rejected{}, err
	}
	if err := in.read(r.Body, r.ContentLength, how.framed); err != nil {
		return rejected{}, err
	}
	// Decompress, decode and count while holding a slot. No network delays this part.
	release, err := h.slots.Acquire(in.ctx, in.host)
	switch {
	case err == nil:
	case errors.Is(err, limiter.ErrBusy) || errors.Is(err, errBusy):
		return rejected{}, errBusy
	default: // the client has disconnected
		return rejected{}, errIncomplete
	}
	defer release()
	// As many decoders as slots exist, so this does not wait.
	d := <-h.decoders
	defer func() {
		d.reset()
		h.decoders <- d
	}()
	message := in.bytes
	if how.framed {
		if message, how.encoding, err = unframe(message, r.Header.Get("Grpc-Encoding")); err != nil {
			return rejected{}, err
		}
	}
	if message, err = d.unpack(message, how.encoding); err != nil {
		return rejected{}, err
	}
	if err := how.message(&d.batch, message); err != nil {
		return rejected{}, err
	}
	return h.receiver.take(&d.batch, time.Now())
}

// The paths at which traces are received, and their content types.
const (
	tracesPath   = "/v1/traces"
	grpcMethod   = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	protobufType = "application/x-protobuf"
	jsonType     = "application/json"
	grpcType     = "application/grpc"
)

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == grpcType || strings.HasPrefix(kind, grpcType+"+") {
		h.serveGRPC(w, r)
		return
	}
	not, err := h.serveHTTP(w, r, kind)
	// A response has the type of its request. If that is unknown, it is protobuf, the default of the protocol.
	f := h.refused(err, r)
	var response []byte
	if kind == jsonType {
		response, _ = json.Marshal(jsonResponse(f, not))
	} else {
		kind, response = protobufType, protobufResponse(f, not)
	}
	w.Header().Set("Content-Type", kind)
	if f != nil {
		if f.code == unavailable {
			w.Header().Set("Retry-After", "5")
		}
		w.WriteHeader(f.status)
	}
	_, _ = w.Write(response) // a client that has disconnected sends its spans again
}

// serveHTTP receives a request of a content type over HTTP, and may set headers of the response.
func (h *handler) serveHTTP(w http.ResponseWriter, r *http.Request, kind string) (rejected, error) {
	how := decoding{message: (*batch).protobuf}
	if kind == jsonType {
		how.message = (*batch).json
	}
	switch {
	case r.URL.Path != tracesPath:
		return rejected{}, errNotFound
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return rejected{}, errNotPost
	case kind != protobufType && kind != jsonType:
		return rejected{}, errType
	}
	var err error
	if how.encoding, err = parseEncoding(strings.Join(r.Header.Values("Content-Encoding"), ",")); err != nil {
		w.Header().Set("Accept-Encoding", acceptedHTTP)
		return rejected{}, err
	}
	return h.receive(r, how)
}

// serveGRPC serves a unary call: one message in each direction, and the status in the trailers. This part of gRPC takes
// a few lines on top of the HTTP/2 of net/http.
func (h *handler) serveGRPC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", grpcType)
	w.Header().Set("Grpc-Accept-Encoding", acceptedGRPC)
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
	var not rejected
	var err error = errNotFound
	if r.URL.Path == grpcMethod && r.Method == http.MethodPost {
		not, err = h.receive(r, decoding{framed: true, message: (*batch).protobuf})
	}
	// The status follows the body, in the trailers that the header Trailer announces. A refusal has no body.
	if f := h.refused(err, r); f != nil {
		w.Header().Set("Grpc-Status", strconv.Itoa(f.code))
		w.Header().Set("Grpc-Message", f.Error())
		return
	}
	message := protobufResponse(nil, not)
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	_, _ = w.Write(append(frame, message...)) // a client that has disconnected sends its spans again
	w.Header().Set("Grpc-Status", "0")
}

// refused returns the failure of a request, or nil, and records it. Rejected spans are no failure: the other spans of
// the request are counted, and the sender must not repeat it.
func (h *handler) refused(err error, r *http.Request) *failure {
	f := failureOf(err)
	if f != nil {
		h.refusals.add(f, clientip.OfAddress(r.RemoteAddr))
	}
	return f
}

// protobufResponse returns an ExportTraceServiceResponse, which reports rejected spans, or a google.rpc.Status if f is
// not nil.
func protobufResponse(f *failure, not rejected) []byte {
	// In both messages, field 1 is a number and field 2 a text.
	numberAndText := func(n int, text string) []byte {
		b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(n))
		return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), text)
	}
	switch {
	case f != nil:
		return numberAndText(f.code, f.Error())
	case not.spans == 0:
		return nil
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), numberAndText(not.spans, not.why))
}

// jsonResponse returns the same message for JSON.
func jsonResponse(f *failure, not rejected) map[string]any {
	switch {
	case f != nil:
		return map[string]any{"code": f.code, "message": f.Error()}
	case not.spans == 0:
		return map[string]any{}
	}
	partial := map[string]string{"rejectedSpans": strconv.Itoa(not.spans), "errorMessage": not.why}
	return map[string]any{"partialSuccess": partial}
}
