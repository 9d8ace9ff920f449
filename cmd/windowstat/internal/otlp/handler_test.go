package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
)

// ago returns a span that ended some time ago.
func ago(id uint64, since time.Duration) sent {
	s := at(id, 0, 0)
	s.end = time.Now().Add(-since)
	s.start = s.end.Add(-time.Millisecond)
	return s
}

func packed(b []byte) []byte {
	var to bytes.Buffer
	z := gzip.NewWriter(&to)
	_, _ = z.Write(b)
	_ = z.Close()
	return to.Bytes()
}

func indented(t *testing.T, b []byte) []byte {
	t.Helper()
	var to bytes.Buffer
	if err := json.Indent(&to, b, "\r\n", "\t"); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// post sends a request to a handler.
func post(h http.Handler, contentType, encoding string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, tracesPath, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func newTestHandler(t testing.TB, o Options) (*handler, *receiving) {
	r := receive(t, o, time.Now(), time.Time{})
	return newHandler(r.receiver, testLogger(t)), r
}

// Whatever a span is written in, it is the same call, with the same name, code and outcome.
func TestProtobufAndJSONAreTheSame(t *testing.T) {
	rpc := ago(2, time.Second)
	rpc.name, rpc.failed = "shop.Cart/Add", true
	rpc.attributes = map[string]any{"rpc.system": "grpc", "rpc.service": "shop.Cart", "rpc.method": "Add", "rpc.grpc.status_code": 14}
	weighed := ago(3, time.Second)
	weighed.state = "ot=th:8"
	early, empty, inner := ago(4, time.Hour), ago(0, time.Second), ago(5, time.Second)
	inner.kind = 1
	again := ago(1, 2*time.Second)
	outbound := ago(6, time.Second)
	outbound.kind, outbound.name, outbound.attributes = kindClient, "GET", map[string]any{"peer.service": "mail", "http.status_code": 200 - 1<<16}
	odd := ago(7, time.Second)
	odd.name, odd.attributes = "\" \n é", map[string]any{"http.status_code": 200}
	nestedServer := ago(8, time.Second)
	nestedServer.parent, nestedServer.flags = 1, 0x101
	spans := []sent{ago(1, time.Second), rpc, weighed, early, empty, inner, again, outbound, odd, nestedServer}

	var answers []map[string]any
	for _, tc := range []struct {
		contentType, encoding string
		body                  []byte
	}{
		{"application/x-protobuf", "", toProtobuf(spans...)},
		{"application/x-protobuf", "gzip", packed(toProtobuf(spans...))},
		{"application/json; charset=utf-8", "identity", toJSON(spans...)},
		{"application/json", "gzip", packed(toJSON(spans...))},
		{"application/json", "", indented(t, toJSON(spans...))},
	} {
		h, r := newTestHandler(t, Options{})
		w := post(h, tc.contentType, tc.encoding, tc.body)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", tc.contentType, w.Code, w.Body)
		}
		if err := r.finish(); err != nil {
			t.Fatal(err)
		}
		got := map[string]any{"rejected": rejectedBy(t, w), "counts": r.counts}
		for _, x := range r.stats.Seal().Resources {
			s := x.View().Snapshot(nil).Total
			codes := map[string]int64{}
			for code, n := range x.View().Codes() {
				if n > 0 {
					codes[code.String()] = n
				}
			}
			got[x.Name()] = fmt.Sprint(s.Pass, s.Complete, s.Exception, codes)
		}
		got["inbound"] = r.stats.Inbound().Snapshot(nil).Total.Pass
		answers = append(answers, got)
	}
	want := map[string]any{
		"rejected": "2", "counts": counts{counted: 6, duplicate: 1, late: 1, malformed: 1, internal: 1, sampled: 1, estimated: 2},
		"shop: GET /cart": "4 4 0 map[200:4]", "shop: shop.Cart/Add": "1 1 1 map[Unavailable:1]", "shop: mail: GET": "1 1 0 map[other:1]",
		"shop: \" \n é": "1 1 0 map[200:1]", "unmatched": "0 0 0 map[]", "inbound": int64(5),
	}
	for i, got := range answers {
		if !maps.Equal(got, want) {
			t.Errorf("%d:\n got %v\nwant %v", i, got, want)
		}
	}
}

// A name is text: a service whose name is a number has none, in JSON as in protobuf.
func TestTheNameOfAServiceIsText(t *testing.T) {
	x := ago(1, time.Second)
	x.service = "7"
	text := []byte(`{"stringValue":"7"}`)
	requests := map[string]func(*batch) error{
		"protobuf": func(b *batch) error {
			body := toProtobuf(x)
			asText, asNumber := putAttribute(nil, 1, "service.name", "7"), putAttribute(nil, 1, "service.name", 1<<7)
			if len(asText) != len(asNumber) {
				t.Fatal(len(asText), len(asNumber))
			}
			return b.protobuf(bytes.ReplaceAll(body, asText, asNumber))
		},
		"JSON": func(b *batch) error { return b.json(bytes.ReplaceAll(toJSON(x), text, []byte(`{"intValue":"7"}`))) },
	}
	for name, decode := range requests {
		var b batch
		if err := decode(&b); err != nil || len(b.spans) != 1 || len(b.spans[0].service) > 0 {
			t.Errorf("%s: %+v, %v", name, b.spans, err)
		}
	}
}

// rejectedBy is how many spans an answer says are rejected.
func rejectedBy(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Header().Get("Content-Type") == "application/json" {
		var answer struct {
			PartialSuccess struct{ RejectedSpans, ErrorMessage string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		return answer.PartialSuccess.RejectedSpans
	}
	return rejectedOf(t, w.Body.Bytes())
}

func rejectedOf(t *testing.T, answer []byte) string {
	t.Helper()
	n := int64(0)
	partial := []*field{{1, "", integer, nil, func(_ *batch, v value) { n = v.number }}}
	if err := new(batch).protobufMessage(&field{fields: []*field{{1, "", message, partial, nil}}}, answer); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(n)
}

// Each bad request has its answer, and nothing of it is counted.
func TestBadRequests(t *testing.T) {
	h, r := newTestHandler(t, Options{})
	good := toProtobuf(ago(1, time.Second), ago(2, time.Second))
	bomb := packed(make([]byte, maxBody+1))
	spanOf := func(b []byte) []byte { return put(nil, 1, put(nil, 2, put(nil, 2, b))) }
	for name, tc := range map[string]struct {
		contentType, encoding string
		body                  []byte
		status                int
	}{
		"no type":                   {"", "", good, 415},
		"another type":              {"text/plain", "", good, 415},
		"another encoding":          {protobufType, "br", good, 415},
		"half a message":            {protobufType, "", good[:len(good)-3], 400},
		"half a message of gzip":    {protobufType, "gzip", packed(good)[:50], 400},
		"no gzip":                   {protobufType, "gzip", good, 400},
		"nothing for gzip":          {protobufType, "gzip", nil, 400},
		"a bomb of gzip":            {protobufType, "gzip", bomb, 413},
		"too long":                  {protobufType, "", make([]byte, maxBody+1), 413},
		"a length beyond the end":   {protobufType, "", []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f}, 400},
		"no field has the number 0": {protobufType, "", []byte{0x02, 0x00}, 400},
		"half an attribute":         {protobufType, "", spanOf(put(nil, 9, []byte{0x0a, 0x05})), 400},
		"half a JSON":               {jsonType, "", toJSON(ago(1, time.Second))[:100], 400},
		"no JSON":                   {jsonType, "", good, 400},
		"another JSON":              {jsonType, "", []byte(`[]`), 400},
		"two JSONs":                 {jsonType, "", []byte(`{}{}`), 400},
		"a time that is no number":  {jsonType, "", []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"now"}]}]}]}`), 400},
		"a number with a fraction":  {jsonType, "", []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":1.5e18}]}]}]}`), 400},
		"an object for a name":      {jsonType, "", []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":{}}]}]}]}`), 400},
		"deep JSON":                 {jsonType, "", []byte(strings.Repeat(`{"x":`, 100_000)), 400},
		"more spans than are kept":  {protobufType, "", manySpans(maxSpans + 1), 413},
	} {
		w := post(h, tc.contentType, tc.encoding, tc.body)
		if w.Code != tc.status || w.Body.Len() == 0 {
			t.Errorf("%s: %d %q, want %d and why", name, w.Code, w.Body, tc.status)
		}
	}
	for name, request := range map[string]*http.Request{
		"GET":          httptest.NewRequest(http.MethodGet, tracesPath, nil),
		"another path": httptest.NewRequest(http.MethodPost, "/v1/metrics", bytes.NewReader(good)),
	} {
		request.Header.Set("Content-Type", protobufType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request)
		if w.Code != http.StatusMethodNotAllowed && w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if r.counts != (counts{}) {
		t.Errorf("%+v, want that nothing is counted", r.counts)
	}
	checkNothingHeld(t, h)
	if w := post(h, protobufType, "", nil); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("nothing: %d %q, want 200 and nothing", w.Code, w.Body)
	}
}

