package accesslog

import "strings"

// A meaning is what a JSON key means.
type meaning struct {
	slot  slot
	rank  int   // of two keys for the same slot the higher one counts; never 0
	unit  int   // of duration, for numbers
	stamp Stamp // of timestamp
}

// caddys is a rank above all others: that of the keys in Caddy's object of the request.
const caddys = 10

// keys are those of Traefik, of Caddy, and the usual ones for JSON of nginx; inRequest are those of the object in which Caddy has the
// request.
var keys, inRequest = func() (keys, inRequest map[string]meaning) {
	keys, inRequest = map[string]meaning{}, map[string]meaning{}
	add := func(to map[string]meaning, names string, highest int, m meaning) {
		for i, name := range strings.Fields(names) {
			m.rank = highest - i
			to[name] = m
		}
	}
	// Traefik's time is when it wrote the line; StartUTC is better, because Duration begins there.
	add(keys, "StartUTC StartLocal", 9, meaning{slot: timestamp, stamp: Start})
	add(keys, "msec ts time_iso8601 @timestamp timestamp time_local time", 7, meaning{slot: timestamp, stamp: End})
	add(keys, "Duration", 3, meaning{slot: duration, unit: nanoseconds})
	add(keys, "request_time", 2, meaning{slot: duration, unit: seconds})
	add(keys, "duration", 1, meaning{slot: duration, unit: unknown}) // Caddy's is in seconds
	add(keys, "DownstreamStatus status status_code", 3, meaning{slot: status})
	add(keys, "RequestMethod request_method method", 3, meaning{slot: method})
	add(keys, "request", 1, meaning{slot: request})
	add(keys, "RequestPath request_uri uri path url", 5, meaning{slot: target})
	add(keys, "RequestHost host http_host server_name", 4, meaning{slot: host})
	add(keys, "ClientHost remote_addr client_ip remote_ip", 4, meaning{slot: client})
	add(inRequest, "method", caddys, meaning{slot: method})
	add(inRequest, "uri", caddys, meaning{slot: target})
	add(inRequest, "host", caddys, meaning{slot: host})
	add(inRequest, "client_ip remote_ip", caddys, meaning{slot: client})
	return keys, inRequest
}()

func meaningOf(key []byte, request bool) meaning {
	if request {
		return inRequest[string(key)]
	}
	return keys[string(key)]
}
