package replay

// call is a line of an access log, as far as it counts. Several that are alike are one.
type call struct {
	at    int64 // when it began, Unix nanoseconds
	early int64 // how much before that it really began, in a second that was over already
	took  int64 // nanoseconds; unknown where the log does not say
	name  int32 // of its resource, in the order in which names were found
	n     int32 // how many there are
	outcome
	passed bool // and was counted then by the process before this one
}

// unknown is how long a call took of a log that does not say.
const unknown = -1

// outcome is what became of a call.
type outcome uint8

const (
	good outcome = iota
	failed
	blocked
)
