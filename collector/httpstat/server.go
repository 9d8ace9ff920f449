package httpstat

import (
	"net/http"
	"reflect"
	"sync/atomic"
)

// serverFields locates fields of *http.response, the ResponseWriter of net/http for HTTP/1. The fields show the status
// of a response, and whether the client may have received a part of it.
//
// The fields are needed for the following reason. A handler can limit a body with http.MaxBytesReader, which takes the
// handler's ResponseWriter. When the limit is exceeded, MaxBytesReader calls an unexported method of this
// ResponseWriter, and net/http closes the connection instead of reading the rest of the body. No type of another
// package can have this method. The handler of a request with a body therefore gets net/http's own writer. When the
// handler has returned, this package reads the fields of the writer:
//
//	http.response
//	├── status          final status; 0 until the handler writes a status
//	├── w               buffer of the body; nil after Hijack
//	└── cw.wroteHeader  true after net/http has written the header
//
// The goroutine that ran the handler reads the fields by reflection, and never writes them. A release of Go may rename
// the fields. In that case the handler gets a wrapped writer, which lacks only the unexported method, and a test of
// this package fails.
type serverFields struct {
	of                     reflect.Type // *http.response
	status, buffer, header []int        // index paths for reflect.Value.FieldByIndex
}

// knownFields caches the fields of *http.response. It is nil until fieldsOf gets a writer of this type.
var knownFields atomic.Pointer[serverFields]

// fieldsOf returns the fields of net/http's HTTP/1 writer, or nil for any other writer.
func fieldsOf(w http.ResponseWriter) *serverFields {
	t := reflect.TypeOf(w)
	f := knownFields.Load()
	if f == nil && t.String() == "*http.response" && t.Elem().PkgPath() == "net/http" {
		f = findFields(t)
		knownFields.Store(f)
	}
	if f == nil || f.of != t || f.status == nil {
		return nil
	}
	return f
}

// findFields finds the fields of the type t. If a field is missing or has an unexpected type, the field status of the
// result is nil.
func findFields(t reflect.Type) *serverFields {
	none := &serverFields{of: t}
	status, ok := t.Elem().FieldByName("status")
	if !ok || !status.Type.ConvertibleTo(reflect.TypeFor[int]()) {
		return none
	}
	buffer, ok := t.Elem().FieldByName("w")
	if !ok || buffer.Type.Kind() != reflect.Pointer {
		return none
	}
	chunks, ok := t.Elem().FieldByName("cw")
	if !ok || chunks.Type.Kind() != reflect.Struct {
		return none
	}
	header, ok := chunks.Type.FieldByName("wroteHeader")
	if !ok || header.Type.Kind() != reflect.Bool {
		return none
	}
	return &serverFields{
		of:     t,
		status: status.Index,
		buffer: buffer.Index,
		header: append(chunks.Index, header.Index...),
	}
}

// read records the status from net/http's own writer, after the handler has returned. read cannot know whether the
// client hung up before or after the response began. If the client has hung up, and net/http has not written the
// header, the client has received no part of the response. read then sets late.
func (w *writer) read() {
	v, f := reflect.ValueOf(w.target).Elem(), knownFields.Load()
	w.status = int32(v.FieldByIndex(f.status).Int())
	switch {
	case w.status == 0 && v.FieldByIndex(f.buffer).IsNil():
		w.status = http.StatusSwitchingProtocols // a hijacked connection may switch to any protocol
	case w.status != 0 && !v.FieldByIndex(f.header).Bool():
		w.late = hungUp(w.ctx)
	}
}
