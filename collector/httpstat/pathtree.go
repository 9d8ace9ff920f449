package httpstat

import (
	"hash/fnv"
	"math"
	"strings"
)

// pathTree counts successful calls per path segment, and decides which values of a segment appear in names. In each
// node, pathTree tracks at most maxValues values of the next segment: the values with the most calls. A tracked value
// has its own node, and appears in names. All other values share the node "*". In the following example maxValues is 2,
// and the numbers are calls:
//
//	root
//	└── users                  tracked, 90
//	    ├── :id                wildcard, made by PathName from identifiers
//	    │   ├── orders         tracked, 40
//	    │   ├── profile        tracked, 30
//	    │   └── *              wildcard: every other value, such as /users/:id/avatar
//	    └── search             tracked, 20
//
// In this tree the name of the path /users/:id/avatar is /users/:id/*. The calls of this path are counted in the
// sketch, an approximate counter for many values. The key in the sketch is the full path, /users/:id/avatar. The value
// avatar replaces profile once avatar has more than twice the calls of profile (see tryPromote). All counts are halved
// periodically, so a value that was busy long ago eventually loses its slot.
//
// The memory is bounded for any requests of clients. Nodes are created only when a value becomes tracked: one node for
// the value, and one node for each wildcard above the value if the wildcard has no node yet. At most maxParents nodes
// have tracked values below them. The sketch has a fixed size for any number of values.
//
// The slots for values are not shared fairly between hosts: the values with the most calls are tracked, even if a
// single host makes all these calls. But earnedNames bounds the number of names that a single host can add.
//
// The tree contains paths only; all HTTP methods share the tree. A nil *pathNode is a node without values.
type pathTree struct {
	maxValues int // tracked values below one node
	root      pathNode
	parents   int // nodes with tracked values directly below them, at most maxParents
	sketch    sketch
	seen      int    // successful calls since all counts were halved
	order     uint64 // number of values that became tracked so far

	changes int         // incremented by each change of the tree; invalidates every NameCache
	path    []*pathNode // nodes that the last call of learn incremented; empty if a value in its path had no node
}

// pathNode is one segment of a path, with the segments that follow it.
type pathNode struct {
	calls    uint32 // successful calls, halved periodically
	order    uint64 // pathTree.order when the value became tracked; 0 for a wildcard
	next     map[string]*pathNode
	tracked  int    // number of nodes in next that are tracked, not wildcards
	minCalls uint32 // lower bound of the calls of the tracked nodes in next; 0 while a slot is free
}

const (
	maxParents = 4096
	// halveEvery is the number of successful calls after which all counts are halved.
	halveEvery = 1 << 16
	// promoteMargin is the number of calls that a new value needs in addition to twice the calls of the value that it
	// replaces. It prevents values with few calls from replacing each other all the time.
	promoteMargin = 4
)

// newPathTree returns a tree that tracks at most maxValues values below each node.
func newPathTree(maxValues int) *pathTree { return &pathTree{maxValues: maxValues} }

// isWildcard reports whether a segment represents many values.
func isWildcard(s string) bool { return s == "*" || s == ":id" }

// child returns the node of segment below x, or nil if there is no such node. x may be nil.
func (x *pathNode) child(segment string) *pathNode {
	if x == nil {
		return nil
	}
	return x.next[segment]
}

// name appends the plain name to b, and replaces some values by "*": below a full node, "*" replaces each value that is
// not tracked. Below a node with a free slot, name keeps such a value, because the next successful call of the value
// makes it tracked.
func (p *pathTree) name(b []byte, plain string) []byte {
	method, path, more := strings.Cut(plain, "/")
	if path == "" {
		return append(b, plain...)
	}
	b = append(b, method...)
	for node := &p.root; more; {
		var value string
		value, path, more = strings.Cut(path, "/")
		next := node.child(value)
		if next == nil && p.full(node) && !isWildcard(value) {
			value = "*"
			next = node.child(value)
		}
		b = append(append(b, '/'), value...)
		node = next
	}
	return b
}

// full reports whether node has no free slot for a new value. There are two cases:
//
//   - The node has maxValues tracked values. A new value can then only replace one of these values.
//   - The node has no tracked value, and the tree has maxParents parents already. No value below the node can then
//     become tracked.
func (p *pathTree) full(node *pathNode) bool {
	return node.hasNoTracked() && p.parents >= maxParents || node != nil && node.tracked >= p.maxValues
}

// hasNoTracked reports whether no value is tracked below a node, which may be nil.
func (x *pathNode) hasNoTracked() bool { return x == nil || x.tracked == 0 }

// learn counts a successful call of the name plain. It appends to b the name that p.name returns for plain after the
// call. The call can change this name, because a value becomes tracked or all counts are halved. In these two cases,
// previous is the name that p.name returned before the call. Otherwise previous is nil.
func (p *pathTree) learn(b []byte, plain string) (name, previous []byte) {
	if p.seen++; p.seen >= halveEvery {
		previous = p.name(nil, plain)
		p.halve()
	}
	p.path = p.path[:0]
	method, path, more := strings.Cut(plain, "/")
	if path == "" {
		return append(b, plain...), previous
	}
	b = append(b, method...)
	begin, found := len(b), true // found becomes false when a value has no node
	for node := &p.root; more; {
		var value string
		value, path, more = strings.Cut(path, "/")
		end := len(b)
		b = append(append(b, '/'), value...)
		next := node.child(value)
		switch {
		case next != nil:
			next.calls++
		case !isWildcard(value):
			found = false
			calls := p.tryPromote(node, b[begin:])
			if calls == 0 {
				b = append(b[:end], "/*"...)
				next = node.child("*")
				break
			}
			if previous == nil {
				previous = p.name(nil, plain)
			}
			next = p.track(b[begin:end], value, calls)
		}
		if next != nil {
			p.path = append(p.path, next)
		}
		node = next
	}
	if !found {
		p.path = p.path[:0]
	}
	return b, previous
}

