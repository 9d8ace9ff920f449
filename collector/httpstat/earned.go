package httpstat

import (
	"math"
	"strings"

	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/fairshare"
)

// earnedNames are the names that are earned: those in use, and those that are remembered. A name in use never gives way, because
// the Collector keeps its resource for as long: a host that has its share gets no more. Names that are idle go, the longest
// idle first, whatever hosts have.
type earnedNames struct {
	most    int   // in use
	history int64 // seconds for which a name is in use
	byName  map[string]*earnedName
	inUse   fairshare.Table[string, *earnedName]
	idle    fairshare.Table[string, *earnedName] // of no host
	refused int64
}

// earnedName is a name that is earned.
type earnedName struct {
	name   string
	holder *fairshare.Holder[string, *earnedName]
	last   int64  // Unix time
	calls  uint32 // with success, halved now and then
	idle   bool
}

const (
	// remembered is how many names are remembered for each one that may be in use.
	remembered = 10
	// fewNames is how many a host may earn however few are left.
	fewNames = 8
)

func newEarnedNames(o NamesOptions) *earnedNames {
	e := &earnedNames{most: o.MaxNames, history: int64(o.History.Seconds()), byName: map[string]*earnedName{}}
	for _, t := range []*fairshare.Table[string, *earnedName]{&e.inUse, &e.idle} {
		t.Kept = math.MaxInt
		t.Used = func(x *earnedName) int64 { return x.last }
	}
	e.idle.Newest = true // a file begins with those that are called most
	return e
}

// use returns a name that is earned, nil if it is not, and notes that it is called. One that was idle must find room, as a new one
// must.
func (e *earnedNames) use(name, client string, now int64) *earnedName {
	x := e.byName[name]
	if x == nil {
		return nil
	}
	e.expire(now)
	if x.idle {
		host := clientip.OfAddress(client)
		if !e.room(host) {
			return nil
		}
		e.idle.Remove(x.holder)
		e.begin(x, host)
	}
	x.last = max(x.last, now)
	return x
}

// earn counts a call with success.
func (e *earnedNames) earn(name, client string, now int64) {
	if x := e.byName[name]; x != nil {
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
	x := &earnedName{name: strings.Clone(name), last: now, calls: 1}
	e.byName[x.name] = x
	e.begin(x, host)
}

// begin takes a name into use.
func (e *earnedNames) begin(x *earnedName, host string) {
	x.idle, x.holder = false, e.inUse.Add(strings.Clone(host), 1, x)
}

// rest remembers a name that is not in use.
func (e *earnedNames) rest(x *earnedName) {
	x.idle, x.holder = true, e.idle.Add("", 1, x)
}

// room reports whether the host may have one more name in use.
func (e *earnedNames) room(host string) bool {
	left := e.most - e.inUse.Len()
	return left > 0 && (host == "" || e.inUse.Amount(host) < max(left, fewNames))
}

// expire ends the use of names that have not been called for the history.
func (e *earnedNames) expire(now int64) {
	for x := e.inUse.First(); x != nil && now-x.Value.last > e.history; x = e.inUse.First() {
		e.inUse.Remove(x)
		e.rest(x.Value)
	}
}

// forget forgets the name that has been idle longest.
func (e *earnedNames) forget() {
	if x := e.idle.First(); x != nil {
		e.idle.Remove(x)
		delete(e.byName, x.Value.name)
	}
}

// age halves what was counted.
func (e *earnedNames) age() {
	for _, x := range e.byName {
		x.calls /= 2
	}
}

// sketch counts many values in little memory: a count-min sketch with conservative update. It may say more than there were,
// never less since it was halved. Of 65,536 values that came once it takes none for one that came four times, where one row of
// four times the memory takes up to nine. Its zero value is empty.
type sketch struct{ rows *[4][1 << 15]uint8 }

// count counts a value at a place, and returns how often it came.
func (s *sketch) count(place, value string) uint32 {
	if s.rows == nil {
		s.rows = new([4][1 << 15]uint8)
	}
	h := hash(hash(14695981039346656037, place)*31, value)
	h ^= h >> 29 // the low bits of FNV are the better ones
	step := h>>32 | 1
	var cells [4]*uint8
	least := uint8(math.MaxUint8)
	for i := range cells {
		cells[i] = &s.rows[i][(h+uint64(i)*step)%uint64(len(s.rows[i]))]
		least = min(least, *cells[i])
	}
	if least == math.MaxUint8 {
		return uint32(least)
	}
	for _, cell := range cells {
		*cell = max(*cell, least+1)
	}
	return uint32(least) + 1
}

// halve halves all counts.
func (s *sketch) halve() {
	if s.rows == nil {
		return
	}
	for i := range s.rows {
		for j := range s.rows[i] {
			s.rows[i][j] /= 2
		}
	}
}

// hash is FNV-1a: the same in every process, so that the same calls get the same names.
func hash(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
