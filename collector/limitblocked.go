package collector

import (
	"errors"
	"fmt"
)

// ErrBlocked is the error of a call that a limit refused. Use errors.As to get the [BlockedError], which has the limit.
var ErrBlocked = errors.New("collector: blocked")

// Cancelled is the reason of a block if a prioritized call stops waiting before the borrowed bucket begins.
const Cancelled = "cancelled"

// BlockedError describes why a limit refused a call. errors.Is(err, ErrBlocked) is true for a *BlockedError err.
type BlockedError struct {
	// Limit is the rule that refused the call.
	Limit Limit
	// Resource and Origin are the names of the resource and the origin that recorded the block. Each may be [Other].
	Resource, Origin string
	// Reading is the value that the limit compared with its Count: the passes in the last second (with Strict, one
	// bucket more than a second), or the calls in flight.
	Reading int64
	// Cancelled is the error that ended the wait of a prioritized call, usually the cause of its context (see
	// context.Cause). If the call did not wait, Cancelled is nil.
	Cancelled error
}

func (e *BlockedError) Error() string {
	s := fmt.Sprintf("collector: blocked: %q", e.Resource)
	if e.Origin != "" {
		s += fmt.Sprintf(" from %q", e.Origin)
	}
	s += fmt.Sprintf(": limit %q of %d is used up: %d", e.Limit, e.Limit.Count, e.Reading)
	if e.Cancelled != nil {
		s += "; gave up waiting: " + e.Cancelled.Error()
	}
	return s
}

// Unwrap lets errors.Is find [ErrBlocked] and, if the field Cancelled is not nil, the error in Cancelled.
func (e *BlockedError) Unwrap() []error {
	if e.Cancelled != nil {
		return []error{ErrBlocked, e.Cancelled}
	}
	return []error{ErrBlocked}
}
