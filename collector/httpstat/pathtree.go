package httpstat

import (
	"hash/fnv"
	"math"
	"strings"
)

// pathTree has the segments of the paths that were answered with success, as they are named. Behind each node a few values are kept apart,
// those that are called most. What is called where no more can be kept is counted in a sketch, in which a value that comes once and never
// again leaves next to nothing behind. Hosts have no shares here: of values those that are called most stay, and what a host can do with that
// is bounded by its share of names.
//
// The tree is of paths alone: all methods share it. A node that is not made yet is nil. Nodes are made when a value is kept apart, that of the
// value and those on the way to it that stand for many values. So memory is bounded by maxParents, whatever strangers ask for.
type pathTree struct {
	most    int // values behind a node
	root    pathNode
	parents int // nodes with values behind them
	sketch  sketch
	seen    int    // successes since all counts were halved
	order   uint64 // of values

	changes int         // of what is in the tree
	path    []*pathNode // that the last call was counted at; none if one of its values was not in the tree
}

// pathNode is a segment, and what follows it in paths: values that are kept apart, and segments that stand for many values.
type pathNode struct {
	calls uint32 // with success, halved now and then
	order uint64 // of its admission, 0 if it stands for many values
	next  map[string]*pathNode
	kept  int    // how many of these are kept apart
	floor uint32 // none of those has fewer calls
}

const (
	maxParents = 4096
	// halveEvery is after how many successes all counts are halved, so that what was busy once does not stay so.
	halveEvery = 1 << 16
	// someCalls is how many more calls than twice as many a value needs to push another one out.
	someCalls = 4
)

// newPathTree makes a tree that keeps so many values apart behind each node.
func newPathTree(most int) *pathTree { return &pathTree{most: most} }

// fixedValue reports whether a segment stands for many values already.
func fixedValue(s string) bool { return s == "*" || s == ":id" }

// find is the node of a segment that follows; nil if there is none.
func (x *pathNode) find(segment string) *pathNode {
	if x == nil {
		return nil
	}
	return x.next[segment]
}

// name appends the plain name with "*" for each value that is not kept apart. One that may be is its own name, before it is.
func (p *pathTree) name(b []byte, plain string) []byte {
	head, path, more := strings.Cut(plain, "/")
	if path == "" {
		return append(b, plain...)
	}
	b = append(b, head...)
	for at := &p.root; more; {
		var value string
		value, path, more = strings.Cut(path, "/")
		next := at.find(value)
		if next == nil && p.full(at) && !fixedValue(value) {
			value = "*"
			next = at.find(value)
		}
		b = append(append(b, '/'), value...)
		at = next
	}
	return b
}

// full reports whether no further value can be kept apart behind a node.
func (p *pathTree) full(at *pathNode) bool {
	return at.fresh() && p.parents >= maxParents || at != nil && at.kept >= p.most
}

// fresh reports whether no value is kept apart behind a node.
func (x *pathNode) fresh() bool { return x == nil || x.kept == 0 }

// learn counts a call that was answered with success, and appends its name. If a value of it is kept apart only from now on, the name before
// that is returned, too.
func (p *pathTree) learn(b []byte, plain string) (name, before []byte) {
	if p.seen++; p.seen >= halveEvery {
		before = p.name(nil, plain)
		p.halve()
	}
	p.path = p.path[:0]
	head, path, more := strings.Cut(plain, "/")
	if path == "" {
		return append(b, plain...), before
	}
	b = append(b, head...)
	begin, known := len(b), true
	for at := &p.root; more; {
		var value string
		value, path, more = strings.Cut(path, "/")
		end := len(b)
		b = append(append(b, '/'), value...)
		next := at.find(value)
		switch {
		case next != nil:
			next.calls++
		case !fixedValue(value):
			known = false
			calls := p.contest(at, b[begin:])
			if calls == 0 {
				b = append(b[:end], "/*"...)
				next = at.find("*")
				break
			}
			if before == nil {
				before = p.name(nil, plain)
			}
			next = p.admit(b[begin:end], value, calls)
		}
		if next != nil {
			p.path = append(p.path, next)
		}
		at = next
	}
	if !known {
		p.path = p.path[:0]
	}
	return b, before
}

