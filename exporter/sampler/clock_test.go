package sampler

import (
	"math/rand/v2"
	"testing"
	"time"
)

// For any jumps of the wall clock, a counter that was created before a second never has a created timestamp within the
// second. While the clock does not jump, each counter that was created in the second has such a timestamp.
func TestCreatedTimestampsWithClockJumps(t *testing.T) {
	type counter struct {
		second int64
		at     time.Time
	}
	random := rand.New(rand.NewPCG(1, 2))
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var clock wallClock
	var created []counter
	recognized, unrecognized, sinceJump := 0, 0, 0
	for second := range int64(5_000) {
		turn, set := random.IntN(300), random.IntN(1000)
		for ms := range 1000 {
			if ms == set && random.IntN(20) == 0 {
				wall = wall.Add(time.Duration(random.NormFloat64() * float64(2*time.Second)))
				sinceJump = 0
			}
			if ms == turn {
				into := time.Duration(ms) * time.Millisecond
				from, to := clock.read(second, time.Duration(second)*time.Second+into, wall, into)
				for _, c := range created {
					switch at := c.at.UnixNano(); {
					case second == 0:
					case at >= to && c.second < second, at >= from && c.second < second-1:
						t.Fatalf("second %d: a counter that was created at %v, in second %d, counts as new",
							second, c.at, c.second)
					case c.second == second-1 && (at >= from && at < to):
						recognized++
					case c.second == second-1:
						if unrecognized++; sinceJump > 20 {
							t.Fatalf("second %d: a new counter that was created at %v does not count as new",
								second, c.at)
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
		sinceJump++
	}
	if recognized < 5*unrecognized {
		t.Errorf("%d new counters were recognized, %d were not", recognized, unrecognized)
	}
}
