// Package live serves a web page that shows every second when it is sealed: calls admitted, blocked and failed, response times
// and concurrency, of all inbound traffic and of every resource.
//
//	page, err := live.New(c, live.Options{})
//	mux.Handle("/live/", page)
//
// The page is embedded and loads nothing from other hosts; its only library is uPlot. Numbers arrive by server-sent events,
// which resume after an interruption, or by polling where a proxy holds events back. Each second is encoded and compressed
// once, when the first viewer asks for it; without viewers the page costs nothing.
//
// # Caveats
//
// Browsers allow six HTTP/1.1 connections to a host, and each tab keeps one: the seventh tab waits.
//
// A viewer that does not read is disconnected. Questions in a loop, such as polls without a pause, wait for each other, host by
// host. See docs/security.md for what else a client cannot hold.
//
// Of a second with more than [Options].MaxRows busy resources only the busiest are shown. Everyone who can open the page sees
// the names of all resources and origins.
package live
