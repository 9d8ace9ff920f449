package metriclog

import "errors"

// errLocked is the error for a log that another process writes.
var errLocked = errors.New("another process writes this log; give each an App or a directory of its own, or set PID")
