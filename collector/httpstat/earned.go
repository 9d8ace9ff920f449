package httpstat

import (
	"cmp"
	"container/list"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/internal/clientip"
)

// earnedNames are the names that are earned: those in use, and those that are remembered.
type earnedNames struct {
	most    int   // in use
	history int64 // seconds for which a name is in use
	byName  map[string]*list.Element
	inUse   list.List      // of *earnedName, the latest first
	idle    list.List      // the same
	byHost  map[string]int // names in use
	refused int64
}

// earnedName is a name that is earned.
type earnedName struct {
	name  string
	host  string // that it counts for, while it is in use
	last  int64  // Unix time
	calls uint32 // with success, halved now and then
	idle  bool
}

const (
	// remembered is how many names are remembered for each one that may be in use.
	remembered = 10
	// fewNames is how many a host may earn however few are left.
	fewNames = 8
)

func newEarnedNames(o NamesOptions) *earnedNames {
	e := &earnedNames{most: o.MaxNames, history: int64(o.History.Seconds()), byName: map[string]*list.Element{}, byHost: map[string]int{}}
	e.inUse.Init()
	e.idle.Init()
	return e
}

// use returns a name that is earned, nil if it is not, and notes that it is called. One that was idle must find room, as a new one
// must.
func (e *earnedNames) use(name, client string, now int64) *earnedName {
	element := e.byName[name]
	if element == nil {
		return nil
	}
	e.expire(now)
	x := element.Value.(*earnedName)
	if x.idle {
		host := clientip.OfAddress(client)
		if !e.room(host) {
			return nil
		}
		e.idle.Remove(element)
		e.begin(x, host)
	} else {
		e.inUse.MoveToFront(element)
	}
	x.last = max(x.last, now)
	return x
}

// earn counts a call with success.
func (e *earnedNames) earn(name, client string, now int64) {
	if element := e.byName[name]; element != nil {
		x := element.Value.(*earnedName)
		x.calls = min(x.calls+1, maxCount)
		return
	}
	host := clientip.OfAddress(client)
	if e.expire(now); !e.room(host) {
		e.refused++
		return
	}
	if len(e.byName) >= remembered*e.most {
		e.forget()
	}
	e.begin(&earnedName{name: strings.Clone(name), last: now, calls: 1}, host)
}

// begin takes a name into use.
func (e *earnedNames) begin(x *earnedName, host string) {
	x.idle, x.host = false, strings.Clone(host)
	e.byName[x.name] = e.inUse.PushFront(x)
	e.byHost[x.host]++
}

// room reports whether the host may have one more name in use.
func (e *earnedNames) room(host string) bool {
	left := e.most - e.inUse.Len()
	return left > 0 && (host == "" || e.byHost[host] < max(left, fewNames))
}

// expire ends the use of names that have not been called for the history.
func (e *earnedNames) expire(now int64) {
	for last := e.inUse.Back(); last != nil; last = e.inUse.Back() {
		x := last.Value.(*earnedName)
		if now-x.last <= e.history {
			return
		}
		e.inUse.Remove(last)
		if e.byHost[x.host]--; e.byHost[x.host] == 0 {
			delete(e.byHost, x.host)
		}
		x.idle, x.host = true, ""
		e.byName[x.name] = e.idle.PushFront(x)
	}
}

// forget forgets the name that has been idle longest.
func (e *earnedNames) forget() {
	if last := e.idle.Back(); last != nil {
		e.idle.Remove(last)
		delete(e.byName, last.Value.(*earnedName).name)
	}
}

// age halves what was counted.
func (e *earnedNames) age() {
	for _, element := range e.byName {
		element.Value.(*earnedName).calls /= 2
	}
}

// sortIdle puts idle names in order, the latest first.
func (e *earnedNames) sortIdle() {
	var all []*earnedName
	for element := e.idle.Front(); element != nil; element = element.Next() {
		all = append(all, element.Value.(*earnedName))
	}
	slices.SortStableFunc(all, func(a, b *earnedName) int { return cmp.Compare(b.last, a.last) })
	e.idle.Init()
	for _, x := range all {
		e.byName[x.name] = e.idle.PushBack(x)
	}
}
