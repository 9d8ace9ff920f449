package otlp

import (
	"math"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/internal/fairshare"
)

// resource is a resource that spans are counted for.
type resource struct {
	key resourceKey
	id  int32
	// used is the Unix time of the last span.
	used int64
	// remainder is the fraction of a call that is left over from the weights of its spans.
	remainder float64
	// gone is true after an eviction. The id may then belong to another resource.
	gone bool
}

type resourceKey struct {
	name string
	direction
}

// names maps spans to resources, and bounds the number of resources.
//
// A name that a service has made itself is a resource from its first call on. A name that a client may have invented,
// such as the path of a request without a route, is earned as in the proxy, see [httpstat.Names], but by its first
// response already: a span has its response when it is named. A bare method ("GET") is the name of requests for any
// path, so only calls that the service answered count for it.
//
// The options limit the number of resources. A service may add one while it has fewer than are free, or fewer than
// eight. One service alone therefore gets half of them, and ten thousand services take the memory of one. A new
// resource evicts resources that have been idle for eleven minutes, and never a busy one. Without capacity, a call
// counts for [collector.Other].
//
// Naming is most of the cost of a span, so names caches the resource of each text. A span with a known text costs a
// lookup. Concurrent use is not safe.
type names struct {
	// service is the only counted service, or empty for all. Its resources do not contain its name.
	service string
	earned  *httpstat.Names
	most    int

	// known caches the results by key; see of.
	known timeline.Known[*knownName]
	byKey map[resourceKey]*resource
	// inUse has the resources by service.
	inUse fairshare.Table[string, *resource]
	// list has the resources by id.
	list []*resource
	// free has the unused ids.
	free    []int32
	targets *targets
	// now is the Unix time of the current request.
	now int64
	// key is a buffer.
	key []byte
}

// knownName is the result for a text.
type knownName struct {
	plain   string
	service string
	// bare is explained at operation.
	bare bool
	// target is nil if the name has none of its own.
	target *target
	// resource is the resource of the latest span.
	resource *resource
}

const (
	// maxKey is the maximum length of the text of a known name. Longer names are made for each span.
	maxKey = 1 << 10
	// A resource that has been idle for idleAfter seconds may be evicted. This time is a minute longer than the history
	// of the Collector, so every exporter has received its seconds, and the Collector has retired it.
	idleAfter = int64((collector.DefaultHistory + time.Minute) / time.Second)
)

func newNames(service string, earned *httpstat.Names, most int) *names {
	n := &names{
		service: service, earned: earned, most: most,
		known: timeline.Known[*knownName]{}, byKey: map[resourceKey]*resource{}, targets: newTargets(most),
	}
	n.inUse.Kept = math.MaxInt // evict the longest idle resource of all services
	n.inUse.Used = func(r *resource) int64 { return r.used }
	return n
}

// of returns the resource of a span.
func (n *names) of(s *span) *resource {
	d, own := s.direction(), byte(0)
	if s.ownName() {
		own = 1
	}
	name := s.spanName(d)
	if n.service == "" {
		name.service = s.service
	}
	// The key contains everything that the result depends on: direction, origin, service and text. It is built in one
	// buffer, and a lookup with string(n.key) does not allocate.
	n.key = append(append(append(n.key[:0], byte(d), own), s.service...), 0)
	at := len(n.key)
	n.key = name.append(n.key, nil)
	k := n.known[string(n.key)]
	if k == nil || k.target != nil && k.target.gone {
		k = n.know(s, &name, n.key[at:])
	}
	if k.target != nil {
		k.target.used = n.now
	}
	// The rest may change from span to span: names are earned, folded and evicted.
	plain, service := k.plain, k.service
	if own == 0 {
		plain, service = n.unowned(k, s.answered())
	}
	if r := k.resource; r == nil || r.gone || r.key.name != plain {
		k.resource = n.resource(service, resourceKey{plain, d})
	}
	k.resource.used = n.now
	return k.resource
}

// know returns a new known name for n.key, whose last part is text.
func (n *names) know(s *span, name *spanName, text []byte) *knownName {
	k := &knownName{service: collector.CleanName(string(s.service)), bare: name.operation.bare}
	if len(name.target) > 0 {
		k.target = n.targets.use(k.service, string(name.system)+" "+string(name.target), n.now)
		if k.target == nil {
			k.plain = collector.CleanName(string(name.append(nil, star)))
			return k // not stored, because the target may get its own name later
		}
	}
	k.plain = collector.CleanName(string(text))
	if len(n.key) <= maxKey {
		n.known.Add(n.key, k)
	}
	return k
}

// unowned returns the name of a call whose plain name a client may have invented, and the service that has it.
func (n *names) unowned(k *knownName, answered bool) (name, service string) {
	if answered { // this call may earn the name that it is counted for
		n.earned.Learn(k.plain, k.service, http.StatusOK)
	}
	if answered || !k.bare {
		if name, status := n.earned.Name(k.plain, k.service); status != httpstat.Unearned {
			return name, k.service
		}
	}
	return httpstat.Unmatched, ""
}

// resource returns the resource of a key, or [collector.Other] if there is no capacity for a new one.
func (n *names) resource(service string, key resourceKey) *resource {
	if r := n.byKey[key]; r != nil {
		return r
	}
	// These two exist always, and never count for a service.
	bounded := key.name != httpstat.Unmatched && key.name != collector.Other
	if bounded && !n.admits(service) {
		return n.resource("", resourceKey{collector.Other, key.direction})
	}
	r := &resource{key: key, used: n.now}
	if bounded {
		n.inUse.Add(service, 1, r)
	}
	// Ids are dense and reused, so list stays as small as the number of resources. The timeline holds
	// ids for at most twice the tolerance, which is less than idleAfter, so a held id never changes its resource.
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

// admits evicts the idle resources, and reports whether a service may add one.
func (n *names) admits(service string) bool {
	for x := n.inUse.First(); x != nil && n.now-x.Value.used > idleAfter; x = n.inUse.First() {
		r := x.Value
		n.inUse.Remove(x)
		delete(n.byKey, r.key)
		r.gone, n.free = true, append(n.free, r.id)
	}
	return fairshare.MayHave(n.inUse.Amount(service), n.inUse.Len(), n.most)
}

// optionsOf holds the options of calls by their direction.
var optionsOf = [...][]collector.CallOption{
	inbound:  {collector.Inbound()},
	outbound: {collector.Outbound()},
	nested:   nil,
}

// resourceOf returns the name of the resource with an id, and the options of its calls.
func (n *names) resourceOf(id int32) (string, []collector.CallOption) {
	key := n.list[id].key
	return key.name, optionsOf[key.direction]
}
