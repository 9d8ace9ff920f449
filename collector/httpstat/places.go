package httpstat

import (
	"math"
	"strings"
)

// places are the places of paths where values were answered with success: a tree with a few values at each node, those that
// are called most. What is called at a place that is full is counted in a sketch, in which a value that comes once and never
// again leaves next to nothing behind.
type places struct {
	most    int // values at a place
	root    *place
	count   int // places
	sketch  sketch
	seen    int    // successes since the counts were halved
	order   uint64 // of values
	changes int    // how often a value may have got or lost its place
	aged    func() // is called when counts are halved
}

// place is one, after the segments that lead to it.
type place struct {
	values map[string]*pathValue
	fixed  map[string]*place // below "*" and ":id", which are not counted
}

// pathValue is a value that is kept apart.
type pathValue struct {
	calls uint32 // with success, halved now and then
	order uint64 // of its admission
	below *place // nil if nothing follows
}

const (
	maxPlaces = 4096
	maxCount  = math.MaxUint32 / 4
	// halveEvery is after how many successes all counts are halved, so that what was busy once does not stay so.
	halveEvery = 1 << 16
	// someCalls is how many more calls than twice as many a value needs to take another one's place.
	someCalls = 4
)

func newPlaces(most int) *places {
	return &places{most: most, root: new(place), count: 1, aged: func() {}}
}

// fixedValue reports whether a segment stands for many values already.
func fixedValue(s string) bool { return s == "*" || s == ":id" }

// name is the plain name with "*" for values that are not kept apart. A value that may be is its own name, before it is. The
// function visit, if not nil, is asked at each place instead what to do with a value.
func (p *places) name(plain string, visit func(at *place, before, value string) string) string {
	head, path, _ := strings.Cut(plain, "/")
	if path == "" {
		return plain
	}
	b := append(make([]byte, 0, 64), head...)
	at := p.root
	for more := true; more; {
		var value string
		value, path, more = strings.Cut(path, "/")
		switch {
		case fixedValue(value):
		case visit != nil:
			value = visit(at, string(b[len(head):]), value)
		case at == nil && p.count >= maxPlaces, at != nil && at.values[value] == nil && len(at.values) >= p.most:
			value = "*"
		}
		if b = append(append(b, '/'), value...); more && at != nil {
			at = p.below(at, value, visit != nil)
		}
	}
	return string(b)
}

// below is the place after a value; nil if there is none. It makes one if it should and the tree is not full.
func (p *places) below(at *place, value string, make bool) *place {
	if v := at.values[value]; v != nil {
		if v.below == nil && make {
			v.below = p.newPlace()
		}
		return v.below
	}
	x := at.fixed[value]
	if x == nil && make && fixedValue(value) {
		if x = p.newPlace(); x != nil {
			if at.fixed == nil {
				at.fixed = map[string]*place{}
			}
			at.fixed[strings.Clone(value)] = x
		}
	}
	return x
}

// newPlace makes a place, nil if there are as many as allowed.
func (p *places) newPlace() *place {
	if p.count >= maxPlaces {
		return nil
	}
	p.count++
	p.changes++
	return new(place)
}

// learn counts a call that was answered with success, and returns its name.
func (p *places) learn(plain string) string {
	if p.seen++; p.seen >= halveEvery {
		p.halve()
	}
	return p.name(plain, func(at *place, before, value string) string {
		switch {
		case at == nil:
			return "*" // there is no place left
		case at.values[value] != nil:
			if v := at.values[value]; v.calls < maxCount {
				v.calls++
			}
			return value
		case len(at.values) < p.most:
			p.admit(at, value, 1)
			return value
		}
		calls := p.sketch.count(before, value)
		if calls < someCalls {
			return "*" // whatever the least has
		}
		least := at.least()
		if weakest := at.values[least]; calls < 2*weakest.calls+someCalls {
			return "*"
		}
		p.changes++
		p.count -= at.values[least].below.size()
		delete(at.values, least)
		p.admit(at, value, calls)
		return value
	})
}

// admit keeps a value apart.
func (p *places) admit(at *place, value string, calls uint32) {
	if at.values == nil {
		at.values = map[string]*pathValue{}
	}
	p.order++
	p.changes++
	at.values[strings.Clone(value)] = &pathValue{calls: calls, order: p.order}
}

// least is the value that is called least; of equals the one that came last.
func (x *place) least() (least string) {
	var weakest *pathValue
	for value, v := range x.values {
		if weakest == nil || v.calls < weakest.calls || v.calls == weakest.calls && v.order > weakest.order {
			least, weakest = value, v
		}
	}
	return least
}

// size is how many places there are from this one on.
func (x *place) size() int {
	if x == nil {
		return 0
	}
	n := 1
	for _, v := range x.values {
		n += v.below.size()
	}
	for _, below := range x.fixed {
		n += below.size()
	}
	return n
}

// halve halves all counts. Where places are scarce those go that nothing was called at; a value that comes again is kept
// again, if there is room.
func (p *places) halve() {
	p.seen = 0
	p.changes++
	p.sketch.halve()
	p.root.halve(p.count > maxPlaces*3/4)
	p.count = p.root.size()
	p.aged()
}

// halve halves the counts from this place on, and reports whether it is empty.
func (x *place) halve(prune bool) (empty bool) {
	for value, v := range x.values {
		v.calls /= 2
		if v.below != nil && v.below.halve(prune) {
			v.below = nil
		}
		if prune && v.calls == 0 && v.below == nil {
			delete(x.values, value)
		}
	}
	for value, below := range x.fixed {
		if below.halve(prune) {
			delete(x.fixed, value)
		}
	}
	return len(x.values)+len(x.fixed) == 0
}

// restore counts calls of a name that was earned, at places that can have it.
func (p *places) restore(name string, calls uint32) {
	p.name(name, func(at *place, _, value string) string {
		switch {
		case at == nil:
		case at.values[value] != nil:
			v := at.values[value]
			v.calls = min(v.calls+calls, maxCount)
		case len(at.values) < p.most:
			p.admit(at, value, calls)
		}
		return value
	})
}
