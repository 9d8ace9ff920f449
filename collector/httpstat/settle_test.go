package httpstat_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// What is settled is what a bookkeeper finds who looks at all calls for every question.
func TestSettleOracle(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		most := 1 + r.IntN(4)
		calls := map[string]int64{}
		for range 300 {
			plain := []string{"GET", "POST"}[r.IntN(2)]
			for range 1 + r.IntN(3) {
				plain += []string{fmt.Sprint("/v", int(r.ExpFloat64()*3)), "/:id"}[r.IntN(8)/7]
			}
			calls[plain] += int64(r.IntN(1000)*1000 + len(calls)) // hardly ever two alike
		}
		// name names a call by the calls that have come to the same place by the same way.
		name := func(plain string) string {
			segments := strings.Split(plain, "/")
			at := ""
			came := map[string]string{} // the rest of the path of all calls that are here
			for x := range calls {
				_, path, _ := strings.Cut(x, "/")
				came[x] = path
			}
			for _, v := range segments[1:] {
				weight := map[string]int64{}
				for x, path := range came {
					value, _, _ := strings.Cut(path, "/")
					weight[value] += calls[x]
				}
				keeps := func(v string) bool {
					if v == ":id" {
						return true
					}
					better := 0
					for other, n := range weight {
						if other != ":id" && (n > weight[v] || n == weight[v] && other < v) {
							better++
						}
					}
					return better < most
				}
				shown := map[bool]string{true: v, false: "*"}[keeps(v)]
				for x, path := range came {
					value, rest, more := strings.Cut(path, "/")
					if (value == v || shown == "*" && !keeps(value)) && more {
						came[x] = rest
					} else {
						delete(came, x)
					}
				}
				at += "/" + shown
			}
			return segments[0] + at
		}
		n, _ := newNames(t, httpstat.NamesOptions{MaxValues: most})
		n.Settle(calls, 5)
		sums := map[string]int64{}
		for plain, x := range calls {
			sums[name(plain)] += x
		}
		kept := 0
		for plain := range calls {
			want, better := name(plain), 0
			for _, x := range sums {
				if x > sums[want] {
					better++
				}
			}
			if better >= 5 {
				want = collector.Other
			} else {
				kept++
			}
			if got, s := n.Name(plain, ""); got != want || s != httpstat.Earned {
				t.Fatalf("seed %d: %s is %q, %v, want %q", seed, plain, got, s, want)
			}
			n.Learn("GET /never", "", 200)
		}
		if _, s := n.Name("GET /never", ""); s != httpstat.Unearned || kept == 0 {
			t.Errorf("a name that is learned later is %v", s)
		}
	}
}
