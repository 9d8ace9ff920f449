package httpstat

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
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
	byHost  map[string]int // how many names in use each host has earned
	due     int64          // Unix time before which idle ones are not looked for again
	refused int64
}

// earnedName is a name that is earned.
type earnedName struct {
	savedName
	host  string // that earned it, or that took it into use again
	inUse bool
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
	return &earnedNames{most: most, byName: map[string]*earnedName{}, byHost: map[string]int{}}
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

// use reports whether an earned name may be used, and notes that it is called. One that was idle must find room, as a new one must.
func (e *earnedNames) use(x *earnedName, client string, now int64) bool {
	if x.inUse && x.isIdle(now) {
		e.end(x)
	}
	if !x.inUse && !e.begin(x, client, now) {
		return false
	}
	x.Last = max(x.Last, now)
	return true
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
	host := clientip.OfAddress(client)
	if !e.admits(host) {
		if e.expire(now); !e.admits(host) {
			return false
		}
	}
	x.inUse, x.host = true, strings.Clone(host)
	e.inUse++
	e.byHost[x.host]++
	return true
}

// admits reports whether a host may have one more name in use. Who is not known has no share.
func (e *earnedNames) admits(host string) bool {
	own := e.byHost[host]
	if host == "" {
		own = 0
	}
	return fairshare.MayHave(own, e.inUse, e.most)
}

// end ends the use of a name, which is remembered.
func (e *earnedNames) end(x *earnedName) {
	x.inUse = false
	e.inUse--
	if e.byHost[x.host]--; e.byHost[x.host] == 0 {
		delete(e.byHost, x.host)
	}
}

// expire ends the use of names that are idle. It looks at all names, so it does that once a minute at most.
func (e *earnedNames) expire(now int64) {
	if now < e.due {
		return
	}
	e.due = now + 60
	for _, x := range e.byName {
		if x.inUse && x.isIdle(now) {
			e.end(x)
		}
	}
}

func (x *earnedName) isIdle(now int64) bool { return now-x.Last > usedFor }

// forget forgets a tenth of the names, those that have been idle longest, and of these those that were called least.
func (e *earnedNames) forget() {
	var idle []*earnedName
	for _, x := range e.byName {
		if !x.inUse {
			idle = append(idle, x)
		}
	}
	slices.SortFunc(idle, func(a, b *earnedName) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.Name, b.Name))
	})
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
		aside := path + ".unreadable"
		return fmt.Errorf("%s is set aside as %s: %w", path, aside, errors.Join(err, os.Rename(path, aside)))
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
		n.places.learn(nil, name)
	}
	return nil
}
