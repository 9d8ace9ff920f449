// Package top shows what an endpoint of windowstat counts, second by second, in a terminal ([Run]) or as text ([Once]).
//
// It asks a page of seconds for its last second, without a cursor, so no server that scrapes the page loses anything by it.
// After a second that it missed it asks for those since, and at the beginning for the last minute. Where there is a page of
// metrics but none of seconds it makes do with that. Nothing that comes from the endpoint reaches the terminal unless it
// was cleaned, and all of it is bounded.
package top
