package timeline

import "github.com/windowstat/windowstat/collector"

// Call is what counts of a call that has ended. Equal calls may be merged into one. It has no pointers, so that a million of them
// cost the garbage collector nothing: what a call is called is a number, which a [Counter] knows.
type Call struct {
	At       int64 // when it began, Unix nanoseconds
	Clipped  int64 // how much earlier it began, in a second that had ended
	Duration int64 // nanoseconds; Unknown if its source does not say
	Name     int32 // of its resource
	N        int32 // how many calls this stands for, at least 1
	Outcome
	Status int16 // of HTTP, or GRPC and more; 0 for none
	Passed bool  // the previous process counted its beginning
}

// Unknown is the duration of a call whose source does not say.
const Unknown = -1

// GRPC is the status of a call that gRPC answered with code 0; others are as much more.
const GRPC = 1000

// Outcome is what became of a call.
type Outcome uint8

const (
	// Good is a call that neither failed nor was blocked, whatever its status is.
	Good Outcome = iota
	Failed
	Blocked
)

// end is when the call ended, Unix nanoseconds. At is not clipped yet.
func (c *Call) end() int64 { return c.At + max(c.Duration, 0) }

// code is the status as a Collector counts it.
func (c *Call) code() collector.Code {
	switch {
	case c.Status == 0:
		return collector.Code{}
	case c.Status >= GRPC:
		return collector.GRPCCode(uint32(c.Status - GRPC))
	}
	return collector.HTTPStatus(int(c.Status))
}
