package httpstat

import (
	"net/http"

	"github.com/windowstat/windowstat/collector"
)

// StatusClientClosedRequest is the status with which a request is counted if its client hung up before the response
// began. This status is never sent. nginx writes this status to its access log.
const StatusClientClosedRequest = 499

// handle runs the handler next, and then ends the call e with the status and the error that settle determines.
func (m *Middleware) handle(
	e *collector.Entry, trace string, next http.Handler, w *writer, rw http.ResponseWriter, r *http.Request,
) {
	err := collector.ErrPanicked // settle may replace this error
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
			if reason = recover(); reason != nil { // recover returns nil after runtime.Goexit
				defer panic(reason)
			}
		}
		m.settle(w, returned, reason, &err, &code)
	}()
	next.ServeHTTP(rw, &w.request)
	returned = true
}

// settle determines the final status, and the code and the error of the call. reason is the value of the handler's
// panic if handle has recovered it. Otherwise reason is nil.
//
//	handler                     status, if one was written   status, if none was written   error
//	returned                    the written status           200                           of the status or gRPC code
//	aborted after a hang-up     the written status           499                           of the status or gRPC code
//	aborted without a hang-up   the written status           none                          ErrPanicked
//	called runtime.Goexit       the written status           none                          ErrPanicked
//	panicked in another way     the written status           of the option Recovered       ErrPanicked
//
// A handler aborts if it panics with http.ErrAbortHandler. In the first two rows the status is 499 if the response is
// late: the client had hung up before the response began.
func (m *Middleware) settle(w *writer, returned bool, reason any, err *error, code *collector.Code) {
	if w.own {
		w.read()
	}
	switch {
	case returned:
		w.implyOK()
	case reason == http.ErrAbortHandler && hungUp(w.ctx):
		returned = true // count as returned: httputil.ReverseProxy, for example, aborts after a hang-up
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
		if n, ok := grpcStatus(w.target.Header()); ok {
			*code = collector.GRPCCode(n)
			if *err = grpcFailure(n, false); *err != nil {
				return
			}
		}
	}
	*err = collector.ErrPanicked // *err keeps this value if the function of the option Exception panics
	*err = m.failure(int(w.status))
}
