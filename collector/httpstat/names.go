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

// NamesOptions configure [Names]. The zero value is sensible.
type NamesOptions struct {
	// Given are names that need not be earned, such as the patterns of routes. Give them to [collector.Options], too.
	Given []string
	// MaxNames is how many earned names may be in use at a time, [DefaultMaxNames] if zero: as many as the Collector has
	// resources. A name is in use for [collector.DefaultHistory] after its last call. Ten times as many are remembered.
	MaxNames int
	// MaxValues is how many values of a path segment have names of their own, [DefaultMaxValues] if zero.
	MaxValues int
	// Host tells the address of the client that sends a request, RemoteAddr if nil. Behind a proxy that is trusted it reads what
	// that says of the client. An IPv6 address stands for its /64. Empty is a host that is not known, and has no share.
	Host func(*http.Request) string
	// Now replaces the clock.
	Now func() time.Time
}

// Standing is what a name is, see [Names].
type Standing uint8

const (
	// Unearned is a name to which the service has not answered with success; its calls are counted for [Unmatched].
	Unearned Standing = iota
	// Earned is a name to which it has.
	Earned
	// Given is a name that no stranger made.
	Given
)

// Names decide which names, made from the words of strangers such as paths, become resources: so that nobody can fill a table
// by making up paths. It has nothing to say about names that are given.
//
// A name is earned when the service has answered it with success: 2xx, 101 or 304. Redirects, 401, 403, 404, 405 and errors
// earn nothing, because gateways answer so to anything. It stays earned while it is one of the last that were used, also when
// the Collector has retired its resource, and across restarts with [Names.Save].
//
// Behind the same segments of a path, MaxValues values of the next one are kept apart, of those answered with success; any other is "*". Those
// that are called most keep theirs: another one takes the place of the least called when it has been called more than twice as
// often. Services that answer everything with success get few names so. No limit is escaped by that: calls for which there is one
// that is not for the name with "*" keep their own, as unearned ones do.
//
// A host earns names while it has earned fewer than are left, or fewer than eight: one host alone gets half of them.
//
// Names must be made with [NewNames], and are safe for concurrent use. What they decide depends on the calls and
// their order alone. Memory is bounded by MaxNames, and by a few megabytes for what is counted of paths. A decision takes
// a lock, and less than a microsecond.
type Names struct {
	opts  NamesOptions
	given map[string]bool

	mu     sync.Mutex
	paths  *pathTree
	earned *earnedNames

	saving sync.Mutex // one at a time writes aside
}

