// Package version knows which windowstat this is.
package version

import "runtime/debug"

// String is the version of windowstat in this program, as the build knows it; unknown if it does not.
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