// learnAgain counts another call in nodes, the nodes in which learn has counted an earlier call of the same name. The
// tree must not have changed since the earlier call. If nodes is empty, or if all counts must be halved, learnAgain
// counts nothing and returns false. The caller must then use learn.
func (p *pathTree) learnAgain(nodes []*pathNode) bool {
	if len(nodes) == 0 || p.seen+1 >= halveEvery {
		return false
	}
	p.seen++
	for _, x := range nodes {
		x.calls++
	}
	return true
}

// tryPromote decides whether to track a value after a successful call. The value is not tracked yet. path is the path
// up to and including the value, and node is the parent of the value. If node has a free slot, tryPromote returns 1,
// the number of calls of a new value. If node is full and has tracked values, tryPromote counts the call in the sketch.
// If the value then has enough calls to replace the tracked value with the fewest calls, tryPromote returns the calls
// of the value. In all other cases it returns 0, and the value stays untracked.
func (p *pathTree) tryPromote(node *pathNode, path []byte) (calls uint32) {
	if !p.full(node) {
		return 1
	}
	if node.hasNoTracked() { // no value to replace: the tree has maxParents parents
		return 0
	}
	// Most values that are not tracked have few calls. The check with minCalls rejects such a value without a scan of
	// the tracked values.
	calls = p.sketch.count(path)
	if calls < 2*node.minCalls+promoteMargin {
		return 0
	}
	if node.minCalls = node.next[node.least()].calls; calls < 2*node.minCalls+promoteMargin {
		return 0
	}
	return calls
}

// track makes value a tracked value below the path prefix, and returns its node. If the node of prefix is full, value
// replaces the tracked value with the fewest calls. If nodes of prefix are missing, track creates them as wildcards.
func (p *pathTree) track(prefix []byte, value string, calls uint32) *pathNode {
	p.changes++
	node := &p.root
	for _, segment := range strings.Split(string(prefix), "/")[1:] {
		next := node.child(segment)
		if next == nil {
			next = node.add(segment)
		}
		node = next
	}
	// drop also removes the nodes below the replaced value. Otherwise these nodes would have outdated counts if the
	// value became tracked again later.
	if node.tracked >= p.maxValues {
		p.drop(node, node.least())
	}
	if node.tracked++; node.tracked == 1 {
		p.parents++
	}
	p.order++
	x := node.add(strings.Clone(value))
	x.calls, x.order = calls, p.order
	return x
}

// add creates the node of the next segment below x.
func (x *pathNode) add(segment string) *pathNode {
	if x.next == nil {
		x.next = map[string]*pathNode{}
	}
	next := new(pathNode)
	x.next[segment] = next
	return next
}

// drop removes a tracked value of node, with all nodes below it.
func (p *pathTree) drop(node *pathNode, value string) {
	p.parents -= node.next[value].countParents()
	delete(node.next, value)
	if node.tracked--; node.tracked == 0 {
		p.parents--
	}
}

// countParents returns the number of nodes with tracked values in the subtree of x, including x.
func (x *pathNode) countParents() (n int) {
	if x.tracked > 0 {
		n++
	}
	for _, next := range x.next {
		n += next.countParents()
	}
	return n
}

// least returns the tracked value below x with the fewest calls. If several values have the fewest calls, least returns
// the value that became tracked last.
func (x *pathNode) least() (least string) {
	var weakest *pathNode
	for value, v := range x.next {
		if v.order > 0 &&
			(weakest == nil || v.calls < weakest.calls || v.calls == weakest.calls && v.order > weakest.order) {
			least, weakest = value, v
		}
	}
	return least
}

// halve halves all counts. If the tree has more than three quarters of maxParents parents, halve also drops the tracked
// values whose count reaches 0. A dropped value becomes tracked again at its next call if a slot is free.
func (p *pathTree) halve() {
	p.seen = 0
	p.changes++
	p.sketch.halve()
	p.halveBelow(&p.root, p.parents > maxParents*3/4)
}

// halveBelow halves the counts below a node. It removes wildcards that have no nodes below them. If dropUnused is true,
// it also drops tracked values whose count is 0 after halving.
func (p *pathTree) halveBelow(node *pathNode, dropUnused bool) {
	node.minCalls /= 2
	for segment, x := range node.next {
		x.calls /= 2
		p.halveBelow(x, dropUnused)
		switch {
		case x.order > 0 && x.calls == 0 && dropUnused:
			p.drop(node, segment)
		case x.order == 0 && len(x.next) == 0:
			delete(node.next, segment)
		}
	}
}

// sketch counts the calls of many values in little memory: 128 KiB for four rows of 32,768 counters. It is a count-min
// sketch with conservative update. Each value has one counter in each row, chosen by a hash; other values may use the
// same counters. The count of a value is the lowest of its four counters, and a call increments only the counters that
// have this lowest count.
//
// The count of a value is never too low, except that counters stop at 255. The count can be too high, because values
// share counters. Measured: after 65,536 values with one call each, no value has a count of four or more. With a single
// row of four times the length, up to nine values have such a count. The zero value is empty.
type sketch struct{ rows *[4][1 << 15]uint8 }

// count counts a call of the value at the end of path, and returns the new count of the value.
func (s *sketch) count(path []byte) uint32 {
	if s.rows == nil {
		s.rows = new([4][1 << 15]uint8)
	}
	f := fnv.New64a() // without a seed, so the same calls get the same names in every process
	_, _ = f.Write(path)
	h := f.Sum64()
	h ^= h >> 29 // mix high bits into the low bits, because the low bits select the counters
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
