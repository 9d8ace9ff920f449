package replay

// call is what counts of a line of an access log. Equal calls may be merged into one.
type call struct {
	at       int64 // when it began, Unix nanoseconds
	clipped  int64 // how much earlier it began, in a second that had ended
	duration int64 // nanoseconds; unknown if the log does not say
	name     int32 // of its resource, an index into the names
	n        int32 // how many calls this stands for
	outcome
	passed bool // the previous process counted its beginning
}

// unknown is the duration of a call whose log does not say.
const unknown = -1

// outcome is what became of a call.
type outcome uint8

const (
	good outcome = iota
	failed
	blocked
)
