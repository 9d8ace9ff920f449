package accesslog

import "time"

// Stamp is the end of a call that the time of its line is.
type Stamp uint8

// The two ends of a call.
const (
	Start Stamp = iota // when the request came
	End                // when the line was written
)

// String returns "start" or "end".
func (s Stamp) String() string {
	if s == End {
		return "end"
	}
	return "start"
}

// A Record is a call, as its line describes it. Its slices point into the line or into the [Parser], and are valid until
// the next Parse and as long as the line is.
type Record struct {
	Time        time.Time     // in UTC
	Stamp       Stamp         // which end of the call Time is
	Coarse      bool          // Time has no fraction of a second
	Duration    time.Duration // never negative: a clock that was set back makes it 0
	HasDuration bool
	Status      int // 0 to 999; 0 if the server had none to log ("-", or nginx's 000)

	// Method and Target are those of the request line, the target percent-encoded if the client sent it so. Both are empty
	// if the line has a request that is not of three parts, method, target and HTTP/version: rubbish, or "-".
	Method, Target []byte

	Host, Client []byte // empty if the line has none
}
