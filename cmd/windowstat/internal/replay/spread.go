package replay

// spread puts times of whole seconds somewhere into their second: one after the other as far from each other as can be,
// and the same when a log is read again. It keeps the last few seconds apart.
type spread [16]struct {
	second int64
	at     float64 // where the last one was put, in [0, 1)
}

// golden spreads any number of points evenly over [0, 1) when each is that much further than the one before.
const golden = 0.6180339887498949

// next is where in this second the next time is put, in nanoseconds.
func (s *spread) next(second int64) int64 {
	x := &s[floorMod(second, int64(len(s)))]
	if x.second != second {
		x.second, x.at = second, 0
	}
	if x.at += golden; x.at >= 1 {
		x.at--
	}
	return int64(x.at * float64(nanos))
}
