package node_test

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// observer returns a function that returns the histogram of its argument, a single response time. The function always
// returns the same Histogram, with new contents.
func observer(t testing.TB, bounds []time.Duration) func(time.Duration) *node.Histogram {
	t.Helper()
	config, err := node.NewConfig(leap.NewTimeline(leap.Clock{}), node.Options{Bounds: bounds})
	if err != nil {
		t.Fatal(err)
	}
	h := new(node.Histogram)
	return func(rt time.Duration) *node.Histogram {
		s, v := node.New(config, 0), node.NewView(config, 0)
		v.Add(s)
		c := s.Enter(0, 1)
		c.Exit(leap.Reading(rt), false, 0)
		v.Snapshot(0, h)
		return h
	}
}

// interesting returns response times that equal a bucket bound or differ from it by 1 ns, and many other response
// times.
func interesting(bounds []time.Duration) []time.Duration {
	rts := []time.Duration{0, 1, 2, 3, 4, 5, 7, 8, 9, math.MaxInt64, math.MaxInt64 - 1}
	for i := -240; i < 265; i++ {
		d := time.Duration(node.NativeBound(i) * 1e9)
		rts = append(rts, d-1, d, d+1)
	}
	for _, b := range bounds {
		rts = append(rts, b-1, b, b+1)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		rts = append(rts, time.Duration(random.Uint64()>>1>>random.IntN(63)))
	}
	for i, rt := range rts {
		rts[i] = max(rt, 0)
	}
	return rts
}

// nativeIndex returns the index of the native bucket of the response time rt, by Prometheus's definition: bucket i
// holds (2^((i-1)/8), 2^(i/8)] seconds.
func nativeIndex(rt time.Duration) int {
	return sort.Search(1000, func(i int) bool { return node.NativeBound(i-500) >= rt.Seconds() }) - 500
}

func TestEveryResponseTimeIsInItsBuckets(t *testing.T) {
	for name, bounds := range map[string][]time.Duration{
		"default": node.DefaultBounds(),
		"none":    {},
		"on and beside native boundaries": {
			1, 2, 3, 997*time.Millisecond - 1, 999999999,
			time.Second, time.Second + 1, time.Second + 2, 2 * time.Second, math.MaxInt64,
		},
	} {
		t.Run(name, func(t *testing.T) {
			observe := observer(t, bounds)
			for _, rt := range interesting(bounds) {
				h := observe(rt)
				var native []int
				for i, n := range h.Native() {
					native = append(native, i)
					if n != 1 {
						t.Fatalf("%v: native bucket %d has %d", rt, i, n)
					}
				}
				if rt == 0 {
					if len(native) != 0 || h.Zero() != 1 {
						t.Fatalf("0 is in native buckets %v, zero bucket %d", native, h.Zero())
					}
				} else if len(native) != 1 || native[0] != nativeIndex(rt) || h.Zero() != 0 {
					t.Fatalf("%d ns is in native bucket %v, want %d", rt, native, nativeIndex(rt))
				}
				seen := 0
				for bound, n := range h.Classic() {
					if bound != bounds[seen] {
						t.Fatalf("bound %v, want %v", bound, bounds[seen])
					}
					if want := rt <= bound; (n == 1) != want || n > 1 {
						t.Fatalf("%v: le %v has %d", rt, bound, n)
					}
					seen++
				}
				if seen != len(bounds) {
					t.Fatalf("%d classic buckets, want %d", seen, len(bounds))
				}
			}
		})
	}
}

func TestNativeBounds(t *testing.T) {
	for i := -300; i <= 300; i++ {
		if got, want := node.NativeBound(i), math.Exp2(float64(i)/8); math.Abs(got/want-1) > 1e-15 {
			t.Errorf("bound %d is %v, want %v", i, got, want)
		}
	}
	for i, want := range map[int]float64{0: 1, 8: 2, -8: 0.5, -24: 0.125} {
		if got := node.NativeBound(i); got != want {
			t.Errorf("bound %d is %v, want exactly %v", i, got, want)
		}
	}
}

func TestEmptyHistogram(t *testing.T) {
	var h node.Histogram
	for range h.Native() {
		t.Error("the empty histogram has a native bucket")
	}
	for range h.Classic() {
		t.Error("the empty histogram has a classic bucket")
	}
	if h.Count() != 0 || h.Sum() != 0 || h.Zero() != 0 {
		t.Error("the empty histogram has counts")
	}
}
