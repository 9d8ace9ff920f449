package accesslog

import (
	"bytes"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Stamp is the end of a call that the time of its line is. It decides the second in which the call is counted: a server that stamps beginnings
// and writes lines at the end has lines out of order by as long as calls take.
type Stamp uint8

// The two ends of a call.
const (
	Start Stamp = iota // when the request came
	End                // when the line was written
)

// A Record is a call, as its line describes it. Its slices point into the line or into the [Parser], and are valid until
// the next Parse and as long as the line is.
type Record struct {
	Time        time.Time     // in UTC
	Stamp       Stamp         // which end of the call Time is
	Coarse      bool          // Time has no fraction of a second
	Duration    time.Duration // never negative: a clock that was set back makes it 0
	HasDuration bool
	Status      int // 0 to 999; 0 if the server had none to log ("-", or nginx's 000)

	// Method and Target are those of the request line, the target percent-encoded if the client sent it so. Both are empty
	// if the line has a request that is not of three parts, method, target and HTTP/version: rubbish, or "-".
	Method, Target []byte

	Host, Client []byte // empty if the line has none
}

// splitRequest returns method and target of a request line, or nothing unless it has three parts. Spaces within the target,
// which some clients send, are part of it.
func splitRequest(line []byte) (method, target []byte) {
	first, last := bytes.IndexByte(line, ' '), bytes.LastIndexByte(line, ' ')
	if first == last || !bytes.HasPrefix(line[last+1:], []byte("HTTP/")) {
		return nil, nil
	}
	method, target = line[:first], line[first+1:last]
	if !isMethod(method) || len(target) == 0 {
		return nil, nil
	}
	return method, target
}

// isMethod reports whether b is a token, as the methods and the names of headers are.
func isMethod(b []byte) bool { return httpguts.ValidHeaderFieldName(string(b)) }
