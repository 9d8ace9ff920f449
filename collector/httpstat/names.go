package httpstat

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Defaults of [NamesOptions].
const (
	DefaultMaxNames  = 1000
	DefaultMaxValues = 10
)

// NamesOptions configures [Names]. The zero value is a sensible configuration.
type NamesOptions struct {
	// Given lists names that need not be earned, such as the patterns of routes. Pass them to
	// [collector.Options].Given, too.
	Given []string
	// MaxNames is the maximum number of earned names in use, [DefaultMaxNames] if zero. Set MaxNames to the maximum
	// number of resources of the Collector. A name stays in use until [collector.DefaultHistory] has passed since its
	// last call. Afterwards the name is no longer in use, but stays earned: Names keeps up to ten times MaxNames earned
	// names in all.
	MaxNames int
	// MaxValues is the maximum number of values that one path segment can have in names, [DefaultMaxValues] if zero.
	// All other values of the segment become "*".
	MaxValues int
	// Host returns the address of the client that sends a request; nil means RemoteAddr. Behind a trusted proxy, Host
	// should return the client's address that the proxy reports. All addresses of an IPv6 /64 are one client. If the
	// address is empty, the client is unknown. All unknown clients together may earn as many names as there are free
	// slots.
	Host func(*http.Request) string
	// Now replaces time.Now.
	Now func() time.Time
}

// NameStatus is the status of a name: it shows whether the name may have a resource, see [Names].
type NameStatus uint8

const (
	// Unearned means that the name may not have a resource. Usually no call of the name has succeeded yet. The name is
	// also Unearned if no more names can be in use, see [Names]. Calls of the name are counted as [Unmatched].
	Unearned NameStatus = iota
	// Earned means that the name is earned (a call of the name has succeeded) and in use.
	Earned
	// Given means that the name comes from code or configuration, not from a request.
	Given
)

// Names decides which names become resources, for services whose names are made from requests, for example from their
// paths. Without this decision, clients could fill the table of resources with invented paths.
//
// A name is earned when the service responds to a request of the name with success: status 2xx, 101 or 304. Redirects,
// 401, 403, 404, 405 and errors earn nothing, because gateways respond to any path with these statuses. Names keeps the
// most recently used earned names. They stay earned even after the Collector has retired their resource, and across
// restarts with [Names.Save]. Names in NamesOptions.Given need not be earned.
//
// A service may respond to every path with success. Names therefore also limits the number of values of a path segment.
// At each position of a path, at most MaxValues values appear in names: the values with the most calls. All other
// values are replaced by "*". A new value takes the slot of the value with the fewest calls once the new value has more
// than twice as many calls.
//
// Names does not let a call bypass a limit. If a limit matches the full name of a call, but not the name with "*", the
// call keeps its full name. Limits check an unearned name unchanged, although its calls are counted as [Unmatched].
//
// At most MaxNames names are in use. The other slots are free. A host (an IP address or an IPv6 /64) can earn a further
// name only if a slot is free. In addition, the host must have fewer names in use than there are free slots, or fewer
// than eight names in use. A single host therefore gets at most half of MaxNames names, or eight if that is more.
//
// Create a Names with [NewNames]. It is safe for concurrent use. Decisions depend only on the calls, their order and
// the time. The memory is bounded by MaxNames, plus a few megabytes for the counts of paths. A decision holds a lock
// for less than a microsecond.
type Names struct {
	// The steps of a call, for example of GET /users/4711:
	//
	//	PathName           makes the plain name, GET /users/:id
	//	pathTree.name      replaces values with few calls by "*"
	//	earnedNames.use    returns the status; a call with an Unearned name counts as Unmatched
	//	(the service handles the call)
	//	pathTree.learn     after a success: counts the values, and may give a value its own name
	//	earnedNames.earn   after a success: earns the name

	opts  NamesOptions
	given map[string]bool // read-only

	mu     sync.Mutex
	paths  *pathTree
	earned *earnedNames

	saveMu sync.Mutex // held by Save, because all calls of Save write the same temporary file
}