// NewNames makes Names. The error names every option that is out of range.
func NewNames(o NamesOptions) (*Names, error) {
	o.MaxNames, o.MaxValues = cmp.Or(o.MaxNames, DefaultMaxNames), cmp.Or(o.MaxValues, DefaultMaxValues)
	if o.Now == nil {
		o.Now = time.Now
	}
	var errs []error
	const most = 1000 // each is looked at when a value is not one of them
	if o.MaxNames < 1 {
		errs = append(errs, fmt.Errorf("httpstat: MaxNames is %d; at least 1 is needed", o.MaxNames))
	}
	if o.MaxValues < 1 || o.MaxValues > most {
		errs = append(errs, fmt.Errorf("httpstat: MaxValues is %d; 1 to %d are allowed", o.MaxValues, most))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	n := &Names{opts: o, given: map[string]bool{Unmatched: true}, paths: newPathTree(o.MaxValues), earned: newEarnedNames(o.MaxNames)}
	for _, name := range o.Given {
		n.given[name] = true
	}
	return n, nil
}

// Name is the name under which a call is counted, and limited, whose plain name is given: a method and a path as [PathName]
// makes it. The client is an address, with or without a port; empty if it is not known. An unearned name counts for [Unmatched],
// unless the Collector has a resource of that name; see [collector.CountedAs].
func (n *Names) Name(plain, client string) (name string, s Standing) {
	if n.given[plain] {
		return plain, Given
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var b [pathSize]byte
	name, x := n.earned.find(n.paths.name(b[:0], plain), plain)
	return name, n.earned.use(x, client, n.opts.Now().Unix())
}

// Learn tells how the service answered a call of the plain name. A status of 0 is no answer.
func (n *Names) Learn(plain, client string, status int) {
	if !Success(status) || n.given[plain] {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var b [pathSize]byte
	learned, _ := n.paths.learn(b[:0], plain)
	name, x := n.earned.find(learned, plain)
	n.earn(x, name, client)
}

// Memo is what Names have found for a plain name that comes again and again, as those of a log do. The zero value is nothing. It is of one
// Names, one name, and one goroutine.
type Memo struct {
	name    *earnedName
	nodes   []*pathNode // of its path
	changes int         // of the Names, when they were found
}

// Ended is Name, and then Learn, in one step: of a call that has ended, as those of a log have. What it finds is kept in memo, unless that is
// nil: until other names change, the next call of the same name costs a tenth.
func (n *Names) Ended(plain, client string, status int, memo *Memo) (name string, s Standing) {
	if !Success(status) {
		return n.Name(plain, client)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if memo != nil && memo.changes == n.changes() && n.paths.again(memo.nodes) {
		memo.name.Calls++
		return memo.name.Name, n.earned.use(memo.name, client, n.opts.Now().Unix())
	}
	if n.given[plain] {
		return plain, Given
	}
	var b [pathSize]byte
	learned, before := n.paths.learn(b[:0], plain)
	after, x := n.earned.find(learned, plain)
	name, was := after, x
	if before != nil {
		name, was = n.earned.find(before, plain)
	}
	s = n.earned.use(was, client, n.opts.Now().Unix())
	n.earn(x, after, client)
	if memo != nil && x != nil {
		*memo = Memo{x, append(memo.nodes[:0], n.paths.path...), n.changes()}
	}
	return name, s
}

// changes count what may give a plain name another name.
func (n *Names) changes() int { return n.paths.changes + n.earned.forgotten }

// earn counts a call of a name that was answered with success.
func (n *Names) earn(x *earnedName, name, client string) {
	if n.paths.seen == 0 { // all counts were halved just now
		n.earned.age()
	}
	if x != nil {
		x.Calls++
		return
	}
	n.earned.earn(name, client, n.opts.Now().Unix())
}

// pathSize is how long most paths are at most: longer ones cost memory with each decision.
const pathSize = 128

// decide is the name of a request, the options of its call, and what to tell the status of the response. Where a limit is for the
// plain name that "*" would hide, the call is limited by that.
func (n *Names) decide(c *collector.Collector, plain string, r *http.Request, opts []collector.CallOption) (string, []collector.CallOption, func(int)) {
	client := r.RemoteAddr
	if n.opts.Host != nil {
		client = n.opts.Host(r)
	}
	name, standing := n.Name(plain, client)
	if standing == Given {
		return name, opts, nil
	}
	if name != plain && c.Escapes(plain, name) {
		name, standing = plain, Unearned
	}
	return name, append(opts, standing.options()...), func(status int) { n.Learn(plain, client, status) }
}

// Success reports whether a status is one that only the service itself gives, because it knows the path: 2xx, 101 or 304.
func Success(status int) bool {
	return status >= 200 && status < 300 || status == http.StatusSwitchingProtocols || status == http.StatusNotModified
}

// options are those of a call with such a name.
func (s Standing) options() []collector.CallOption {
	switch s {
	case Unearned:
		return []collector.CallOption{collector.CountedAs(Unmatched)}
	case Earned:
		return []collector.CallOption{collector.Earned()}
	default:
		return nil
	}
}

// String is "unearned", "earned" or "given".
func (s Standing) String() string {
	return [...]string{"unearned", "earned", "given"}[min(s, Given)]
}

// Metrics are what Names tell of themselves, for [collector.Collector.Publish].
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
		Name: "earned_names", Help: "Names made from paths that are in use, because the service has answered them with success.",
		Value: read(func(e *earnedNames) int64 { return int64(e.inUse) }),
	}, {
		Name: "refused_names_total", Help: "Calls answered with success whose name was not earned, because too many were, or too many by their host.",
		Value: read(func(e *earnedNames) int64 { return e.refused }),
	}}
}
