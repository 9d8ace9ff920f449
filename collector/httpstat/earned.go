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

// earnedNames are the names that are earned: those in use, and those that are remembered. A name in use never gives way, because
// the Collector keeps its resource for as long: a host that has its share gets no more. Names that are idle go, the longest
// idle first, whatever hosts have.
type earnedNames struct {
	most    int // in use
	byName  map[string]*earnedName
	inUse   int
	byHost  map[string]*host
	due     int64 // Unix time before which idle ones are not looked for again
	refused int64

	forgotten int // how often some were
}

// earnedName is a name that is earned.
type earnedName struct {
	savedName
	by *host // that earned it, or took it into use again; nil if it is not in use
}

// host is a client that has earned names in use.
type host struct {
	address string
	names   int
}

// savedName is what a file has of it.
type savedName struct {
	Name  string `json:"name"`
	Calls uint32 `json:"calls"` // with success, halved now and then
	Last  int64  `json:"last"`  // Unix time
}

const (
	// usedFor is for how many seconds a name is in use after its last call.
	usedFor = int64(collector.DefaultHistory / time.Second)
	// remembered is how many names are remembered for each one that may be in use.
	remembered = 10
)

func newEarnedNames(most int) *earnedNames {
	return &earnedNames{most: most, byName: map[string]*earnedName{}, byHost: map[string]*host{}}
}

// find cleans the name that the tree has for a plain name, and finds it among those that are earned, whose names are clean.
func (e *earnedNames) find(b []byte, plain string) (name string, x *earnedName) {
	if x = e.byName[string(b)]; x != nil {
		return x.Name, x
	}
	if name = plain; string(b) != plain {
		name = string(b)
	}
	name = collector.CleanName(name)
	return name, e.byName[name]
}

// use is the standing of a name, and notes that it is called. One that was idle must find room, as a new one must.
func (e *earnedNames) use(x *earnedName, client string, now int64) Standing {
	if x == nil {
		return Unearned
	}
	if x.by != nil && x.isIdle(now) {
		e.end(x)
	}
	if x.by == nil && !e.begin(x, client, now) {
		return Unearned
	}
	x.Last = max(x.Last, now)
	return Earned
}

// earn earns a name with its first call that was answered with success.
func (e *earnedNames) earn(name, client string, now int64) {
	x := &earnedName{savedName: savedName{Name: strings.Clone(name), Calls: 1, Last: now}}
	if !e.begin(x, client, now) {
		e.refused++
		return
	}
	if len(e.byName) >= remembered*e.most {
		e.forget()
	}
	e.byName[x.Name] = x
}

// begin takes a name into use, if its client's host may have one more. Idle names are looked for only where they would make a difference.
func (e *earnedNames) begin(x *earnedName, client string, now int64) bool {
	address := clientip.OfAddress(client)
	if !e.admits(address) {
		if e.expire(now); !e.admits(address) {
			return false
		}
	}
	if x.by = e.byHost[address]; x.by == nil {
		x.by = &host{address: strings.Clone(address)}
		e.byHost[x.by.address] = x.by
	}
	x.by.names++
	e.inUse++
	return true
}

// admits reports whether a host may have one more name in use. Who is not known has no share.
func (e *earnedNames) admits(address string) bool {
	own := 0
	if h := e.byHost[address]; h != nil && address != "" {
		own = h.names
	}
	return fairshare.MayHave(own, e.inUse, e.most)
}

// end ends the use of a name, which is remembered.
func (e *earnedNames) end(x *earnedName) {
	if x.by.names--; x.by.names == 0 {
		delete(e.byHost, x.by.address)
	}
	x.by = nil
	e.inUse--
}

// expire ends the use of names that are idle. It looks at all names, so it does that once a minute at most.
func (e *earnedNames) expire(now int64) {
	if now < e.due {
		return
	}
	e.due = now + 60
	for _, x := range e.byName {
		if x.by != nil && x.isIdle(now) {
			e.end(x)
		}
	}
}

func (x *earnedName) isIdle(now int64) bool { return now-x.Last > usedFor }

// forget forgets a tenth of the names, those that have been idle longest, and of these those that were called least.
func (e *earnedNames) forget() {
	var idle []*earnedName
	for _, x := range e.byName {
		if x.by == nil {
			idle = append(idle, x)
		}
	}
	slices.SortFunc(idle, func(a, b *earnedName) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.Name, b.Name))
	})
	e.forgotten++
	for _, x := range idle[:e.most] { // there are nine times as many
		delete(e.byName, x.Name)
	}
}

// age halves what was counted.
func (e *earnedNames) age() {
	for _, x := range e.byName {
		x.Calls /= 2
	}
}

// Save writes the earned names to a file, for [Names.Load]: aside first, so that the file is the old one or the new one
// whatever happens.
func (n *Names) Save(path string) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	n.mu.Lock()
	var list []savedName
	for _, name := range slices.Sorted(maps.Keys(n.earned.byName)) {
		list = append(list, n.earned.byName[name].savedName)
	}
	n.mu.Unlock()
	return atomicfile.Replace(path, list)
}

// Load remembers the names that were saved, as ones that are not in use. No file is none. One that cannot be read is set aside: it is
// renamed, and the error says so. Names must be earned again then, and nothing else is wrong.
func (n *Names) Load(path string) error {
	var list []savedName
	if err := atomicfile.Read(path, &list); err != nil {
		aside, err := atomicfile.SetAside(path, err)
		return fmt.Errorf("%s is set aside as %s: %w", path, aside, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.opts.Now().Unix()
	slices.SortStableFunc(list, func(a, b savedName) int { return cmp.Compare(b.Calls, a.Calls) }) // who has a place first
	for _, x := range list {
		name := collector.CleanName(x.Name)
		if n.given[name] || n.earned.byName[name] != nil || len(n.earned.byName) >= remembered*n.opts.MaxNames {
			continue
		}
		n.earned.byName[name] = &earnedName{savedName: savedName{name, min(x.Calls, halveEvery), min(x.Last, now)}}
		n.paths.learn(nil, name)
	}
	return nil
}
