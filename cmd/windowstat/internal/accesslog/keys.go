package accesslog

// A meaning is what the value of a key is good for.
type meaning struct {
	slot  slot
	rank  int   // of two keys for the same slot, the higher one counts; never 0
	unit  int   // of took, for numbers
	stamp Stamp // of moment
}

// meaningOf knows the keys of Caddy, where what was asked for is an object of its own, of Traefik, and those that
// people who make nginx write JSON give its variables. Traefik's time is when the line was written; StartUTC, if it
// is there, is better, because its Duration was measured from then on.
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
		return meaning{slot: moment, rank: 9, stamp: Start}
	case "StartLocal":
		return meaning{slot: moment, rank: 8, stamp: Start}
	case "msec":
		return meaning{slot: moment, rank: 7, stamp: End}
	case "ts":
		return meaning{slot: moment, rank: 6, stamp: End}
	case "time_iso8601":
		return meaning{slot: moment, rank: 5, stamp: End}
	case "@timestamp":
		return meaning{slot: moment, rank: 4, stamp: End}
	case "timestamp":
		return meaning{slot: moment, rank: 3, stamp: End}
	case "time_local":
		return meaning{slot: moment, rank: 2, stamp: End}
	case "time":
		return meaning{slot: moment, rank: 1, stamp: End}

	case "Duration":
		return meaning{slot: took, rank: 3, unit: nanoseconds}
	case "request_time":
		return meaning{slot: took, rank: 2, unit: seconds}
	case "duration":
		return meaning{slot: took, rank: 1, unit: seconds}

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
