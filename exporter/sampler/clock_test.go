package sampler

import (
	"math/rand/v2"
	"testing"
	"time"
)

// However the wall clock is set, nothing that was created before a second has a created timestamp within the second.
// While the clock is not set, everything that was created in the second has such a timestamp.
func TestCreatedTimestampsOfASetClock(t *testing.T) {
	type counter struct {
		second int64
		at     time.Time
	}
	random := rand.New(rand.NewPCG(1, 2))
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var clock wallClock
	var created []counter
	told, untold, quiet := 0, 0, 0
	for second := range int64(5_000) {
		turn, set := random.IntN(300), random.IntN(1000)
		for ms := range 1000 {
			if ms == set && random.IntN(20) == 0 {
				wall = wall.Add(time.Duration(random.NormFloat64() * float64(2*time.Second)))
				quiet = 0
			}
			if ms == turn {
				into := time.Duration(ms) * time.Millisecond
				from, to := clock.read(second, time.Duration(second)*time.Second+into, wall, into)
				for _, c := range created {
					switch at := c.at.UnixNano(); {
					case second == 0:
					case at >= to && c.second < second, at >= from && c.second < second-1:
						t.Fatalf("in second %d what was created at %v, in second %d, is taken for new", second, c.at, c.second)
					case c.second == second-1 && (at >= from && at < to):
						told++
					case c.second == second-1:
						if untold++; quiet > 20 {
							t.Fatalf("in second %d it is not known that what was created at %v is new", second, c.at)
						}
					}
				}
				if len(created) > 100 {
					created = created[50:]
				}
			}
			if random.IntN(300) == 0 {
				created = append(created, counter{second, wall})
			}
			wall = wall.Add(time.Millisecond)
		}
		quiet++
	}
	if told < 5*untold {
		t.Errorf("%d were known to be new, %d were not", told, untold)
	}
}
