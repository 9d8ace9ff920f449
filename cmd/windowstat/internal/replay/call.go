package replay

// call is what counts of a line of an access log. Equal calls may be merged into one.
type call struct {
	at       int64 // when it began, Unix nanoseconds
	clipped  int64 // how much earlier it began, in a second that had ended
	duration int64 // nanoseconds; unknown if the log does not say
	name     int32 // of its resource, an index into the names
	n        int32 // how many calls this stands for
	outcome
	status int16
	passed bool // the previous process counted its beginning
}

// unknown is the duration of a call whose log does not say.
const unknown = -1

// outcome is what became of a call, as its status tells.
type outcome uint8

const (
	good outcome = iota
	failed
	blocked
)

// spread distributes times of whole seconds evenly over their second, and the same way when a log is read again. It
// remembers the last few seconds.
type spread [16]struct {
	second int64
	at     float64 // the last offset, in [0, 1)
}

// golden spreads any number of points evenly over [0, 1) when it is added to each to get the next.
const golden = 0.6180339887498949

// next returns the offset of the next time in a second, in nanoseconds.
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
