// Package version reports the version of windowstat.
package version

import "runtime/debug"

// String returns the version of windowstat in this program from its build information, or unknown.
func String() string {
	const path = "github.com/windowstat/windowstat"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == path && info.Main.Version != "" {
		return info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return "unknown"
}
