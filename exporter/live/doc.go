// Package live serves a web page that shows every second when it is sealed: calls admitted, blocked and failed, response times
// and calls in flight, of all inbound traffic and of every resource.
//
//	page, err := live.New(c, live.Options{})
//	mux.Handle("/live/", page)
//
// The page is embedded and loads nothing from other hosts; its only library is uPlot. Numbers arrive by server-sent events,
// which resume after an interruption, or by polling where a proxy holds events back. A viewer is sent the total, a page of the
// table and the resource that is open, however many others there are; the server sorts and searches. What is the same for many
// viewers is made once, when the first of them asks for it; without viewers the page costs nothing.
//
// # Caveats
//
// Browsers allow six HTTP/1.1 connections to a host, and each tab keeps one: the seventh tab waits.
//
// A viewer that does not read is disconnected. Questions in a loop, such as polls without a pause, wait for each other, host by
// host. See docs/security.md for what else a client cannot hold.
//
// The total of the minutes before the first viewer is read while that has the rest of the page already: with 10,000 resources
// it takes a processor for some 0.15 s, in which nobody else waits. Response times of single calls are kept for a minute, so there
// is no p99 before, and the page says from when on it is known. The total is of inbound calls; in a service without any it is called
// background, all outermost calls, which other ways out have not. A page that is paused and loaded again shows its charts as they
// were, and the table as it is then.
//
// Everyone who can open the page sees the names of all resources and origins. The page's address has what is open and searched,
// behind the #; the server's access log gets the same with the address of the stream.
package live
