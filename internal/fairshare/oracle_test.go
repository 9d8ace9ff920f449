package fairshare

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive is a table that scans all holders for each request.
type naive struct {
	kept    int
	newest  bool
	holders []*naiveHolder // in the order of addition
}

type naiveHolder struct {
	host   byte
	amount int
	rank   int64
	used   int64
	number int
}

func (n *naive) amount(host byte) int {
	sum := 0
	for _, x := range n.holders {
		if x.host == host {
			sum += x.amount
		}
	}
	return sum
}

// first returns the next entry to evict that matches of, or nil without such an entry.
func (n *naive) first(of func(*naiveHolder) bool) *naiveHolder {
	matters := func(host byte) int {
		count := 0
		for _, x := range n.holders {
			if x.host == host {
				count++
			}
		}
		if count <= n.kept {
			return 0
		}
		return n.amount(host)
	}
	age := func(x *naiveHolder) int {
		if n.newest {
			return -x.number
		}
		return x.number
	}
	var first *naiveHolder
	for _, x := range n.holders {
		if of(x) && (first == nil || cmp.Or(
			cmp.Compare(x.rank, first.rank),
			cmp.Compare(matters(first.host), matters(x.host)),
			cmp.Compare(x.used, first.used),
			cmp.Compare(age(x), age(first)),
		) < 0) {
			first = x
		}
	}
	return first
}

// play applies the operations of a script to a table and to a naive table, and compares the tables after each
// operation.
func play(t *testing.T, script []byte) {
	t.Helper()
	next := func() int {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return int(b)
	}
	rules := next()
	want := &naive{kept: []int{0, Kept, math.MaxInt}[rules%3], newest: rules/3%2 == 1}
	got := Table[byte, *naiveHolder]{Kept: want.kept, Newest: want.newest}
	if rules/6%2 == 1 {
		got.Used = func(x *naiveHolder) int64 { return x.used }
	}
	byNaive := map[*naiveHolder]*Holder[byte, *naiveHolder]{}
	now, added := int64(0), 0
	some := func() *naiveHolder {
		if len(want.holders) == 0 {
			return nil
		}
		return want.holders[next()%len(want.holders)]
	}
	remove := func(x *naiveHolder) {
		want.holders = slices.DeleteFunc(want.holders, func(y *naiveHolder) bool { return x == y })
		if !got.Remove(byNaive[x]) || got.Remove(byNaive[x]) {
			t.Fatal("Remove must return true once")
		}
	}
	for len(script) > 0 {
		now++
		switch what, host := next(), byte(next()%8); what % 7 {
		case 0, 1, 2:
			added++
			x := &naiveHolder{host: host, amount: what/8%6 - 2, used: now, number: added}
			if got.Used == nil {
				x.used = 0
			}
			want.holders = append(want.holders, x)
			byNaive[x] = got.Add(host, x.amount, x)
		case 3:
			if x := some(); x != nil {
				remove(x)
			}
		case 4: // eviction
			if x := got.First(); x != nil {
				remove(x.Value)
			}
		case 5:
			if x := some(); x != nil && got.Used != nil {
				x.used = now
			}
		case 6:
			if x := some(); x != nil {
				x.rank = int64(what / 8 % 3)
				got.Rank(byNaive[x], x.rank)
			}
		}
		compare(t, want, &got)
	}
}

func compare(t *testing.T, want *naive, got *Table[byte, *naiveHolder]) {
	t.Helper()
	if got.Len() != len(want.holders) {
		t.Fatalf("%d entries, want %d", got.Len(), len(want.holders))
	}
	check := func(who string, got *Holder[byte, *naiveHolder], want *naiveHolder) {
		t.Helper()
		switch {
		case got == nil && want == nil:
		case got == nil || want == nil || got.Value != want:
			t.Fatalf("%s: evicts %+v, want %+v", who, got, want)
		}
	}
	check("all", got.First(), want.first(func(*naiveHolder) bool { return true }))
	known := 0
	for host := range byte(8) {
		check(fmt.Sprint("host ", host), got.FirstOf(host),
			want.first(func(x *naiveHolder) bool { return x.host == host }))
		if got.Amount(host) != want.amount(host) {
			t.Fatalf("host %d has %d, want %d", host, got.Amount(host), want.amount(host))
		}
		if got.FirstOf(host) != nil || got.Amount(host) != 0 {
			known++
		}
	}
	if len(got.hosts) != known {
		t.Fatalf("%d hosts in the table, but %d have entries", len(got.hosts), known)
	}
}

// After random operations, a table evicts the entry that a naive table finds with a full scan.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 1+random.IntN(600))
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		play(t, script)
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 4, 0})
	f.Add([]byte{7, 0, 1, 8, 2, 5, 0, 0, 6, 0, 1, 4, 0})
	f.Fuzz(func(t *testing.T, script []byte) { play(t, script[:min(len(script), 300)]) })
}

// An entry in use is not evicted while others are idle, for any number of evictions. A use only sets a number.
func TestEntryInUseIsNotEvicted(t *testing.T) {
	used := map[int]int64{}
	table := Table[string, int]{Kept: math.MaxInt, Used: func(x int) int64 { return used[x] }}
	for i := range 100 {
		used[i] = int64(i)
		table.Add(fmt.Sprint(i%7), 1, i)
	}
	for now := int64(100); table.Len() > 3; now++ {
		for _, busy := range []int{0, 50, 99} {
			used[busy] = now
		}
		x := table.First()
		if x.Value == 0 || x.Value == 50 || x.Value == 99 {
			t.Fatalf("evicts %d, but %d other entries are idle", x.Value, table.Len()-3)
		}
		table.Remove(x)
	}
}

// Each iteration evicts an entry, adds one, and uses one. With a hundred times as many entries, an iteration takes only
// a few times as long.
func BenchmarkTable(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		for _, hosts := range []int{1, n} {
			b.Run(fmt.Sprintf("holders=%d/hosts=%d", n, hosts), func(b *testing.B) {
				now := int64(0)
				table := Table[int, *int64]{Kept: Kept, Used: func(at *int64) int64 { return *at }}
				add := func(i int) {
					now++
					at := now
					table.Add(i%hosts, 1, &at)
				}
				for i := range n {
					add(i)
				}
				for i := n; b.Loop(); i++ {
					table.Remove(table.First())
					add(i)
					*table.FirstOf(i % hosts).Value = now // use the entry
				}
			})
		}
	}
}
