package replay

import "context"

// Await calls open and waits for it until ctx ends: opening a named pipe takes until somebody writes to it, and reading its
// first lines, too. What is opened later is left to the end of the process.
func Await[T any](ctx context.Context, open func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	opened := make(chan result, 1)
	go func() {
		value, err := open()
		opened <- result{value, err}
	}()
	select {
	case x := <-opened:
		return x.value, x.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
