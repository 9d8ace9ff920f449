package httpstat

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/atomicfile"
	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/fairshare"
)

// earnedNames holds the earned names. A request that succeeds earns its name, unless too many names are in use. An
// earned name is in use, or only remembered:
//
//	          first success                 no call for inUseSeconds
//	unearned ---------------> earned, in use <----------------------> earned, remembered ---> evicted
//	                                                 next call                (longest idle first)
//
// A name in use is never evicted, because the Collector also keeps the resource of a name for inUseSeconds after the
// last call. Each name in use belongs to a host. A host that has its share of the names in use gets no further name in
// use. Remembered names belong to no host. If there are too many names, the longest-idle remembered names are evicted.
type earnedNames struct {
	maxInUse   int
	byName     map[string]*earnedName
	inUse      int
	byHost     map[string]*host
	nextExpiry int64 // earliest Unix time of the next scan by expire
	refused    int64 // successful calls that earned no name, because the table or the share of their host was full

	evictions int // number of calls of evict; each invalidates every NameCache
}

// earnedName is an earned name with its number of calls and the time of its last call.
type earnedName struct {
	savedName
	owner *host // host to which the name belongs; nil if the name is not in use
}

// host is the owner of names in use: a client, or all clients in an IPv6 /64. names is the number of these names.
type host struct {
	address string
	names   int
}

// savedName is the part of an earnedName that Save writes to a file.
type savedName struct {
	Name  string `json:"name"`
	Calls uint32 `json:"calls"` // successful calls, halved periodically
	Last  int64  `json:"last"`  // Unix time of the last call
}

const (
	// inUseSeconds is the number of seconds that a name stays in use after its last call.
	inUseSeconds = int64(collector.DefaultHistory / time.Second)
	// rememberFactor times maxInUse is the maximum number of earned names, in use or remembered.
	rememberFactor = 10
)

func newEarnedNames(maxInUse int) *earnedNames {
	return &earnedNames{maxInUse: maxInUse, byName: map[string]*earnedName{}, byHost: map[string]*host{}}
}

// lookup returns the clean form of the name in b (see [collector.CleanName]), and the entry of this form in byName, or
// nil if it is not earned. The parameter b holds a name that pathTree.name has made. The parameter plain is the name
// before the path tree replaced values by "*". It avoids an allocation: if b equals plain, lookup uses plain instead of
// a copy of b.
func (e *earnedNames) lookup(b []byte, plain string) (name string, x *earnedName) {
	if x = e.byName[string(b)]; x != nil {
		return x.Name, x
	}
	if name = plain; string(b) != plain {
		name = string(b)
	}
	name = collector.CleanName(name)
	return name, e.byName[name]
}

// use records the time now as the last call of the earned name x, unless x has a later call, and returns Earned. If x
// is not in use, use first puts x in use for the host of client. If activate refuses this, use returns Unearned and
// records nothing. x is nil for a name that is not earned; use then returns Unearned.
func (e *earnedNames) use(x *earnedName, client string, now int64) NameStatus {
	if x == nil {
		return Unearned
	}
	if x.owner != nil && x.isIdle(now) {
		e.deactivate(x)
	}
	if x.owner == nil && !e.activate(x, client, now) {
		return Unearned
	}
	x.Last = max(x.Last, now)
	return Earned
}

// earn makes name an earned name in use, after a successful call by client. If activate refuses this, earn only counts
// the refusal. If the maximum number of earned names is reached, earn evicts remembered names before it adds the name.
func (e *earnedNames) earn(name, client string, now int64) {
	x := &earnedName{savedName: savedName{Name: strings.Clone(name), Calls: 1, Last: now}}
	if !e.activate(x, client, now) {
		e.refused++
		return
	}
	if len(e.byName) >= rememberFactor*e.maxInUse {
		e.evict()
	}
	e.byName[x.Name] = x
}

