package httpstat

import (
	"net/http"

	"github.com/windowstat/windowstat/collector"
)

// StatusClientClosedRequest is the status with which a request is counted if its client hung up before the response
// began. This status is never sent. nginx introduced it for its access log.
const StatusClientClosedRequest = 499

// handle runs the handler next, and then ends the call e with the status and the error that settle determines.
func (m *Middleware) handle(
	e *collector.Entry, trace string, next http.Handler, w *writer, wrapped http.ResponseWriter, r *http.Request,
) {
	err := collector.ErrPanicked // unless settle returns
	var code collector.Code
	defer func() {
		if trace == "" {
			e.ExitCode(err, code)
		} else {
			e.ExitTrace(err, code, trace)
		}
	}()
	returned := false
	defer func() {
		w.giveBack(r)
		var reason any
		// Recover a panic only if settle needs the value of the panic. The deferred call of panic below then panics
		// again with the same value.
		if !returned && (m.recovered != 0 || hungUp(w.ctx)) {
			if reason = recover(); reason != nil { // nil after runtime.Goexit
				defer panic(reason)
			}
		}
		m.settle(w, returned, reason, &err, &code)
	}()
	next.ServeHTTP(wrapped, &w.request)
	returned = true
}

// settle determines the final status, and the code and the error of the call. reason is the value of the handler's
// panic if handle has recovered it. Otherwise reason is nil.
//
//	handler                         status                                       error
//	returned                        499 if the response is late, otherwise the   error of the status,
//	                                written status, or 200 if none was written   or of the gRPC code
//	aborted after a hang-up         the same, but 499 if none was written        the same
//	panicked in another way         the written status, or the status of the     ErrPanicked
//	                                option Recovered if none was written
//
// A response is late if the client had hung up before the response began.
func (m *Middleware) settle(w *writer, returned bool, reason any, err *error, code *collector.Code) {
	if w.own {
		w.read()
	}
	switch {
	case returned:
		w.implyOK()
	case reason == http.ErrAbortHandler && hungUp(w.ctx):
		returned = true // httputil.ReverseProxy, for example, aborts the response if its client has left
		w.late = w.late || w.status == 0
	case reason != nil && reason != http.ErrAbortHandler && w.status == 0:
		w.status = int32(m.recovered) // status that outer middleware sends; 0 without the option
	}
	if returned && w.late {
		w.status = StatusClientClosedRequest
	}
	if w.status != 0 {
		*code = collector.HTTPStatus(int(w.status))
	}
	if !returned {
		return
	}
	if w.status == http.StatusOK && isGRPC(&w.request) {
		if n, ok := grpcStatus(w.to.Header()); ok {
			*code = collector.GRPCCode(n)
			if *err = grpcFailure(n, false); *err != nil {
				return
			}
		}
	}
	*err = collector.ErrPanicked // unless failure returns
	*err = m.failure(int(w.status))
}
