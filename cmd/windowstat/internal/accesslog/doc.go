// Package accesslog parses the lines of access logs: time, duration, request, client and status of each call.
//
// A [Format] describes the lines. It comes by name ([Named]), from the format string of nginx or Apache's httpd ([Nginx],
// [Apache]), or from some lines ([Detect]). Each goroutine needs a [Parser] of its own:
//
//	f, err := accesslog.Named("combined")
//	p := f.NewParser(nil)
//	var r accesslog.Record
//	for lines.Scan() {
//		if err := p.Parse(lines.Bytes(), &r); err != nil {
//			bad++ // errors are made once for each format: a bad line costs no more than a good one
//			continue
//		}
//		count(&r)
//	}
//
// A format string is compiled into a list of fields, each with the literal text behind it. The parser stops at the last
// field that a record needs. So a format without a duration ends at the status, "common" parses combined lines, and a
// line that is cut off in its user agent is valid. A line that ends between the status and the duration has no duration;
// one that ends before its status is an error.
//
// Servers stamp their lines at either end of a call. nginx and Caddy log the time when they write the line, httpd and
// Traefik (StartUTC) when the request came: [Record].Stamp tells which. The named formats common,
// combined, vhost-combined and combined-usec are taken for httpd's, combined-time for nginx's.
//
// Caveats: the server's escapes (\", \x22) in the target and in JSON strings are undone. JSON is
// scanned, not validated. A field before the status ends where its separator and a status follow, so that raw quotes and
// spaces in a request do no harm; any other field ends at its first separator that is not an escaped
// quote. Clocks of servers have no leap seconds, and a line of one, :60, is an error.
package accesslog
