package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
)

// ago returns a span that ended the given time ago.
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

func zstdPacked(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return w.EncodeAll(b, nil)
}

func indented(t *testing.T, b []byte) []byte {
	t.Helper()
	var to bytes.Buffer
	if err := json.Indent(&to, b, "\r\n", "\t"); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// post sends a request to a handler, and returns the response.
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

// A span has the same name, code and outcome in every format and encoding.
func TestProtobufAndJSONAreTheSame(t *testing.T) {
	rpc := ago(2, time.Second)
	rpc.name, rpc.failed = "shop.Cart/Add", true
	rpc.attributes = map[string]any{
		"rpc.system":           "grpc",
		"rpc.service":          "shop.Cart",
		"rpc.method":           "Add",
		"rpc.grpc.status_code": 14,
	}
	weighed := ago(3, time.Second)
	weighed.state = "ot=th:8"
	early, empty, inner := ago(4, time.Hour), ago(0, time.Second), ago(5, time.Second)
	inner.kind = 1
	again := ago(1, 2*time.Second)
	outbound := ago(6, time.Second)
	outbound.kind, outbound.name, outbound.attributes = kindClient, "GET", map[string]any{
		"peer.service":     "mail",
		"http.status_code": 200 - 1<<16,
	}
	odd := ago(7, time.Second)
	odd.name, odd.attributes = "\" \n é", map[string]any{"http.status_code": 200}
	nestedServer := ago(8, time.Second)
	nestedServer.parent, nestedServer.flags = 1, 0x101
	spans := []sent{ago(1, time.Second), rpc, weighed, early, empty, inner, again, outbound, odd, nestedServer}

	var responses []map[string]any
	for _, tc := range []struct {
		contentType, encoding string
		body                  []byte
	}{
		{"application/x-protobuf", "", toProtobuf(spans...)},
		{"application/x-protobuf", "gzip", packed(toProtobuf(spans...))},
		{"application/x-protobuf", "zstd", zstdPacked(t, toProtobuf(spans...))},
		{"application/x-protobuf", "ZSTD", slices.Concat(zstdPacked(t, toProtobuf(spans[:4]...)),
			zstdPacked(t, toProtobuf(spans[4:]...)))},
		{"application/json", "zstd", zstdPacked(t, toJSON(spans...))},
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
		responses = append(responses, got)
	}
	want := map[string]any{
		"rejected": "2",
		"counts": counts{
			counted: 6, duplicate: 1, late: 1, malformed: 1, internal: 1, sampled: 1, estimated: 2,
		},
		"shop: GET /cart": "4 4 0 map[200:4]", "shop: shop.Cart/Add": "1 1 1 map[Unavailable:1]",
		"shop: mail: GET":       "1 1 0 map[other:1]",
		"shop: inbound \" \n é": "1 1 0 map[200:1]", "unmatched": "0 0 0 map[]", "inbound": int64(5),
	}
	for i, got := range responses {
		if !maps.Equal(got, want) {
			t.Errorf("%d:\n got %v\nwant %v", i, got, want)
		}
	}
}

// A name must be text: a service whose name is a number has no name, in JSON and in protobuf.
func TestNameOfAServiceIsText(t *testing.T) {
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

// rejectedBy returns the number of rejected spans in a response.
func rejectedBy(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Header().Get("Content-Type") == "application/json" {
		var response struct {
			PartialSuccess struct{ RejectedSpans, ErrorMessage string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &response); err != nil {
			t.Fatal(err)
		}
		return response.PartialSuccess.RejectedSpans
	}
	return rejectedOf(t, w.Body.Bytes())
}

func rejectedOf(t *testing.T, response []byte) string {
	t.Helper()
	n := int64(0)
	partial := []*field{{1, "", integer, nil, func(_ *batch, v value) { n = v.number }}}
	m := &field{fields: []*field{{1, "", message, partial, nil}}}
	if err := new(batch).protobufMessage(m, response); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(n)
}

// Each bad request has its status and its reason. None of its spans is counted, and it holds nothing afterwards.
func TestBadRequests(t *testing.T) {
	h, r := newTestHandler(t, Options{})
	good := toProtobuf(ago(1, time.Second), ago(2, time.Second))
	zeros := make([]byte, maxBody+1)
	bigWindow, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bigWindow.Close() }()
	window := streamed(t, bigWindow, zeros[:1<<20])
	refused := map[string]int64{}
	for name, tc := range map[string]struct {
		contentType, encoding string
		body                  []byte
		status                int
		reason                string
	}{
		"no type":                   {"", "", good, 415, "content_type"},
		"another type":              {"text/plain", "", good, 415, "content_type"},
		"another encoding":          {protobufType, "br", good, 415, "unknown_compression"},
		"two encodings":             {protobufType, "gzip, zstd", good, 415, "unknown_compression"},
		"half a gzip message":       {protobufType, "gzip", packed(good)[:50], 400, "invalid_compression"},
		"not gzip":                  {protobufType, "gzip", good, 400, "invalid_compression"},
		"an empty gzip body":        {protobufType, "gzip", nil, 400, "invalid_compression"},
		"a gzip bomb":               {protobufType, "gzip", packed(zeros), 413, "too_large"},
		"half a zstd message":       {protobufType, "zstd", zstdPacked(t, good)[:50], 400, "invalid_compression"},
		"not zstd":                  {protobufType, "zstd", good, 400, "invalid_compression"},
		"an empty zstd body":        {protobufType, "zstd", nil, 400, "invalid_compression"},
		"a zstd bomb":               {protobufType, "zstd", zstdPacked(t, zeros), 413, "too_large"},
		"a zstd window of 64 MiB":   {protobufType, "zstd", window, 400, "invalid_compression"},
		"too long":                  {protobufType, "", zeros, 413, "too_large"},
		"half a message":            {protobufType, "", good[:len(good)-3], 400, invalidMessage},
		"a length beyond":           {protobufType, "", []byte{0x0a, 0xff, 0xff, 0xff, 0x7f}, 400, invalidMessage},
		"the field number 0":        {protobufType, "", []byte{0x02, 0x00}, 400, invalidMessage},
		"JSON without its end":      {jsonType, "", toJSON(ago(1, time.Second))[:100], 400, invalidMessage},
		"not JSON":                  {jsonType, "", good, 400, invalidMessage},
		"two JSON messages":         {jsonType, "", []byte(`{}{}`), 400, invalidMessage},
		"deep JSON":                 {jsonType, "", []byte(strings.Repeat(`{"x":`, 100_000)), 400, invalidMessage},
		"more spans than supported": {protobufType, "", manySpans(maxSpans + 1), 413, "too_many_spans"},
	} {
		w := post(h, tc.contentType, tc.encoding, tc.body)
		if w.Code != tc.status || w.Body.Len() == 0 {
			t.Errorf("%s: %d %q, want %d and a text", name, w.Code, w.Body, tc.status)
		}
		if got := w.Header().Get("Accept-Encoding"); (got == "gzip, zstd") != (tc.reason == "unknown_compression") {
			t.Errorf("%s: Accept-Encoding %q", name, got)
		}
		if refused[tc.reason]++; h.refusals.counts[tc.reason].Load() != refused[tc.reason] {
			t.Errorf("%s: not counted as %s", name, tc.reason)
		}
	}
	for reason, request := range map[string]*http.Request{
		"method":    httptest.NewRequest(http.MethodGet, tracesPath, nil),
		"not_found": httptest.NewRequest(http.MethodPost, "/v1/metrics", bytes.NewReader(good)),
	} {
		request.Header.Set("Content-Type", protobufType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request)
		if w.Code != http.StatusMethodNotAllowed && w.Code != http.StatusNotFound ||
			h.refusals.counts[reason].Load() != 1 {
			t.Errorf("%s: %d", reason, w.Code)
		}
	}
	if r.counts != (counts{}) {
		t.Errorf("%+v, want nothing counted", r.counts)
	}
	checkNothingHeld(t, h)
	if w := post(h, protobufType, "", nil); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("an empty message: %d %q, want 200 without a body", w.Code, w.Body)
	}
}

// streamed compresses in blocks, so the frame does not contain the size of the content.
func streamed(t *testing.T, w *zstd.Encoder, b []byte) []byte {
	t.Helper()
	var to bytes.Buffer
	w.Reset(&to)
	for chunk := range slices.Chunk(b, 1<<16) {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// A response to an invalid message names the field and the value.
func TestInvalidFields(t *testing.T) {
	h, _ := newTestHandler(t, Options{})
	span := func(fields string) string { return `{"resourceSpans":[{"scopeSpans":[{"spans":[{` + fields + `}]}]}]}` }
	const spans = "resourceSpans.scopeSpans.spans."
	for _, tc := range [][2]string{
		{`[]`, "an array is not an object"},
		{`{"resourceSpans":5}`, `resourceSpans: "5" is not an object`},
		{`{"resourceSpans":[{"resource":"x"}]}`, `resourceSpans.resource: "x" is not an object`},
		{`{"resourceSpans":[{"scopeSpans":[[]]}]}`, "resourceSpans.scopeSpans: an array is not an object"},
		{span(`"startTimeUnixNano":"now"`), spans + `startTimeUnixNano: "now" is not an integer`},
		{span(`"endTimeUnixNano":1.5e18`), spans + `endTimeUnixNano: "1.5e18" is not an integer`},
		{span(`"name":{}`), spans + "name: an object is neither a string nor a number"},
		{span(`"traceId":true`), spans + `traceId: "true" is neither a string nor a number`},
		{span(`"kind":"SERVER"`), spans + `kind: "SERVER" is not a SpanKind`},
		{
			span(`"kind":"` + strings.Repeat("é", 30) + `"`),
			spans + `kind: "` + strings.Repeat(`\u00e9`, 20) + `"... is not a SpanKind`,
		},
		{span(`"status":{"code":"FAILED"}`), spans + `status.code: "FAILED" is not a StatusCode`},
		{span(`"attributes":[{"value":{"intValue":"x"}}]`), spans + `attributes.value.intValue: "x" is not an integer`},
		{
			span(`"attributes":[{"value":{"doubleValue":"x"}}]`),
			spans + `attributes.value.doubleValue: "x" is not a number`,
		},
		{
			`{"resourceSpans":[}`,
			`the message is not JSON: "invalid character '}' ` +
				`looking for beginning of value" at byte 19`,
		},
		{`{"resourceSpans":[`, `the message is not JSON: "unexpected end of JSON input" at byte 18`},
	} {
		body, want := tc[0], tc[1]
		w := post(h, jsonType, "", []byte(body))
		var response struct{ Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &response); err != nil || w.Code != 400 || response.Message != want {
			t.Errorf("%s:\n got %d %s %v\nwant 400 %s", body, w.Code, response.Message, err, want)
		}
	}
	spanOf := func(b []byte) []byte { return put(nil, 1, put(nil, 2, put(nil, 2, b))) }
	for want, body := range map[string][]byte{
		"resourceSpans: the value is truncated":                            {0x0a, 0x05},
		"resourceSpans: an unknown field is not protobuf, or is truncated": put(nil, 1, []byte{0x7a, 0x05}),
		spans + "startTimeUnixNano: the value is truncated":                spanOf([]byte{0x39, 1, 2}),
		spans + "attributes.key: the value is truncated":                   spanOf(put(nil, 9, []byte{0x0a, 0x05})),
		spans + "attributes: the message is not protobuf, or is truncated": spanOf(put(nil, 9, []byte{0x02})),
	} {
		w := post(h, protobufType, "", body)
		if w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %q, want %s", w.Code, w.Body, want)
		}
	}
}

// JSON has the values of enumerations as numbers, as text with a number, and as names.
func TestEnumerations(t *testing.T) {
	for _, kinds := range []string{`3`, `"3"`, `"SPAN_KIND_CLIENT"`} {
		for _, codes := range []string{`2`, `"2"`, `"STATUS_CODE_ERROR"`} {
			s := ago(1, time.Second)
			s.kind, s.failed = kindClient, true
			body := bytes.Replace(toJSON(s), []byte(`"kind":3`), []byte(`"kind":`+kinds), 1)
			body = bytes.Replace(body, []byte(`"code":2`), []byte(`"code":`+codes), 1)
			var b batch
			if err := b.json(body); err != nil || len(b.spans) != 1 || b.spans[0].kind != kindClient ||
				!b.spans[0].failed {
				t.Errorf("kind %s, code %s: %v, %+v", kinds, codes, err, b.spans)
			}
		}
	}
}

// Refused requests are counted each, and logged once a minute for each reason.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	var logged bytes.Buffer
	r := receive(t, Options{MaxSpans: 3}, time.Now(), time.Time{})
	h := newHandler(r.receiver, slog.New(slog.NewTextHandler(&logged, nil)))
	for range 5 {
		post(h, protobufType, "", toProtobuf(ago(1, 0), ago(2, 0), ago(3, 0), ago(4, 0)))
		post(h, jsonType, "", []byte(`[]`))
		post(h, jsonType, "", []byte(`{"resourceSpans":5}`))
	}
	read := map[string]float64{}
	m := h.refusals.metric()
	m.Read(func(v float64, labels ...string) { read[labels[0]] = v })
	if read["full"] != 5 || read[invalidMessage] != 10 || read["busy"] != 0 || len(read) != len(reasons) {
		t.Errorf("%v, want 5 full and 10 invalid", read)
	}
	if n := strings.Count(logged.String(), "refused a request: full"); n != 1 {
		t.Errorf("%d messages of full requests:\n%s", n, &logged)
	}
	if n := strings.Count(logged.String(), "\n"); n != 2 {
		t.Errorf("%d messages, want one for each of two reasons:\n%s", n, &logged)
	}
}

func manySpans(n int) []byte {
	one := toProtobuf(at(1, 1, 2))
	return bytes.Repeat(one, n)
}

// A malformed span is rejected alone, with a reason. The other spans of its request count.
func TestMalformedSpans(t *testing.T) {
	short := put(nil, 1, make([]byte, 15))
	for name, tc := range map[string]struct {
		change func(*sent)
		why    error
	}{
		"no ids":         {func(s *sent) { s.id = 0 }, errID},
		"no begin":       {func(s *sent) { s.start = time.Time{} }, errOpen},
		"no end":         {func(s *sent) { s.end = time.Time{} }, errOpen},
		"it ends before": {func(s *sent) { s.end = s.start.Add(-1) }, errBackward},
		"times in milliseconds": {func(s *sent) {
			s.start, s.end = time.Unix(0, s.start.UnixMilli()), time.Unix(0, s.end.UnixMilli())
		}, errEpoch},
		"beyond the epoch": {func(s *sent) { s.end = time.Unix(0, -1) }, errEpoch},
	} {
		r := receive(t, Options{}, second(0), time.Time{})
		bad := at(1, 0.1, 0.2)
		tc.change(&bad)
		not := r.send(t, 1, at(2, 0.1, 0.2), bad, at(3, 0.1, 0.2))
		if not.spans != 1 || !strings.Contains(not.why, tc.why.Error()) || r.counts[counted] != 2 ||
			r.counts[malformed] != 1 {
			t.Errorf("%s: %d rejected, %s; %+v; want one because %v", name, not.spans, not.why, r.counts, tc.why)
		}
	}
	nameAsNumber := protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.VarintType), 7)
	for name, b := range map[string][]byte{
		"a short id": short, "nothing": nil, "a field of another type": nameAsNumber,
	} {
		var got batch
		if err := got.protobuf(put(nil, 1, put(nil, 2, put(nil, 2, b)))); err != nil || got.counts[malformed] != 1 ||
			got.err != errID {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
}

// A null in JSON is an absent field. A span that is null exists, and is malformed.
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

// Decoding a span takes no memory for attributes that are not used.
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
	one := fmt.Appendf(
		nil,
		"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 0\r\n\r\n",
		tracesPath,
		protobufType,
	)
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

// overGRPC sends a body as gRPC does, and returns the status, its text and the body of the response.
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
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	message, err = io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Errorf("%s: %v", response.Status, err)
	}
	if got := response.Header.Get("Grpc-Accept-Encoding"); got != "identity,gzip,zstd" {
		t.Errorf("Grpc-Accept-Encoding: %q", got)
	}
	return response.Trailer.Get("Grpc-Status"), response.Trailer.Get("Grpc-Message"), message
}

