package otlp

import (
	"bytes"
	"math"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/internal/fairshare"
)

// resource is one that spans are counted for.
type resource struct {
	key       resourceKey
	id        int32
	used      int64   // Unix time of the last span
	remainder float64 // of a call, that the weights of its spans leave over
	gone      bool    // it was evicted, and its id may be another one's
}

type resourceKey struct {
	name string
	direction
}

// names are the resources of spans, and their bounds. A name that a service has made itself is its resource from the first call on. One
// that a stranger may have made up, such as the path of a request without a route, is earned as in the proxy, see [httpstat.Names], but
// by its first answer already: a span has its answer when it is named.
//
// Of all together there are as many as the options say. A service may have one more while it has fewer than are left, or fewer than eight, so
// one service alone gets half of them, and ten thousand take no more memory than one. A new one evicts those that have been idle for eleven
// minutes. A call for which there is no capacity counts for [collector.Other]. A busy name is never evicted.
//
// Naming is most of what a span costs, so what it found is remembered for the words that it found it for: a span whose words have come
// before costs a lookup. It is not safe for concurrent use.
type names struct {
	service string // the only one that is counted, whose name is not in those of its resources; empty for all
	earned  *httpstat.Names
	most    int

	known map[string]*knownName // by all that a name is made of
	byKey map[resourceKey]*resource
	inUse fairshare.Table[string, *resource] // by service
	list  []*resource                        // by id
	free  []int32
	now   int64 // Unix time
	key   []byte
}

// knownName is a name that has come, and its resource when it came last.
type knownName struct {
	plain    string
	service  string
	resource *resource
}

const (
	// maxKnown is how many names are remembered. Then all are forgotten, and those that are in use come back.
	maxKnown = 50_000
	// maxKey is how long the words of a name may be that is remembered.
	maxKey = 1 << 10
	// idleAfter is how long a resource has been idle that is evicted: a minute longer than the Collector keeps its seconds for, so that
	// every way out has had them, and the Collector has capacity by then.
	idleAfter = int64((collector.DefaultHistory + time.Minute) / time.Second)
)

func newNames(service string, earned *httpstat.Names, most int) *names {
	n := &names{service: service, earned: earned, most: most, known: map[string]*knownName{}, byKey: map[resourceKey]*resource{}}
	n.inUse.Kept = math.MaxInt
	n.inUse.Used = func(r *resource) int64 { return r.used }
	return n
}

// of returns the resource of a span.
func (n *names) of(s *span) *resource {
	d, own := s.direction(), byte(0)
	if s.ownName() {
		own = 1
	}
	n.key = append(append(append(n.key[:0], byte(d), own), s.service...), 0)
	at := len(n.key)
	n.key = n.append(n.key, s, d)
	k := n.known[string(n.key)]
	if k == nil {
		k = &knownName{plain: collector.CleanName(string(n.key[at:])), service: collector.CleanName(string(s.service))}
		if len(n.key) <= maxKey {
			if len(n.known) >= maxKnown {
				clear(n.known)
			}
			n.known[string(n.key)] = k
		}
	}
	name, service := k.plain, k.service
	if own == 0 {
		if s.answered() { // this call may earn the name that it is counted for
			n.earned.Learn(k.plain, k.service, http.StatusOK)
		}
		var standing httpstat.NameStatus
		if name, standing = n.earned.Name(k.plain, k.service); standing == httpstat.Unearned {
			name, service = httpstat.Unmatched, ""
		}
	}
	if r := k.resource; r == nil || r.gone || r.key.name != name {
		k.resource = n.resource(service, resourceKey{name, d})
	}
	k.resource.used = n.now
	return k.resource
}

// append appends the plain name of a span: what it says of its route or its method, or else its name. The peer of an outbound call stands
// before that, and before all the service, unless only one is counted.
func (n *names) append(b []byte, s *span, d direction) []byte {
	if n.service == "" && len(s.service) > 0 {
		b = append(append(b, s.service...), ": "...)
	}
	if d == outbound && len(s.peer) > 0 {
		b = append(append(b, s.peer...), ": "...)
	}
	switch {
	case len(s.route) > 0 && d != outbound:
		if m := s.method; len(m) > 0 && !(bytes.HasPrefix(s.route, m) && bytes.HasPrefix(s.route[len(m):], []byte(" "))) {
			if string(m) == "_OTHER" {
				m = []byte("HTTP") // as names of spans have it
			}
			b = append(append(b, m...), ' ')
		}
		return append(b, s.route...)
	case len(s.rpcMethod) > 0:
		if len(s.rpcService) > 0 && !bytes.Contains(s.rpcMethod, []byte("/")) {
			b = append(append(b, s.rpcService...), '/')
		}
		return append(b, s.rpcMethod...)
	}
	return append(b, s.name...)
}

// resource returns the resource of a key, which is made if there is capacity.
func (n *names) resource(service string, key resourceKey) *resource {
	if r := n.byKey[key]; r != nil {
		return r
	}
	bounded := key.name != httpstat.Unmatched && key.name != collector.Other
	if bounded && !n.admits(service) {
		return n.resource("", resourceKey{collector.Other, key.direction})
	}
	r := &resource{key: key, used: n.now}
	if bounded {
		n.inUse.Add(service, 1, r)
	}
	if last := len(n.free) - 1; last >= 0 {
		r.id, n.free = n.free[last], n.free[:last]
		n.list[r.id] = r
	} else {
		r.id = int32(len(n.list))
		n.list = append(n.list, r)
	}
	n.byKey[key] = r
	return r
}

// admits reports whether a service may have one more resource. It evicts those that are idle.
func (n *names) admits(service string) bool {
	for x := n.inUse.First(); x != nil && n.now-x.Value.used > idleAfter; x = n.inUse.First() {
		r := x.Value
		n.inUse.Remove(x)
		delete(n.byKey, r.key)
		r.gone, n.free = true, append(n.free, r.id)
	}
	return fairshare.MayHave(n.inUse.Amount(service), n.inUse.Len(), n.most)
}

// optionsOf are the options of calls, by their direction.
var optionsOf = [...][]collector.CallOption{inbound: {collector.Inbound()}, outbound: {collector.Outbound()}, nested: nil}

// resourceOf is the name of a resource by its id, and the options of its calls.
func (n *names) resourceOf(id int32) (string, []collector.CallOption) {
	key := n.list[id].key
	return key.name, optionsOf[key.direction]
}