func manySpans(n int) []byte {
	one := toProtobuf(at(1, 1, 2))
	return bytes.Repeat(one, n)
}

// Each malformed span is rejected alone, with why; the others of its request count.
func TestMalformedSpans(t *testing.T) {
	short := put(nil, 1, make([]byte, 15))
	for name, tc := range map[string]struct {
		change func(*sent)
		why    error
	}{
		"no ids":                {func(s *sent) { s.id = 0 }, errID},
		"no begin":              {func(s *sent) { s.start = time.Time{} }, errOpen},
		"no end":                {func(s *sent) { s.end = time.Time{} }, errOpen},
		"it ends before":        {func(s *sent) { s.end = s.start.Add(-1) }, errBackward},
		"times in milliseconds": {func(s *sent) { s.start, s.end = time.Unix(0, s.start.UnixMilli()), time.Unix(0, s.end.UnixMilli()) }, errEpoch},
		"beyond the epoch":      {func(s *sent) { s.end = time.Unix(0, -1) }, errEpoch},
	} {
		r := receive(t, Options{}, second(0), time.Time{})
		bad := at(1, 0.1, 0.2)
		tc.change(&bad)
		not := r.send(t, 1, at(2, 0.1, 0.2), bad, at(3, 0.1, 0.2))
		if not.spans != 1 || !strings.Contains(not.why, tc.why.Error()) || r.counts[counted] != 2 || r.counts[malformed] != 1 {
			t.Errorf("%s: %d rejected, %s; %+v; want one because %v", name, not.spans, not.why, r.counts, tc.why)
		}
	}
	for name, b := range map[string][]byte{"a short id": short, "nothing": nil, "a field of another type": protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.VarintType), 7)} {
		var got batch
		if err := got.protobuf(put(nil, 1, put(nil, 2, put(nil, 2, b)))); err != nil || got.counts[malformed] != 1 || got.err != errID {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
}

// What is null in JSON is not there; a span that is null is one, and malformed.
func TestNull(t *testing.T) {
	for request, want := range map[string]int64{
		` null `:                 0,
		`{"resourceSpans":null}`: 0,
		`{"resourceSpans":[{"resource":null,"scopeSpans":[{"spans":null}]}]}`:                        0,
		`{"resourceSpans":[{"scopeSpans":[{"scope":null,"spans":[null, {"name":null,"x":null}]}]}]}`: 2,
	} {
		var got batch
		if err := got.json([]byte(request)); err != nil || len(got.spans) != 0 || got.counts[malformed] != want {
			t.Errorf("%s: %v, %+v, want %d malformed", request, err, got, want)
		}
	}
}

// A span costs what is read of it, however many attributes it has.
func TestAMillionAttributes(t *testing.T) {
	s := at(1, 0.1, 0.2)
	request := toProtobuf(s)
	var b batch
	attribute := putAttribute(nil, 9, "k", "v")
	inner := bytes.Repeat(attribute, 1_000_000)
	trace, id := s.ids()
	start, end := s.nanos()
	span := put(put(inner, 1, trace), 2, id)
	span = protowire.AppendVarint(protowire.AppendTag(span, 6, protowire.VarintType), 2)
	span = protowire.AppendFixed64(protowire.AppendTag(span, 7, protowire.Fixed64Type), start)
	span = protowire.AppendFixed64(protowire.AppendTag(span, 8, protowire.Fixed64Type), end)
	request = put(request, 1, put(nil, 2, put(nil, 2, span)))
	if n := testing.AllocsPerRun(1, func() {
		b = batch{spans: b.spans[:0]}
		if err := b.protobuf(request); err != nil || len(b.spans) != 2 {
			t.Fatalf("%d spans, %v", len(b.spans), err)
		}
	}); n > 100 {
		t.Errorf("%v allocations", n)
	}
}

// listenTo serves a handler as the command does, and returns its address.
func listenTo(t *testing.T, h http.Handler, stall time.Duration) string {
	t.Helper()
	b := listenBounds()
	b.Stall = stall
	s, err := server.Listen("127.0.0.1:0", h, testLogger(t), b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s.Address()
}

// neverRead sends requests on a connection until the server closes it, and reads no response.
func neverRead(t *testing.T, address string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	one := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 0\r\n\r\n", tracesPath, protobufType)
	requests := bytes.Repeat(one, 1000)
	for err == nil {
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, err = c.Write(requests)
	}
	// While the receive window is closed, the kernel learns of the end only when it probes, after up to two minutes. A
	// read opens the window.
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		_, err = io.Copy(io.Discard, c)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a client that never reads is still connected")
	}
}

// overGRPC sends a message as gRPC does, and returns how it ended, and what came back.
func overGRPC(t *testing.T, url, encoding string, body []byte) (status, text string, message []byte) {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	if encoding != "" {
		request.Header.Set("Grpc-Encoding", encoding)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	message, err = io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 {
		t.Errorf("%s: %v", answer.Status, err)
	}
	return answer.Trailer.Get("Grpc-Status"), answer.Trailer.Get("Grpc-Message"), message
}

func framed(flag byte, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(message))), message...)
}

