package sampler

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever is done to the wall clock, nothing that was created before a gathering has a created timestamp that says that it was
// created since; and while nobody sets the clock, everything that was created since has one.
func TestCreatedTimestampsOfASetClock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var mark, last time.Time // of the gathering before, by the wall clock
	var created []time.Time
	told, untold := 0, 0
	quiet := 0 // seconds since the clock was set
	for range 20_000 {
		set := random.IntN(1000)
		for i := range 1000 { // the milliseconds of a second, which is gathered at its end
			wall = wall.Add(time.Millisecond)
			if i == set && random.IntN(20) == 0 {
				wall = wall.Add(time.Duration(random.NormFloat64() * float64(2*time.Second)))
				quiet = 0
			}
			if random.IntN(300) == 0 {
				since := !last.IsZero() && !wall.Before(mark)
				if created = append(created, wall); since {
					told++
				} else if untold++; quiet > 20 {
					t.Fatalf("created at %v, after a gathering at %v, and it is not known", wall, last)
				}
			}
		}
		quiet++
		mark, last = latest(mark, last.Add(time.Second), wall), wall
		for _, at := range created {
			if at.After(mark) {
				t.Fatalf("created at %v, before a gathering at %v, and taken for new", at, last)
			}
		}
		if len(created) > 100 {
			created = created[50:]
		}
	}
	if told < 9*untold {
		t.Errorf("%d were known to be new, %d were not", told, untold)
	}
}