func framed(flag byte, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(message))), message...)
}

func TestGRPC(t *testing.T) {
	h, r := newTestHandler(t, Options{})
	const metricsMethod = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
	url := "http://" + listenTo(t, h, time.Minute)
	good := toProtobuf(ago(1, time.Second), ago(2, time.Hour))
	for name, tc := range map[string]struct {
		path, encoding string
		body           []byte
		status         string
	}{
		"plain":                       {grpcMethod, "", framed(0, good), "0"},
		"packed":                      {grpcMethod, "gzip", framed(1, packed(good)), "0"},
		"zstd":                        {grpcMethod, "zstd", framed(1, zstdPacked(t, good)), "0"},
		"plain, although gzip":        {grpcMethod, "gzip", framed(0, good), "0"},
		"packed, unknown":             {grpcMethod, "snappy", framed(1, packed(good)), "12"},
		"packed, not named":           {grpcMethod, "", framed(1, packed(good)), "12"},
		"another method":              {metricsMethod, "", framed(0, good), "12"},
		"half a message":              {grpcMethod, "", framed(0, good)[:20], "3"},
		"less than announced":         {grpcMethod, "", append([]byte{0, 0, 1, 0, 0}, good...), "3"},
		"half a header":               {grpcMethod, "", []byte{0, 0}, "3"},
		"no message":                  {grpcMethod, "", nil, "3"},
		"no protobuf":                 {grpcMethod, "", framed(0, []byte("hello")), "3"},
		"a length beyond the maximum": {grpcMethod, "", []byte{0, 0xff, 0xff, 0xff, 0xff, 1}, "8"},
		"a bomb":                      {grpcMethod, "gzip", framed(1, packed(make([]byte, maxBody+1))), "8"},
		"not gzip":                    {grpcMethod, "gzip", framed(1, good), "3"},
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
	if want := (counts{counted: 1, duplicate: 3, late: 4}); r.counts != want {
		t.Errorf("%+v, want %+v", r.counts, want)
	}
}
