package metriclog

import "errors"

// errLocked says that somebody else has a log.
var errLocked = errors.New("another process writes this log; give each an App or a directory of its own, or set PID")
