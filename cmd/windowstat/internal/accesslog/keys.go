package accesslog

// A meaning is what a JSON key means.
type meaning struct {
	slot  slot
	rank  int   // of two keys for the same slot the higher one counts; never 0
	unit  int   // of duration, for numbers
	stamp Stamp // of timestamp
}

// meaningOf knows the keys of Caddy, which nests the request in an object, those of Traefik, and the usual ones for JSON of
// nginx. Traefik's time is when it wrote the line; StartUTC is better, because Duration begins there.
func meaningOf(key []byte, inRequest bool) meaning {
	if inRequest {
		switch string(key) {
		case "method":
			return meaning{slot: method, rank: 9}
		case "uri":
			return meaning{slot: target, rank: 9}
		case "host":
			return meaning{slot: host, rank: 9}
		case "client_ip":
			return meaning{slot: client, rank: 9}
		case "remote_ip":
			return meaning{slot: client, rank: 8}
		}
		return meaning{}
	}
	switch string(key) {
	case "StartUTC":
		return meaning{slot: timestamp, rank: 9, stamp: Start}
	case "StartLocal":
		return meaning{slot: timestamp, rank: 8, stamp: Start}
	case "msec":
		return meaning{slot: timestamp, rank: 7, stamp: End}
	case "ts":
		return meaning{slot: timestamp, rank: 6, stamp: End}
	case "time_iso8601":
		return meaning{slot: timestamp, rank: 5, stamp: End}
	case "@timestamp":
		return meaning{slot: timestamp, rank: 4, stamp: End}
	case "timestamp":
		return meaning{slot: timestamp, rank: 3, stamp: End}
	case "time_local":
		return meaning{slot: timestamp, rank: 2, stamp: End}
	case "time":
		return meaning{slot: timestamp, rank: 1, stamp: End}

	case "Duration":
		return meaning{slot: duration, rank: 3, unit: nanoseconds}
	case "request_time":
		return meaning{slot: duration, rank: 2, unit: seconds}
	case "duration":
		return meaning{slot: duration, rank: 1, unit: unknown} // Caddy's is in seconds

	case "DownstreamStatus":
		return meaning{slot: status, rank: 3}
	case "status":
		return meaning{slot: status, rank: 2}
	case "status_code":
		return meaning{slot: status, rank: 1}

	case "RequestMethod", "request_method":
		return meaning{slot: method, rank: 2}
	case "method":
		return meaning{slot: method, rank: 1}

	case "request":
		return meaning{slot: request, rank: 1}
	case "RequestPath", "request_uri":
		return meaning{slot: target, rank: 3}
	case "uri":
		return meaning{slot: target, rank: 2}
	case "path", "url":
		return meaning{slot: target, rank: 1}

	case "RequestHost", "host":
		return meaning{slot: host, rank: 3}
	case "http_host":
		return meaning{slot: host, rank: 2}
	case "server_name":
		return meaning{slot: host, rank: 1}

	case "ClientHost", "remote_addr":
		return meaning{slot: client, rank: 2}
	case "client_ip", "remote_ip":
		return meaning{slot: client, rank: 1}
	}
	return meaning{}
}
