// Package limiter bounds what clients can hold of a server: places in which pages are computed, what is written to slow
// readers, streams. A page is computed in a place and written without one, so nobody waits for a slow reader. What is bounded
// is bounded in all; package fairshare decides who gives way when it is used up.
package limiter
