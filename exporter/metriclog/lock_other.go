//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package metriclog

import "os"

// lockFile makes the file. On this system it keeps nobody away, but who has it open cannot lose it.
func lockFile(path string) (file *os.File, sure bool, err error) {
	file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	return file, err == nil, err
}
