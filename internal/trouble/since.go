package trouble

import "time"

// Since returns the duration of the trouble in seconds. seconds are the last seconds of the resource, oldest first. A
// silence lasts since the last event, and a hang at least since the oldest call began. Other trouble lasts for as long
// as seconds are nearer to the current numbers than to the usual ones. Since ignores seconds without calls, and up to
// maxBetter better seconds in a row.
func (t Trouble) Since(u *Usual, seconds []Second) int {
	switch t.Kind {
	case Stopped:
		return silentSeconds(seconds, func(s Second) bool { return s.Pass == 0 && s.Block == 0 })
	case Hanging:
		n := silentSeconds(seconds, func(s Second) bool { return s.Complete == 0 })
		return max(n, int(t.Age/time.Second))
	}
	n, better := 0, 0
	limit := t.middle(u, seconds)
	for i := len(seconds) - 1; i >= 0 && better <= maxBetter; i-- {
		if x, ok := t.number(&seconds[i]); ok && x < limit {
			better++
		} else if ok {
			n, better = len(seconds)-i, 0
		}
	}
	return n
}

// maxBetter is the number of better seconds that do not end the trouble, because slowest calls vary much.
const maxBetter = 3

// middle returns the middle between the usual number of a second, and the average of the current window.
func (t Trouble) middle(u *Usual, seconds []Second) float64 {
	sum, n := 0.0, 0
	for i := max(0, len(seconds)-Window); i < len(seconds); i++ {
		if x, ok := t.number(&seconds[i]); ok {
			sum, n = sum+x, n+1
		}
	}
	usual := map[Kind]float64{Failing: u.Failed, Refusing: u.Refused, Slow: float64(u.Average)}[t.Kind]
	if t.Slowest {
		usual = float64(u.Slowest)
	}
	return (usual + sum/float64(max(n, 1))) / 2
}

// number returns the number of a second that the trouble is about. It reports false for a second without such calls.
func (t Trouble) number(s *Second) (x float64, ok bool) {
	switch {
	case t.Kind == Refusing:
		return float64(s.Block) / float64(max(s.Block+s.Pass, 1)), s.Block+s.Pass > 0
	case t.Kind == Failing:
		return float64(s.Exception) / float64(max(s.Complete, 1)), s.Complete > 0
	case t.Slowest:
		return float64(s.RTMax), s.Complete > 0
	}
	return float64(s.RTSum) / float64(max(s.Complete, 1)), s.Complete > 0
}
