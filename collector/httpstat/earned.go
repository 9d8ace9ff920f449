package httpstat

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
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
	due     int64          // Unix time before which no name in use can become idle
	refused int64
}

// earnedName is a name that is earned.
type earnedName struct {
	name  string
	host  string // that earned it, or that took it into use again
	last  int64  // Unix time
	calls uint32 // with success, halved now and then
	inUse bool
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

// use reports whether a name is earned, and notes that it is called. One that was idle must find room, as a new one must.
func (e *earnedNames) use(name, client string, now int64) bool {
	x := e.byName[name]
	if x == nil {
		return false
	}
	e.expire(now)
	if !x.inUse && !e.begin(x, client, now) {
		return false
	}
	x.last = max(x.last, now)
	return true
}

// earn counts a call with success.
func (e *earnedNames) earn(name, client string, now int64) {
	if x := e.byName[name]; x != nil {
		x.calls++
		return
	}
	e.expire(now)
	x := &earnedName{name: strings.Clone(name), last: now, calls: 1}
	if !e.begin(x, client, now) {
		e.refused++
		return
	}
	if len(e.byName) >= remembered*e.most {
		e.forget()
	}
	e.byName[x.name] = x
}

// begin takes a name into use, if its client's host may have one more.
func (e *earnedNames) begin(x *earnedName, client string, now int64) bool {
	host := clientip.OfAddress(client)
	own := e.byHost[host]
	if host == "" {
		own = 0 // who is not known has no share
	}
	if !fairshare.MayHave(own, e.inUse, e.most) {
		return false
	}
	x.inUse, x.host = true, strings.Clone(host)
	e.inUse++
	e.byHost[x.host]++
	e.due = min(e.due, now+usedFor+1)
	return true
}

// expire ends the use of names that have not been called for so long. It looks at all of them, but only when one may have become
// idle: once a second at most.
func (e *earnedNames) expire(now int64) {
	if now < e.due {
		return
	}
	e.due = math.MaxInt64
	for _, x := range e.byName {
		switch {
		case !x.inUse:
		case now-x.last <= usedFor:
			e.due = min(e.due, x.last+usedFor+1)
		default:
			x.inUse = false
			e.inUse--
			if e.byHost[x.host]--; e.byHost[x.host] == 0 {
				delete(e.byHost, x.host)
			}
		}
	}
}

// forget forgets the name that has been idle longest, of several the one that was called least.
func (e *earnedNames) forget() {
	var out *earnedName
	for _, x := range e.byName {
		if !x.inUse && (out == nil || cmp.Or(cmp.Compare(x.last, out.last), cmp.Compare(x.calls, out.calls), cmp.Compare(x.name, out.name)) < 0) {
			out = x
		}
	}
	if out != nil {
		delete(e.byName, out.name)
	}
}

// age halves what was counted.
func (e *earnedNames) age() {
	for _, x := range e.byName {
		x.calls /= 2
	}
}

// savedName is an earned name in a file.
type savedName struct {
	Name  string `json:"name"`
	Calls uint32 `json:"calls"`
	Last  int64  `json:"last"` // Unix time
}

// Save writes the earned names to a file, for [Names.Load]: aside first, so that the file is the old one or the new one
// whatever happens.
func (n *Names) Save(path string) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	n.mu.Lock()
	var list []savedName
	for _, name := range slices.Sorted(maps.Keys(n.earned.byName)) {
		x := n.earned.byName[name]
		list = append(list, savedName{x.name, x.calls, x.last})
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
		n.earned.byName[name] = &earnedName{name: name, calls: min(x.Calls, halveEvery), last: min(x.Last, now)}
		n.places.learn(name)
	}
	return nil
}
