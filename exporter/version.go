package exporter

import "runtime/debug"

// Version is that of the program's windowstat, as the build knows it.
func Version() string {
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