// activate puts the name x in use, for the host of client. It returns false if mayActivate does not allow this host
// another name in use.
func (e *earnedNames) activate(x *earnedName, client string, now int64) bool {
	address := clientip.OfAddress(client)
	// expire scans all names, so call it only if the host would be refused without it.
	if !e.mayActivate(address) {
		if e.expire(now); !e.mayActivate(address) {
			return false
		}
	}
	if x.owner = e.byHost[address]; x.owner == nil {
		x.owner = &host{address: strings.Clone(address)}
		e.byHost[x.owner.address] = x.owner
	}
	x.owner.names++
	e.inUse++
	return true
}

// mayActivate reports whether the host with this address may have one more name in use. An empty address is an unknown
// client. For all unknown clients together, the only bound is maxInUse.
func (e *earnedNames) mayActivate(address string) bool {
	own := 0
	if h := e.byHost[address]; h != nil && address != "" {
		own = h.names
	}
	return fairshare.MayHave(own, e.inUse, e.maxInUse)
}

// deactivate changes x from a name in use to a remembered name.
func (e *earnedNames) deactivate(x *earnedName) {
	if x.owner.names--; x.owner.names == 0 {
		delete(e.byHost, x.owner.address)
	}
	x.owner = nil
	e.inUse--
}

// expire deactivates the names in use whose last call was more than inUseSeconds before now. It scans all names, so it
// does nothing if the last scan was less than a minute ago.
func (e *earnedNames) expire(now int64) {
	if now < e.nextExpiry {
		return
	}
	e.nextExpiry = now + 60
	for _, x := range e.byName {
		if x.owner != nil && x.isIdle(now) {
			e.deactivate(x)
		}
	}
}

func (x *earnedName) isIdle(now int64) bool { return now-x.Last > inUseSeconds }

// evict removes maxInUse remembered names, a tenth of all earned names. It removes the longest-idle names, and among
// equally idle names the names with the fewest calls.
func (e *earnedNames) evict() {
	var idle []*earnedName
	for _, x := range e.byName {
		if x.owner == nil {
			idle = append(idle, x)
		}
	}
	slices.SortFunc(idle, func(a, b *earnedName) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.Name, b.Name))
	})
	e.evictions++
	for _, x := range idle[:e.maxInUse] { // in range: of 10*maxInUse earned names, at most maxInUse are in use
		delete(e.byName, x.Name)
	}
}

// halve halves the number of calls of each name.
func (e *earnedNames) halve() {
	for _, x := range e.byName {
		x.Calls /= 2
	}
}

// Save writes the earned names to the file at path, for [Names.Load]. After a crash, the file has either the old or the
// new content.
func (n *Names) Save(path string) error {
	n.saveMu.Lock()
	defer n.saveMu.Unlock()
	n.mu.Lock()
	var list []savedName
	for _, name := range slices.Sorted(maps.Keys(n.earned.byName)) {
		list = append(list, n.earned.byName[name].savedName)
	}
	n.mu.Unlock()
	return atomicfile.Replace(path, list)
}

// Load reads the names that Save has written to the file at path. These names are then earned, but not in use until
// their next call. A missing file is not an error. If Load cannot read the file, it renames the file and returns an
// error with the new file name. The Names stays usable, but the names in the file must be earned again.
func (n *Names) Load(path string) error {
	list, err := atomicfile.Load[[]savedName](path, nil)
	if err != nil {
		return fmt.Errorf("cannot load names: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.opts.Now().Unix()
	// Add the names with the most calls first, so that their values get the slots of the path tree.
	slices.SortStableFunc(list, func(a, b savedName) int { return cmp.Compare(b.Calls, a.Calls) })
	for _, x := range list {
		name := collector.CleanName(x.Name)
		if n.given[name] || n.earned.byName[name] != nil || len(n.earned.byName) >= rememberFactor*n.opts.MaxNames {
			continue
		}
		n.earned.byName[name] = &earnedName{savedName: savedName{name, min(x.Calls, halveEvery), min(x.Last, now)}}
		n.paths.learn(nil, name)
	}
	return nil
}