// again counts a call at the nodes at which one of the same name was counted, since which nothing has changed. It reports false if learn must.
func (p *pathTree) again(nodes []*pathNode) bool {
	if len(nodes) == 0 || p.seen+1 >= halveEvery {
		return false
	}
	p.seen++
	for _, x := range nodes {
		x.calls++
	}
	return true
}

// contest counts a call of a value that is not kept apart, by the path that ends with it. It returns the calls with which the value is to be kept
// apart, because fewer than most are or another one is called so much less, and 0 if it is not.
func (p *pathTree) contest(at *pathNode, path []byte) (calls uint32) {
	if !p.full(at) {
		return 1
	}
	if at.fresh() { // there are maxParents
		return 0
	}
	// Nearly all that comes here comes seldom, so the values are not compared for it.
	calls = p.sketch.count(path)
	if calls < 2*at.floor+someCalls {
		return 0
	}
	if at.floor = at.next[at.least()].calls; calls < 2*at.floor+someCalls {
		return 0
	}
	return calls
}

// admit keeps a value apart. It pushes out the one that is called least if most are. Nodes that are missing on the way stand for many values.
func (p *pathTree) admit(before []byte, value string, calls uint32) *pathNode {
	p.changes++
	at := &p.root
	for _, segment := range strings.Split(string(before), "/")[1:] {
		next := at.find(segment)
		if next == nil {
			next = at.add(segment)
		}
		at = next
	}
	// What was told apart below a value that goes would be found there again when it comes back, with counts that are old.
	if at.kept >= p.most {
		p.drop(at, at.least())
	}
	if at.kept++; at.kept == 1 {
		p.parents++
	}
	at.floor = min(at.floor, calls)
	p.order++
	x := at.add(strings.Clone(value))
	x.calls, x.order = calls, p.order
	return x
}

// add makes the node of a segment that follows.
func (x *pathNode) add(segment string) *pathNode {
	if x.next == nil {
		x.next = map[string]*pathNode{}
	}
	next := new(pathNode)
	x.next[segment] = next
	return next
}

// drop forgets a value, and all that follows it.
func (p *pathTree) drop(at *pathNode, value string) {
	p.parents -= at.next[value].withValues()
	delete(at.next, value)
	if at.kept--; at.kept == 0 {
		p.parents--
	}
}

// withValues counts the nodes with values behind them, from this one on.
func (x *pathNode) withValues() (n int) {
	if x.kept > 0 {
		n++
	}
	for _, next := range x.next {
		n += next.withValues()
	}
	return n
}

// least is the value that is called least; of equals the one that came last.
func (x *pathNode) least() (least string) {
	var weakest *pathNode
	for value, v := range x.next {
		if v.order > 0 && (weakest == nil || v.calls < weakest.calls || v.calls == weakest.calls && v.order > weakest.order) {
			least, weakest = value, v
		}
	}
	return least
}

// halve halves all counts. Near maxParents those values go that nothing was called at; a value that comes again is kept
// again, unless there are too many.
func (p *pathTree) halve() {
	p.seen = 0
	p.changes++
	p.sketch.halve()
	p.age(&p.root, p.parents > maxParents*3/4)
}

// age halves the counts behind a node. One that stands for many values goes when nothing follows it any more.
func (p *pathTree) age(at *pathNode, scarce bool) {
	at.floor /= 2
	for segment, x := range at.next {
		x.calls /= 2
		p.age(x, scarce)
		switch {
		case x.order > 0 && x.calls == 0 && scarce:
			p.drop(at, segment)
		case x.order == 0 && len(x.next) == 0:
			delete(at.next, segment)
		}
	}
}

// sketch counts many values in little memory: a count-min sketch with conservative update. It may say more than there were,
// never less since it was halved. Of 65,536 values that came once it takes none for one that came four times, where one row of
// four times the memory takes up to nine. Its zero value is empty.
type sketch struct{ rows *[4][1 << 15]uint8 }

// count counts a value, by its path, and returns how often it came.
func (s *sketch) count(path []byte) uint32 {
	if s.rows == nil {
		s.rows = new([4][1 << 15]uint8)
	}
	f := fnv.New64a() // the same in every process, so that the same calls get the same names
	_, _ = f.Write(path)
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
