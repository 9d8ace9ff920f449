package httpstat

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Count decides and learns what Name and Learn do, call by call, while values and names compete for their places.
func TestCountIsNameAndLearn(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		now := time.Unix(1_700_000_000, 0)
		o := NamesOptions{MaxNames: 20 + int(seed)*20, MaxValues: 2 + int(seed), Given: []string{"GET /given"}, Now: func() time.Time { return now }}
		a, err := NewNames(o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewNames(o)
		if err != nil {
			t.Fatal(err)
		}
		known, standings := map[string]*Known{}, map[Standing]int{}
		for i := range 200_000 {
			plain := []string{"GET", "POST"}[r.IntN(2)]
			for range 1 + r.IntN(3) {
				plain += []string{fmt.Sprint("/v", int(r.ExpFloat64()*4)+i/50_000), "/:id"}[r.IntN(8)/7]
			}
			if i%50 == 0 {
				plain = []string{"GET /given", "GET /", "GET", "OTHER *", fmt.Sprintf("GET /once/%d", i)}[i/50%5]
			}
			if r.IntN(100) == 0 {
				now = now.Add(time.Duration(r.IntN(20)) * time.Second)
			}
			client, status := fmt.Sprintf("192.0.2.%d:1", r.IntN(9)), []int{200, 200, 304, 404, 503}[r.IntN(5)]
			name, standing := a.Name(plain, client)
			a.Learn(plain, client, status)
			k := known[plain]
			if k == nil {
				k = &Known{Plain: plain}
				if i%3 > 0 { // others are not remembered
					known[plain] = k
				}
			}
			if got, s := b.Count(k, client, status); got != name || s != standing {
				t.Fatalf("seed %d, call %d of %q: %q is %v, want %q, %v", seed, i, plain, got, s, name, standing)
			}
			standings[standing]++
		}
		if len(standings) != 3 || a.earned.refused != b.earned.refused {
			t.Errorf("%v; %d and %d refused", standings, a.earned.refused, b.earned.refused)
		}
	}
}
