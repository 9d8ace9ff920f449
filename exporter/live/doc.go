// Package live is a web page that shows every second as it is sealed: what passed, was blocked, failed, how long it took,
// how much was in flight, of the whole process and of every resource.
//
//	page, err := live.New(c, live.Options{})
//	mux.Handle("/live/", page)
//
// The page is embedded, needs nothing from elsewhere, and works without JavaScript libraries but uPlot, which is embedded
// too. Numbers come by server-sent events that resume where they broke off, and by polling where something on the way
// holds them back. A second is made into an event, and zipped, once, when the first viewer asks for it, and not at all
// while nobody looks; recording costs nothing more.
//
// # Caveats
//
// A browser keeps the streams of all its tabs open, and has six connections to a server that speaks HTTP/1.1: the seventh
// tab waits.
//
// Of a second with more than [Options].MaxRows busy resources the busiest are shown. Whoever can open the page can see
// the names of all resources and origins.
package live
