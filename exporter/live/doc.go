// Package live serves a web page that shows every second when it is sealed: calls admitted, blocked and failed, response times
// and calls in flight, of all inbound traffic and of every resource.
//
//	page, err := live.New(c, live.Options{})
//	mux.Handle("/live/", page)
//
// The page is embedded and loads nothing from other hosts; its only library is uPlot. Numbers arrive by server-sent events,
// which resume after an interruption, or by polling where a proxy holds events back. A viewer is sent the total, a page of the
// table and the resource that is open, however many others there are; the server sorts and searches. Each second of all resources
// is read once, by the first viewer who asks for it, and sorted once for each column; without viewers the page costs nothing.
//
// The table is of the last second, or of the seconds to which the charts are zoomed, or of the one at which the page is paused:
// then it has sums, and averages of that range.
//
// A [Recording] is the same page as one file, with the seconds of a metric log in it and no server.
//
// # Caveats
//
// Browsers allow six HTTP/1.1 connections to a host, and each tab keeps one: the seventh tab waits.
//
// A viewer that does not read is disconnected. A host whose questions take more than a tenth of a processor waits. See
// docs/security.md for what else a client cannot hold.
//
// The seconds before the first viewer came are read when somebody's charts show them, at first three minutes: with 10,000 resources
// that takes a processor for some 200 ms, and others have their seconds meanwhile. Response times of single calls are kept for a minute, so
// there is no p99 before, and the page says from when on it is known. The p99 that is usual for a resource is taken to be the
// median of the slowest call of a second, of ten seconds in each of the last ten minutes. The total is of inbound calls; in a
// service without any it is called background, all outermost calls, which other ways out have not.
//
// Everyone who can open the page sees the names of all resources and origins. The page's address has what is open and searched,
// behind the #; the server's access log gets the same with the address of the stream.
package live
