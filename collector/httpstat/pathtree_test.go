package httpstat

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// learned calls p.learn for the plain name, the given number of times.
func learned(p *pathTree, times int, plain string) {
	for range times {
		p.learn(nil, plain)
	}
}

// When a value is replaced, its subtree is removed. If the value becomes tracked again, all values below it can be
// tracked.
func TestReplacedValuesLoseTheirSubtree(t *testing.T) {
	p := newPathTree(1)
	learned(p, 1, "GET /a/x")
	learned(p, 10, "GET /b")
	learned(p, 25, "GET /a/y")
	if got := string(p.name(nil, "GET /a/y")); got != "GET /a/y" {
		t.Errorf("%q", got)
	}
	if p.root.child("a").child("x") != nil {
		t.Error("the node of /a/x still exists")
	}
}

// The number of parents (nodes with tracked values directly below them) is bounded by maxParents. When the bound is
// reached, no values become tracked below further nodes. When the counts are halved, values whose count reaches 0 are
// dropped.
func TestParentsAreBounded(t *testing.T) {
	p := newPathTree(1000)
	for i := range 1000 {
		for j := range 10 {
			p.learn(nil, fmt.Sprintf("GET /v%d/w%d/x", i, j))
		}
	}
	if p.parents != maxParents {
		t.Errorf("there are %d nodes with values", p.parents)
	}
	if got := string(p.name(nil, "GET /v999/w9/x")); got != "GET /v999/*/*" {
		t.Errorf("the last is %q", got)
	}
	p.halve()
	p.halve()
	if got := string(p.name(nil, "GET /v999/w9/x")); got != "GET /v999/w9/x" || p.parents > maxParents/4 {
		t.Errorf("later it is %q, and there are %d nodes with values", got, p.parents)
	}
}

// Names without a call for ten minutes are no longer in use, even if names of another host are in use.
func TestIdleNamesBecomeInactive(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	n, err := NewNames(NamesOptions{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	n.Learn("GET /idle", "192.0.2.1", 200)
	for range 4 {
		now = now.Add(200 * time.Second)
		for i := range 5 {
			plain := fmt.Sprint("GET /busy", i)
			n.Learn(plain, "192.0.2.2", 200)
			n.Name(plain, "192.0.2.2")
		}
	}
	if n.earned.expire(now.Unix()); n.earned.inUse != 5 || n.earned.byName["GET /idle"].owner != nil {
		t.Errorf("%d names are in use, want 5", n.earned.inUse)
	}
}

// If saved names were last used at the same time, the names with the most calls are remembered longest.
func TestEvictionPrefersNamesWithFewCalls(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	n, err := NewNames(NamesOptions{MaxNames: 1, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	var list []savedName
	for i := range rememberFactor {
		list = append(
			list,
			savedName{Name: fmt.Sprint("GET /", i), Calls: uint32(100 * (i + 1)), Last: now.Unix() - 9000},
		)
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "names.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.Load(path); err != nil {
		t.Fatal(err)
	}
	n.Learn("GET /new", "192.0.2.1", 200)
	if n.earned.byName["GET /0"] != nil || n.earned.byName["GET /9"] == nil || len(n.earned.byName) != rememberFactor {
		t.Errorf("the wrong name was evicted; %d names remain", len(n.earned.byName))
	}
}

// After replacements and halvings, the numbers that the tree derives are correct: the number of parents (nodes with
// tracked values directly below them), the number of tracked values of each node, and the lower bounds of calls.
// Wildcards without nodes below them are removed. While p.changes stays the same, the nodes of a path stay in the tree.
func TestPathTreeInvariants(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := newPathTree(2)
		var check func(x *pathNode, path string)
		check = func(x *pathNode, path string) {
			kept := 0
			for segment, next := range x.next {
				if next.order > 0 {
					if kept++; next.calls < x.minCalls {
						t.Errorf(
							"%s/%s has %d calls, below the lower bound of %d", path, segment, next.calls, x.minCalls,
						)
					}
				} else if len(next.next) == 0 {
					t.Errorf("nothing follows %s/%s", path, segment)
				}
				check(next, path+"/"+segment)
			}
			if x.tracked < p.maxValues && x.minCalls > 0 {
				t.Errorf("%s has a free slot and a lower bound of %d", path, x.minCalls)
			}
			if kept != x.tracked {
				t.Errorf("%s has %d values, %d are counted", path, kept, x.tracked)
			}
		}
		nodes, changes := map[string][]*pathNode{}, 0 // nodes by path; valid while p.changes equals changes
		unchanged := func() {
			if changes != p.changes {
				clear(nodes)
			}
			for path, is := range nodes {
				at := &p.root
				for i, segment := range strings.Split(path, "/")[1:] {
					if at = at.child(segment); i >= len(is) || at != is[i] {
						t.Errorf("%s is not at the nodes that were found", path)
					}
				}
			}
			changes = p.changes
		}
		for i := range 60_000 {
			path := fmt.Sprintf("GET /%d/:id/%d/%d", int(r.ExpFloat64()*3), int(r.ExpFloat64()*3)+i/10_000, r.IntN(4))
			p.learn(nil, path)
			unchanged()
			if len(p.path) > 0 {
				nodes[path] = slices.Clone(p.path)
			}
			if i%10_000 == 9_999 {
				p.halve()
				check(&p.root, "")
			}
		}
		if n := p.root.countParents(); p.parents != n {
			t.Errorf("%d nodes have values, %d are counted", n, p.parents)
		}
		p.parents = maxParents // pretend that the tree is full, so that values without calls are dropped
		for range 20 {
			p.halve()
			unchanged()
		}
		check(&p.root, "")
	}
}

// The counts are halved after the same number of calls whether calls use a NameCache or not.
func TestCachedCallsHalveCounts(t *testing.T) {
	n, err := NewNames(NamesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var cache NameCache
	for range halveEvery {
		n.Observe("GET /a", "192.0.2.1", 200, &cache)
	}
	if calls := n.earned.byName["GET /a"].Calls; n.paths.seen != 0 || calls != halveEvery/2 {
		t.Errorf("%d calls since the counts were halved, want 0; %d calls of the name, want %d",
			n.paths.seen, calls, halveEvery/2)
	}
}

// Counts of values that are not tracked are halved together with counts of tracked values.
func TestCountsOfAllValuesAreHalved(t *testing.T) {
	p := newPathTree(1)
	learned(p, 100, "GET /a")
	learned(p, 150, "GET /b")
	p.halve()
	p.halve()
	// Value a now has 100/4 = 25 calls. Value b has 150/4 = 37 (rounded down), and gets one more call.
	learned(p, 1, "GET /b")
	if got := string(p.name(nil, "GET /b")); got != "GET /*" {
		t.Errorf("a value with less than twice the calls of the tracked value is named %q", got)
	}
}

// Among 65,536 values with one call each, no count reaches four.
func TestSketchErrors(t *testing.T) {
	var s sketch
	highest := uint32(0)
	for i := range 1 << 16 {
		highest = max(highest, s.count([]byte(fmt.Sprint("/", i))))
	}
	if highest >= 4 {
		t.Errorf("a value with one call has a count of %d", highest)
	}
	for range 1000 {
		if got := s.count([]byte("/0")); got < 2 || got > 255 {
			t.Fatalf("a count of %d after two calls or more", got)
		}
	}
}
