package incident

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Load that rises and falls by 35 % within half an hour has no onset, in any phase and at any rate. A database that
// hangs during such a rise has its onset in the right second.
func TestSwingIsNoOnset(t *testing.T) {
	for phase := range 18 {
		s := shop()
		usual := s.noise
		s.noise = func(r *rand.Rand, at int, name string, x *second) {
			usual(r, at, name, x)
			x.pass *= 1 + 0.35*math.Sin(2*math.Pi*(float64(at)/1800+float64(phase)/18))
		}
		dir := t.TempDir()
		s.write(t, dir, 900, uint64(phase))
		if all := read(t, 900, dir).Onsets(0); len(all) > 0 {
			t.Errorf("phase %d: %s", phase, order(all))
		}
		s.change = func(at int, name string, x *second) {
			if name == "db" && at >= 100 {
				x.inFlight = 90 * float64(at-99)
			}
		}
		dir = t.TempDir()
		s.write(t, dir, 900, uint64(phase))
		if got := order(read(t, 900, dir).Onsets(0)); got != "db in_flight_max+100" {
			t.Errorf("phase %d, with a hang: %s", phase, got)
		}
	}
}