// NewNames returns a Names with the given options. The error lists every option that is out of range.
func NewNames(o NamesOptions) (*Names, error) {
	o.MaxNames, o.MaxValues = cmp.Or(o.MaxNames, DefaultMaxNames), cmp.Or(o.MaxValues, DefaultMaxValues)
	if o.Now == nil {
		o.Now = time.Now
	}
	var errs []error
	const maxValues = 1000 // upper bound of MaxValues, because pathTree.tryPromote scans all values of a segment
	if o.MaxNames < 1 {
		errs = append(errs, fmt.Errorf("httpstat: MaxNames is %d; the minimum is 1", o.MaxNames))
	}
	if o.MaxValues < 1 || o.MaxValues > maxValues {
		errs = append(errs, fmt.Errorf("httpstat: MaxValues is %d; the range is 1 to %d", o.MaxValues, maxValues))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	n := &Names{
		opts:   o,
		given:  map[string]bool{Unmatched: true},
		paths:  newPathTree(o.MaxValues),
		earned: newEarnedNames(o.MaxNames),
	}
	for _, name := range o.Given {
		n.given[name] = true
	}
	return n, nil
}

// Name returns the name that limits check for a call, and the status s of this name. The plain name is the name that
// [PathName] makes: a method and a path. The client is an address with or without a port, or empty if unknown. If s is
// Given or Earned, the call is counted under the returned name. If s is Unearned, the call is counted as [Unmatched],
// unless the Collector has a resource of the returned name; see [collector.FallbackResource].
func (n *Names) Name(plain, client string) (name string, s NameStatus) {
	if n.given[plain] {
		return plain, Given
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var b [pathSize]byte
	name, x := n.earned.lookup(n.paths.name(b[:0], plain), plain)
	return name, n.earned.use(x, client, n.opts.Now().Unix())
}

// Learn records the status of the response to a call of a plain name. Use 0 if there was no response.
func (n *Names) Learn(plain, client string, status int) {
	if !Success(status) || n.given[plain] {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var b [pathSize]byte
	learned, _ := n.paths.learn(b[:0], plain)
	name, x := n.earned.lookup(learned, plain)
	n.earn(x, name, client)
}

// NameCache caches the result of [Names.Observe] for one plain name. It is useful for names that repeat often, as in
// access logs. The cache points to the counters of the name:
//
//	NameCache                earnedNames, pathTree
//	├── name    -----------> "GET /users/:id"     its count, and the time of its last call
//	├── nodes   -----------> users, :id           the nodes of the pathTree that count the call
//	└── changes              value of Names.changes when the cache was filled
//
// While Names.changes still returns the value in the field changes, the fields name and nodes are valid, and Observe
// updates the counters without a lookup. The zero value is an empty cache. A NameCache belongs to one Names, one plain
// name and one goroutine.
type NameCache struct {
	name    *earnedName
	nodes   []*pathNode // nodes of the path in the tree
	changes int         // value of Names.changes when name and nodes were found
}

// Observe combines Name and Learn for a call that has ended, such as a call in a log. If the call succeeded and its
// name was already earned, Observe stores the name in cache, unless cache is nil. Observe is then ten times faster for
// later successful calls with the same plain name and cache. All caches of n become invalid in two cases: if n begins
// or ends to replace a value in paths by "*", or if n evicts names. The next call of Observe then fills the cache
// again.
func (n *Names) Observe(plain, client string, status int, cache *NameCache) (name string, s NameStatus) {
	if !Success(status) {
		return n.Name(plain, client)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if cache != nil && cache.changes == n.changes() && n.paths.learnAgain(cache.nodes) {
		cache.name.Calls++
		return cache.name.Name, n.earned.use(cache.name, client, n.opts.Now().Unix())
	}
	if n.given[plain] {
		return plain, Given
	}
	// Return the name that plain had before this call, even if the success of the call changes the name.
	var b [pathSize]byte
	learned, previous := n.paths.learn(b[:0], plain)
	newName, x := n.earned.lookup(learned, plain)
	name, used := newName, x
	if previous != nil {
		name, used = n.earned.lookup(previous, plain)
	}
	s = n.earned.use(used, client, n.opts.Now().Unix())
	n.earn(x, newName, client)
	if cache != nil && x != nil {
		*cache = NameCache{x, append(cache.nodes[:0], n.paths.path...), n.changes()}
	}
	return name, s
}

// changes returns a number that increases with each change of the path tree and each eviction of names. Such a change
// may change the names that Name returns.
func (n *Names) changes() int { return n.paths.changes + n.earned.evictions }

// earn counts a successful call of a name by client. x is the entry of the name in earnedNames. If x is nil, the name
// is not earned yet, and earn tries to add it.
func (n *Names) earn(x *earnedName, name, client string) {
	if n.paths.seen == 0 { // learn has just halved the counts of the tree
		n.earned.halve()
	}
	if x != nil {
		x.Calls++
		return
	}
	n.earned.earn(name, client, n.opts.Now().Unix())
}

// pathSize is the size of the buffer for a name on the stack. A longer name costs an allocation each time the name of a
// call is determined.
const pathSize = 128

// decide returns the name of a request and the options of its call. It also returns a function that records the status
// of the response, or nil if the name is given. The parameter plain is the name of r before Names replaces values by
// "*". If a limit matches plain but not the replaced name, decide returns plain with the status Unearned. Otherwise the
// call could bypass the limit.
func (n *Names) decide(
	c *collector.Collector, plain string, r *http.Request, opts []collector.CallOption,
) (string, []collector.CallOption, func(int)) {
	client := r.RemoteAddr
	if n.opts.Host != nil {
		client = n.opts.Host(r)
	}
	name, status := n.Name(plain, client)
	if status == Given {
		return name, opts, nil
	}
	if name != plain && c.Escapes(plain, name) {
		name, status = plain, Unearned
	}
	return name, append(opts, status.options()...), func(code int) { n.Learn(plain, client, code) }
}

// Success reports whether a status proves that the service knows the path: 2xx, 101 or 304. A gateway does not send
// these statuses for paths that the service does not know.
func Success(status int) bool {
	return status >= 200 && status < 300 || status == http.StatusSwitchingProtocols || status == http.StatusNotModified
}

// options returns the options for [collector.Collector.Enter] of a call whose name has the status s.
func (s NameStatus) options() []collector.CallOption {
	switch s {
	case Unearned:
		return []collector.CallOption{collector.FallbackResource(Unmatched)}
	case Earned:
		return []collector.CallOption{collector.FromRequest()}
	default:
		return nil
	}
}

// String returns "unearned", "earned" or "given".
func (s NameStatus) String() string {
	return [...]string{"unearned", "earned", "given"}[min(s, Given)]
}

// Metrics returns the self-metrics of Names, for [collector.Collector.Publish].
func (n *Names) Metrics() []collector.Metric {
	read := func(f func(*earnedNames) int64) func() float64 {
		return func() float64 {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.earned.expire(n.opts.Now().Unix())
			return float64(f(n.earned))
		}
	}
	return []collector.Metric{{
		Name: "earned_names", Help: "Earned names in use: names made from paths of successful requests.",
		Value: read(func(e *earnedNames) int64 { return int64(e.inUse) }),
	}, {
		Name:  "refused_names_total",
		Help:  "Successful calls whose name was not earned because the table, or the share of their host, was full.",
		Value: read(func(e *earnedNames) int64 { return e.refused }),
	}}
}
