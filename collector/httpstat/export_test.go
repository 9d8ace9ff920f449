package httpstat

// CollapsePath returns the path part of the name that the function PathName(depth) returns for a request with the path
// p.
func CollapsePath(p string, depth int) string { return string(appendPath(nil, p, depth)) }
