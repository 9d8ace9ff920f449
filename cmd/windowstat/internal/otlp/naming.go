package otlp

import "bytes"

// spanName holds the parts of the name of a span's resource.
type spanName struct {
	// service is empty if only one service is counted.
	service []byte
	// target is the system that an outbound call goes to, or empty if the span does not have it. The number of targets
	// is bounded, see targets.
	system, target []byte
	direction      direction
	operation      operation
}

// operation is the part of a name after service and target: at most two words with a separator.
type operation struct {
	first, separator, second []byte
	// routed is true for a route and for the method of an RPC.
	routed bool
	// bare is true if there is only an HTTP method. Requests for known and for unknown paths have the same bare name.
	bare bool
}

var (
	colon     = []byte(": ")
	space     = []byte(" ")
	slash     = []byte("/")
	httpWord  = []byte("HTTP") // method of a name if the real method is unknown
	otherWord = []byte("_OTHER")
)

// spanName returns the name of a span with the direction d, without its service:
//
//	GET /users/{id}                 inbound, with a route
//	shop.Cart/Add                   inbound, with a method of an RPC
//	GET /users/4711                 inbound, without a route: the name of the span, which contains a path
//	inbound GET                     inbound, without a route and without a path
//	inbound process orders          received message
//	mail: GET                       outbound, to a peer with a configured name
//	api.example.com: GET            outbound, to an address
//	postgresql shop: SELECT users   outbound, to a database
//	orders: send orders             outbound, to a destination of messages
//	outbound GET                    outbound, without a target
//
// An outbound name always has a target or the word outbound, so it never equals the name of an inbound call.
func (s *span) spanName(d direction) (n spanName) {
	n.direction = d
	if d == outbound {
		n.system, n.target = s.target()
		n.operation = s.outboundOperation()
	} else {
		n.operation = s.inboundOperation()
	}
	return n
}

// target returns the target of an outbound call, and the system that precedes it in the name. The most specific
// attribute wins: a configured name, a database, a destination of messages, an address.
func (s *span) target() (system, target []byte) {
	switch {
	case len(s.peer) > 0:
		return nil, s.peer
	case len(s.dbSystem) > 0 && len(s.dbNamespace) > 0:
		return s.dbSystem, s.dbNamespace
	case len(s.dbSystem) > 0:
		return s.dbSystem, s.address
	case len(s.destination) > 0:
		return nil, s.destination
	}
	return nil, s.address
}

// inboundOperation returns the operation of an inbound call.
func (s *span) inboundOperation() operation {
	if len(s.route) == 0 {
		return s.commonOperation()
	}
	m := s.method
	if len(m) == 0 || bytes.HasPrefix(s.route, m) && bytes.HasPrefix(s.route[len(m):], space) {
		return operation{second: s.route, routed: true} // the route contains the method
	}
	return operation{first: knownMethod(m), separator: space, second: s.route, routed: true}
}

// outboundOperation returns the operation of an outbound call.
func (s *span) outboundOperation() operation {
	// Clients report the template of a URL as servers report a route. The name of the span may contain it already.
	if len(s.template) > 0 && len(s.method) > 0 {
		return operation{first: knownMethod(s.method), separator: space, second: s.template, routed: true}
	}
	return s.commonOperation()
}

// commonOperation returns the operation of a call without a route: the method of an RPC, or the name of the span.
func (s *span) commonOperation() operation {
	switch {
	case len(s.rpcMethod) > 0 && len(s.rpcService) > 0 && !bytes.Contains(s.rpcMethod, slash):
		return operation{first: s.rpcService, separator: slash, second: s.rpcMethod, routed: true}
	case len(s.rpcMethod) > 0:
		return operation{second: s.rpcMethod, routed: true}
	}
	// Many instrumentations of servers know only the method when a span starts, and name it when a framework reports
	// the route. Without one, all paths share the name of their method.
	//
	// Instrumentations name a span without a route "GET" or "HTTP GET".
	name := s.name
	if rest, ok := bytes.CutPrefix(name, []byte("HTTP ")); ok && isMethod(rest) {
		name = rest
	}
	return operation{second: name, bare: isMethod(name)}
}

// isMethod reports whether text is an HTTP method, and not a name that says more: all methods are in upper case.
func isMethod(text []byte) bool {
	for _, c := range text {
		if (c < 'A' || c > 'Z') && c != '_' && c != '-' {
			return false
		}
	}
	return len(text) > 0
}

// knownMethod returns a method as names of spans contain it.
func knownMethod(m []byte) []byte {
	if bytes.Equal(m, otherWord) {
		return httpWord
	}
	return m
}

// append appends the name. The text star, if not nil, replaces the target, wherever the name contains it.
func (n *spanName) append(b, star []byte) []byte {
	if len(n.service) > 0 {
		b = append(append(b, n.service...), colon...)
	}
	o := &n.operation
	switch {
	case n.direction == outbound && len(n.system)+len(n.target) > 0:
		return n.appendTarget(b, star)
	case len(o.second) == 0: // an empty name remains empty, see [collector.Unnamed]
	case n.direction == outbound:
		b = append(b, "outbound "...)
	case !o.routed && !bytes.Contains(o.second, slash):
		b = append(b, "inbound "...)
	}
	return append(append(append(b, o.first...), o.separator...), o.second...)
}

// appendTarget appends the target and the operation of an outbound call.
func (n *spanName) appendTarget(b, star []byte) []byte {
	o, target, second := &n.operation, n.target, n.operation.second
	if star != nil && len(target) > 0 {
		target, second = star, bytes.ReplaceAll(second, target, star)
	}
	b = append(b, n.system...)
	if len(n.system) > 0 && len(target) > 0 {
		b = append(b, ' ')
	}
	b = append(append(b, target...), colon...)
	return append(append(append(b, o.first...), o.separator...), second...)
}
