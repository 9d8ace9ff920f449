package httpstat

import (
	"hash/fnv"
	"maps"
	"math"
	"strings"
)

// places are the places of paths where values were answered with success, with a few values each: those that are called most.
// What is called at a place that is full is counted in a sketch, in which a value that comes once and never again leaves next
// to nothing behind. Hosts have no shares here: of values those that are called most stay, and what a host can do with that is
// bounded by its share of names.
type places struct {
	most   int              // values at a place
	at     map[string]place // by the segments before it, as they are named; none is empty
	sketch sketch
	seen   int    // successes since all counts were halved
	order  uint64 // of values
}

// place is one: the values that are kept apart.
type place map[string]*pathValue

// pathValue is a value that is kept apart.
type pathValue struct {
	calls uint32 // with success, halved now and then
	order uint64 // of its admission
}

const (
	maxPlaces = 4096
	// halveEvery is after how many successes all counts are halved, so that what was busy once does not stay so.
	halveEvery = 1 << 16
	// someCalls is how many more calls than twice as many a value needs to take another one's place.
	someCalls = 4
)

func newPlaces(most int) *places {
	return &places{most: most, at: map[string]place{}}
}

// fixedValue reports whether a segment stands for many values already.
func fixedValue(s string) bool { return s == "*" || s == ":id" }

// name is the plain name with each value as visit names it, which is given the place, and the segments before.
func (p *places) name(plain string, visit func(at place, before []byte, value string) string) string {
	head, path, _ := strings.Cut(plain, "/")
	if path == "" {
		return plain
	}
	b := append(make([]byte, 0, 64), head...)
	for more := true; more; {
		var value string
		value, path, more = strings.Cut(path, "/")
		if !fixedValue(value) {
			before := b[len(head):]
			value = visit(p.at[string(before)], before, value)
		}
		b = append(append(b, '/'), value...)
	}
	if string(b) == plain {
		return plain
	}
	return string(b)
}

// show names a value: "*" if it is not kept apart. One that may be is its own name, before it is.
func (p *places) show(at place, _ []byte, value string) string {
	if at[value] == nil && p.full(at) {
		return "*"
	}
	return value
}

// full reports whether no further value can be kept apart at a place, which may be a new one.
func (p *places) full(at place) bool {
	return len(at) >= p.most || at == nil && len(p.at) >= maxPlaces
}

// learn counts a call that was answered with success, and returns its name.
func (p *places) learn(plain string) string {
	if p.seen++; p.seen >= halveEvery {
		p.halve()
	}
	return p.name(plain, func(at place, before []byte, value string) string {
		switch {
		case at[value] != nil:
			at[value].calls++
			return value
		case !p.full(at):
			p.admit(string(before), value, 1)
			return value
		case at == nil:
			return "*" // there is no place left
		}
		// The place is full. Nearly all that comes here comes once, so the sketch is asked before the values are compared.
		calls := p.sketch.count(string(before), value)
		if calls < someCalls {
			return "*" // whatever the least has
		}
		least := at.least()
		if calls < 2*at[least].calls+someCalls {
			return "*"
		}
		// What was told apart below the value that goes would be found there again when it comes back, with counts that are old.
		delete(at, least)
		below := string(before) + "/" + least
		maps.DeleteFunc(p.at, func(other string, _ place) bool { return other == below || strings.HasPrefix(other, below+"/") })
		p.admit(string(before), value, calls)
		return value
	})
}

// admit keeps a value apart.
func (p *places) admit(before, value string, calls uint32) {
	at := p.at[before]
	if at == nil {
		at = place{}
		p.at[before] = at
	}
	p.order++
	at[strings.Clone(value)] = &pathValue{calls: calls, order: p.order}
}

// least is the value that is called least; of equals the one that came last.
func (x place) least() (least string) {
	var weakest *pathValue
	for value, v := range x {
		if weakest == nil || v.calls < weakest.calls || v.calls == weakest.calls && v.order > weakest.order {
			least, weakest = value, v
		}
	}
	return least
}

// halve halves all counts. Where places are scarce those go that nothing was called at; a value that comes again is kept
// again, if there is room.
func (p *places) halve() {
	p.seen = 0
	p.sketch.halve()
	scarce := len(p.at) > maxPlaces*3/4
	for before, at := range p.at {
		for value, v := range at {
			if v.calls /= 2; v.calls == 0 && scarce {
				delete(at, value)
			}
		}
		if len(at) == 0 {
			delete(p.at, before)
		}
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
	f := fnv.New64a() // the same in every process, so that the same calls get the same names
	_, _ = f.Write([]byte(place + "/" + value))
	h := f.Sum64()
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
