//go:build !unix

package smallfile

// nonblock is not needed: the file system of this system has no FIFOs.
const nonblock = 0
