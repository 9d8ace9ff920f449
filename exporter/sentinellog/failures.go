package sentinellog

import "sync"

// failures logs the error of each file once, until the error is gone, and counts all. The zero value is ready to use.
// It is safe for concurrent use.
type failures struct {
	mu     sync.Mutex
	failed map[string]bool // by file
	n      int64
}

// set records the result of reading or writing a file.
func (x *failures) set(f *Follower, file string, err error, message string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		delete(x.failed, file)
		return
	}
	x.n++
	if !x.failed[file] {
		if x.failed == nil {
			x.failed = map[string]bool{}
		}
		x.failed[file] = true
		f.opts.Logger.Error(message, "err", err)
	}
}

// count returns the number of errors so far.
func (x *failures) count() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.n
}
