package proxy

import "net/http"

// refused is why a request is for no service, and the status that says so; 0 if it may be for one. The status is below 500: it is
// no exception of the service.
func refused(r *http.Request) (status int, why string) {
	switch {
	case r.Method == http.MethodConnect:
		return http.StatusMethodNotAllowed, "CONNECT is for a proxy that connects to any host; this one is in front of a service"
	case r.ProtoMajor != 1: // PRI * HTTP/2.0, which net/http leaves to handlers
		return http.StatusBadRequest, "HTTP/2 is not spoken here"
	case r.RequestURI == "*" && r.Method != http.MethodOptions:
		return http.StatusBadRequest, "* is for OPTIONS only"
	}
	return 0, ""
}
