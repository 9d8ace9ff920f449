package httpstat

// CollapsePath returns the path in a name of [PathName].
func CollapsePath(p string, depth int) string { return string(appendPath(nil, p, depth)) }
