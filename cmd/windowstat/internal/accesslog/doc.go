// Package accesslog reads the lines of access logs: when a call was, how long it took, what was asked for, by whom, and
// with which status it ended.
//
// A [Format] says how lines look. It comes by name ([Named]), from the format string of nginx or Apache's httpd
// ([Nginx], [Apache]), or from a look at some lines ([Detect]). Each goroutine reads with a [Parser] of its own:
//
//	f, err := accesslog.Named("combined")
//	p := f.NewParser(nil)
//	var r accesslog.Record
//	for lines.Scan() {
//		if err := p.Parse(lines.Bytes(), &r); err != nil {
//			bad++ // errors are made once, for each field of the format: a bad line costs no more than a good one
//			continue
//		}
//		count(&r)
//	}
//
// A format string is compiled into a list of fields, each with the literal text behind it, up to the last field that
// is of interest: what comes behind that is not read. So a format without a duration is done with a line at the
// status, "common" reads combined lines, and a line that was cut off in its user agent is a good one. A line that
// ends between the status and the duration has no duration; one that ends before its status is an error.
//
// Servers stamp their lines at either end of a call. nginx and Caddy take the time when they write the line, httpd
// and Traefik (StartUTC) when the request came: [Record].Stamp says which one it is. The named formats common,
// combined, vhost-combined and combined-usec are taken for httpd's, combined-time for nginx's.
//
// Caveats: text formats leave the server's escapes (\", \x22) in the target, JSON strings are unescaped. JSON is
// scanned and not validated. A field in front of the status ends where its separator and a status follow, so that
// raw quotes and spaces in a request do no harm; any other field ends at its first separator that is not an escaped
// quote. A leap second, :60, is the first second of the next minute, as POSIX has it.
package accesslog