func TestGRPC(t *testing.T) {
	h, r := newTestHandler(t, Options{})
	url := "http://" + listenTo(t, h, time.Minute)
	good := toProtobuf(ago(1, time.Second), ago(2, time.Hour))
	for name, tc := range map[string]struct {
		path, encoding string
		body           []byte
		status         string
	}{
		"plain":                   {grpcMethod, "", framed(0, good), "0"},
		"packed":                  {grpcMethod, "gzip", framed(1, packed(good)), "0"},
		"packed, not said how":    {grpcMethod, "", framed(1, packed(good)), "12"},
		"another method":          {"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", "", framed(0, good), "12"},
		"half a message":          {grpcMethod, "", framed(0, good)[:20], "3"},
		"less than it says":       {grpcMethod, "", append([]byte{0, 0, 1, 0, 0}, good...), "3"},
		"half a header":           {grpcMethod, "", []byte{0, 0}, "3"},
		"no message":              {grpcMethod, "", nil, "3"},
		"no protobuf":             {grpcMethod, "", framed(0, []byte("hello")), "3"},
		"a length beyond reason":  {grpcMethod, "", []byte{0, 0xff, 0xff, 0xff, 0xff, 1}, "8"},
		"a bomb":                  {grpcMethod, "gzip", framed(1, packed(make([]byte, maxBody+1))), "8"},
		"a bomb that is not gzip": {grpcMethod, "gzip", framed(1, good), "3"},
	} {
		status, text, message := overGRPC(t, url+tc.path, tc.encoding, tc.body)
		if status != tc.status || (status == "0") != (text == "") {
			t.Errorf("%s: status %s %q, want %s", name, status, text, tc.status)
		}
		if status == "0" && rejectedOf(t, message[5:]) == "" {
			t.Errorf("%s: %q", name, message)
		}
	}
	// A late span is not remembered, so it is late each time.
	if want := (counts{counted: 1, duplicate: 1, late: 2}); r.counts != want {
		t.Errorf("%+v, want %+v", r.counts, want)
	}
}
