package otlp

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// handler serves OTLP for traces, by HTTP and by gRPC on the same port. An answer comes when the spans are counted.
type handler struct {
	receiver *receiver
	used     atomic.Int64 // by bodies
	batches  chan *batch  // that are not in use: as many requests are decoded at a time as there are processors
}

func newHandler(r *receiver) *handler {
	h := &handler{receiver: r, batches: make(chan *batch, runtime.GOMAXPROCS(0))}
	for range cap(h.batches) {
		h.batches <- new(batch)
	}
	return h
}

// receive reads a body and counts its spans.
func (h *handler) receive(read func(*body) error, decode func(*batch, []byte) error) (rejected, error) {
	in := body{used: &h.used}
	defer in.free()
	if err := read(&in); err != nil {
		return rejected{}, err
	}
	// Decoding takes memory, which is kept for the next request. As many are decoded at a time as there are processors.
	b := <-h.batches
	defer func() {
		clear(b.spans) // their bytes belong to the body
		*b = batch{spans: b.spans[:0]}
		h.batches <- b
	}()
	if err := decode(b, in.bytes); err != nil {
		return rejected{}, err
	}
	return h.receiver.take(b, time.Now())
}

// Where traces are sent, and the types of what is sent.
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
	var not rejected
	var err error
	decode := (*batch).protobuf
	if kind == jsonType {
		decode = (*batch).json
	}
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); {
	case r.URL.Path != tracesPath:
		err = errNotFound
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		err = errNotPost
	case kind != protobufType && kind != jsonType:
		err = errType
	case encoding != "" && encoding != "identity" && encoding != "gzip":
		err = errEncoding
	default:
		not, err = h.receive(func(in *body) error { return in.read(r.Body, encoding == "gzip") }, decode)
	}
	// A rejected span is no error: the others are counted, and the sender must not repeat the request.
	f := failureOf(err)
	var answer []byte
	if kind == jsonType {
		answer, _ = json.Marshal(jsonAnswer(f, not))
	} else {
		kind, answer = protobufType, protobufAnswer(f, not)
	}
	w.Header().Set("Content-Type", kind)
	if f != nil {
		if f.code == unavailable {
			w.Header().Set("Retry-After", "5")
		}
		w.WriteHeader(f.status)
	}
	_, _ = w.Write(answer) // a client that is gone sends its spans again
}

// serveGRPC serves a unary call: one message in, one out, and how it ended in the trailers. That much of gRPC is a few lines on
// net/http's HTTP/2.
func (h *handler) serveGRPC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", grpcType)
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
	var not rejected
	var err error = errNotFound
	if r.URL.Path == grpcMethod && r.Method == http.MethodPost {
		not, err = h.receive(func(in *body) error { return in.readFrame(r.Body, r.Header.Get("Grpc-Encoding")) }, (*batch).protobuf)
	}
	if f := failureOf(err); f != nil {
		w.Header().Set("Grpc-Status", strconv.Itoa(f.code))
		w.Header().Set("Grpc-Message", f.text)
		return
	}
	message := protobufAnswer(nil, not)
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	_, _ = w.Write(append(frame, message...)) // a client that is gone sends its spans again
	w.Header().Set("Grpc-Status", "0")
}

// protobufAnswer is an ExportTraceServiceResponse, with how many spans were rejected and why if any were, or a google.rpc.Status.
func protobufAnswer(f *failure, not rejected) []byte {
	numberAndText := func(n int, text string) []byte {
		b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(n))
		return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), text)
	}
	switch {
	case f != nil:
		return numberAndText(f.code, f.text)
	case not.spans == 0:
		return nil
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), numberAndText(not.spans, not.why))
}

// jsonAnswer is the same for JSON.
func jsonAnswer(f *failure, not rejected) map[string]any {
	switch {
	case f != nil:
		return map[string]any{"code": f.code, "message": f.text}
	case not.spans == 0:
		return map[string]any{}
	}
	return map[string]any{"partialSuccess": map[string]string{"rejectedSpans": strconv.Itoa(not.spans), "errorMessage": not.why}}
}

// failure is why a request is not taken, with the status of HTTP and the code of gRPC that say so. Senders repeat what is unavailable,
// and nothing else here.
type failure struct {
	status, code int
	text         string // ASCII, without a %
}

// Error implements error.
func (f *failure) Error() string { return f.text }

// Codes of gRPC.
const (
	invalidArgument   = 3
	deadlineExceeded  = 4
	resourceExhausted = 8
	unimplemented     = 12
	unavailable       = 14
)

var (
	errFull     = &failure{http.StatusServiceUnavailable, unavailable, "too many spans are held; send them again later"}
	errBusy     = &failure{http.StatusServiceUnavailable, unavailable, "too many requests are being read; send this one again later"}
	errTooLarge = &failure{http.StatusRequestEntityTooLarge, resourceExhausted, fmt.Sprintf("the request has more than %d MiB", maxBody>>20)}
	errTooMany  = &failure{http.StatusRequestEntityTooLarge, resourceExhausted, fmt.Sprintf("the request has more than %d spans", maxSpans)}
	errHalf     = &failure{http.StatusBadRequest, invalidArgument, "the message is not protobuf, or not whole"}
	errJSON     = &failure{http.StatusBadRequest, invalidArgument, "the message is not OTLP's JSON, or not whole"}
	errSlow     = &failure{http.StatusRequestTimeout, deadlineExceeded, "the body has stood still for too long"}
	errBody     = &failure{http.StatusBadRequest, invalidArgument, "the body cannot be read: it is not what its encoding says, or not whole"}
	errNotFound = &failure{http.StatusNotFound, unimplemented, "there is nothing here: traces are received at " + tracesPath + " and " + grpcMethod}
	errNotPost  = &failure{http.StatusMethodNotAllowed, unimplemented, "spans are sent by POST"}
	errType     = &failure{http.StatusUnsupportedMediaType, unimplemented, "the content is neither " + protobufType + " nor " + jsonType}
	errEncoding = &failure{http.StatusUnsupportedMediaType, unimplemented, "the content is neither plain nor gzip"}
)

// failureOf is an error as a failure, nil for none.
func failureOf(err error) *failure {
	var f *failure
	switch {
	case err == nil || errors.As(err, &f):
		return f
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	}
	return errBody
}
