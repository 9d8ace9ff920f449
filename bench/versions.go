package bench

import (
	_ "embed"
	"strings"
)

//go:embed go.mod
var gomod string

// Versions lists the modules that windowstat is compared with, each as path and version, as built into this binary.
func Versions() []string {
	var list []string
	for line := range strings.Lines(gomod) {
		path, version, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && strings.HasPrefix(version, "v") && !strings.Contains(version, "//") &&
			!strings.HasSuffix(path, "windowstat") &&
			path != "golang.org/x/perf" {
			list = append(list, path+" "+version)
		}
	}
	return list
}
