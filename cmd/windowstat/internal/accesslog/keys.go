package accesslog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A meaning describes the value of a JSON key: the slot that it sets, and its syntax.
type meaning struct {
	slot   slot
	rank   int8          // the highest rank of a slot wins; 0 if only objects under the key have a meaning
	stamp  Stamp         // of timestamp
	unit   time.Duration // of a duration that is a number; for the time and the status of Envoy see isEnvoy
	inside *keySet       // the keys of an object under the key; nil if it is not scanned
}

// A keySet maps the keys of an object to their meanings. Most keys of a line have no meaning. A table of hashes
// excludes most of these keys without a look-up in the map, which saves a tenth of the time of a line.
type keySet struct {
	meanings map[string]*meaning
	mayHave  [256]bool // false if no key has the hash
}

// hash returns a hash of a key that is not empty. It uses only the length and three bytes, because it has to be faster
// than a look-up in a map.
func hash(key []byte) uint8 {
	n := len(key)
	return uint8(n)*37 ^ key[0] ^ key[n/2]<<3 ^ key[n-1]<<1
}

// find returns the meaning of a key; nil if the key is unknown.
func (s *keySet) find(key []byte) *meaning {
	if len(key) == 0 || !s.mayHave[hash(key)] {
		return nil
	}
	return s.meanings[string(key)]
}

// set sets the meaning of a key that is not empty.
func (s *keySet) set(key string, m *meaning) {
	if s.meanings == nil {
		s.meanings = map[string]*meaning{}
	}
	s.meanings[key] = m
	s.mayHave[hash([]byte(key))] = true
}

// add adds several keys with the same meaning, the best one first: it has the highest rank, and each following key
// ranks one lower.
func (s *keySet) add(names string, highest int8, m meaning) {
	for i, name := range strings.Fields(names) {
		of := m
		of.rank = highest - int8(i)
		s.set(name, &of)
	}
}

// clone returns a copy that can be changed independently. The meanings themselves are shared and must not be changed.
// The clone of nil is an empty set.
func (s *keySet) clone() *keySet {
	if s == nil {
		return new(keySet)
	}
	own := *s
	own.meanings = maps.Clone(s.meanings)
	return &own
}

const (
	// caddys is the rank of the keys in Caddy's object of the request, above the ranks of all other known keys.
	caddys = 10
	// given is the rank of keys that the user has given.
	given = 20
)

// serverKeys has the keys of Traefik, Caddy, Envoy Gateway and Istio, and the usual keys in JSON formats of nginx.
// Under "request" Caddy writes an object, and nginx writes the request line.
var serverKeys = func() *keySet {
	keys, inRequest := new(keySet), new(keySet)
	// Traefik writes "time" at the end of a call. StartUTC is better, because Duration begins at this time.
	keys.add("StartUTC StartLocal", 10, meaning{slot: timestamp, stamp: Start})
	keys.add("msec ts time_iso8601 @timestamp timestamp time_local time", 8, meaning{slot: timestamp, stamp: End})
	keys.add("start_time", 1, meaning{slot: timestamp, stamp: Start, unit: milliseconds})
	keys.add("Duration", 3, meaning{slot: duration, unit: nanoseconds})
	keys.add("request_time", 2, meaning{slot: duration, unit: seconds})
	// Caddy writes seconds under this key, and Envoy milliseconds.
	keys.add("duration", 1, meaning{slot: duration, unit: unknown})
	keys.add("DownstreamStatus status status_code", 4, meaning{slot: status})
	keys.add("response_code", 1, meaning{slot: status, unit: milliseconds})
	keys.add("grpc_status grpc-status grpcStatus grpc_status_number sent_trailer_grpc_status sent_http_grpc_status "+
		"upstream_trailer_grpc_status upstream_http_grpc_status", 8, meaning{slot: grpcCode})
	keys.add("RequestMethod request_method method :method", 4, meaning{slot: method})
	keys.add("RequestPath request_uri uri x-envoy-origin-path path :path url", 7, meaning{slot: target})
	keys.add("RequestHost host http_host server_name :authority authority", 6, meaning{slot: host})
	keys.add("ClientHost remote_addr client_ip remote_ip downstream_remote_address", 5, meaning{slot: client})
	keys.add("logger", 1, meaning{slot: logger})
	inRequest.add("method", caddys, meaning{slot: method})
	inRequest.add("uri", caddys, meaning{slot: target})
	inRequest.add("host", caddys, meaning{slot: host})
	inRequest.add("client_ip remote_ip remote_addr", caddys, meaning{slot: client})
	keys.set("request", &meaning{slot: request, rank: 1, inside: inRequest})
	return keys
}()

// recordFields maps the names of the fields for which a user can give a key to their meanings. "time" is the end of a
// call, and "start" is its start. If a line has both, the start wins.
var recordFields = map[string]*meaning{
	"time":     {slot: timestamp, rank: given, stamp: End},
	"start":    {slot: timestamp, rank: given + 1, stamp: Start},
	"status":   {slot: status, rank: given},
	"grpc":     {slot: grpcCode, rank: given},
	"duration": {slot: duration, rank: given, unit: unknown},
	"request":  {slot: request, rank: given},
	"method":   {slot: method, rank: given},
	"target":   {slot: target, rank: given},
	"host":     {slot: host, rank: given},
	"client":   {slot: client, rank: given},
}

// maxPath is the maximum number of keys in a path. The number of ways to read a path doubles with each key.
const maxPath = 8

// WithKeys returns a copy of a JSON format that also reads the given keys, which win over the usual ones. keys maps
// fields of a record to their keys. The fields are time (of the end of a call), start, status, grpc, duration, request
// (a request line), method, target, host and client.
//
// A key in a nested object is written as a path with dots, such as http.response.code. The path also matches keys that
// contain dots themselves, in every combination: {"http.response":{"code":200}}. Numbers under the key of the duration
// are in the unit of the format. The error joins all problems.
func (f *Format) WithKeys(keys map[string]string) (*Format, error) {
	if !f.json {
		return nil, fmt.Errorf("%s is not a JSON format, so it has no keys", f)
	}
	own := *f
	own.keys = f.keys.clone()
	var errs []error
	for _, field := range slices.Sorted(maps.Keys(keys)) {
		m, known := recordFields[field]
		path := strings.Split(keys[field], ".")
		switch {
		case !known:
			fields := strings.Join(slices.Sorted(maps.Keys(recordFields)), ", ")
			errs = append(errs, fmt.Errorf("a record has no field %q; there are %s", field, fields))
		case slices.Contains(path, "") || len(path) > maxPath:
			errs = append(errs, fmt.Errorf("%s: %q is not a key, or a path of up to %d keys with dots between them",
				field, keys[field], maxPath))
		default:
			own.keys = addPath(own.keys, path, m)
		}
	}
	return &own, errors.Join(errs...)
}

// addPath returns a copy of keys in which path has the meaning m. It changes neither keys nor the sets within.
func addPath(keys *keySet, path []string, m *meaning) *keySet {
	keys = keys.clone()
	// The first key may be one element of the path, or several that its dots join.
	for n := 1; n <= len(path); n++ {
		key := strings.Join(path[:n], ".")
		var at meaning
		if known := keys.meanings[key]; known != nil {
			at = *known
		}
		switch {
		case n < len(path):
			at.inside = addPath(at.inside, path[n:], m)
		case m.rank > at.rank:
			inside := at.inside
			at = *m
			at.inside = inside
		}
		keys.set(key, &at)
	}
	return keys
}
